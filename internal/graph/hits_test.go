package graph_test

import (
	"encoding/json"
	"testing"

	"tutti/internal/index"
)

const document = `{"analysisId":"a1","studyId":"S1","note":"n\u00e9","count":9007199254740993,"small":7,"ratio":0.50,"open":true,
	"created":1483228800000,"info":{"a":[1, 2]},"tags":["x","y"],"odd-name":"o",
	"experiment":{"platform":"ILLUMINA","lab":{"city":"Toronto"}},
	"files":[{"name":"f1","size":1,"parts":[{"n":1},{"n":2}]},{"name":"f2","size":2}]}`

func TestHits(t *testing.T) {
	hit := index.Hit{ID: "a1", Source: []byte(document), Sort: []json.RawMessage{json.RawMessage(`9223372036854775807`), json.RawMessage(`"a1"`)}}
	for _, c := range []struct{ name, query, want string }{
		{
			"a page", `{analysis{hits{total edges{searchAfter node{id analysisId count}}}}}`,
			`{"data":{"analysis":{"hits":{"total":41,"edges":[{"searchAfter":["9223372036854775807","a1"],"node":{"id":"a1","analysisId":"a1","count":9007199254740993}}]}}}}`,
		},
		{
			"every type", `{analysis{hits{edges{node{note small ratio open created info tags odd_name score}}}}}`,
			`{"data":{"analysis":{"hits":{"edges":[{"node":{"note":"né","small":7,"ratio":0.5,"open":true,"created":"1483228800000",
				"info":{"a":[1,2]},"tags":["x","y"],"odd_name":"o","score":null}}]}}}}`,
		},
		{
			"objects", `{analysis{hits{edges{node{experiment{platform lab{city}}}}}}}`,
			`{"data":{"analysis":{"hits":{"edges":[{"node":{"experiment":{"platform":"ILLUMINA","lab":{"city":"Toronto"}}}}]}}}}`,
		},
		{
			"nested", `{analysis{hits{edges{node{files{hits{total edges{searchAfter node{name parts{hits{total edges{node{n}}}}}}}}}}}}}`,
			`{"data":{"analysis":{"hits":{"edges":[{"node":{"files":{"hits":{"total":2,"edges":[
				{"searchAfter":null,"node":{"name":"f1","parts":{"hits":{"total":2,"edges":[{"node":{"n":1}},{"node":{"n":2}}]}}}},
				{"searchAfter":null,"node":{"name":"f2","parts":null}}]}}}}]}}}}`,
		},
		{
			"names of types", `{__typename analysis{__typename hits{__typename edges{__typename node{__typename files{__typename hits{__typename edges{__typename node{__typename}}}}}}}}}`,
			`{"data":{"__typename":"Root","analysis":{"__typename":"analysis","hits":{"__typename":"analysisConnection","edges":[
				{"__typename":"analysisEdge","node":{"__typename":"analysisNode","files":{"__typename":"analysisFiles",
				"hits":{"__typename":"analysisFilesConnection","edges":[{"__typename":"analysisFilesEdge","node":{"__typename":"analysisFilesNode"}},
				{"__typename":"analysisFilesEdge","node":{"__typename":"analysisFilesNode"}}]}}}}]}}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.engine.answer = gives(41, hit)
			w.answers(c.query, c.want)
			if w.engine.calls != 1 {
				t.Errorf("%d calls", w.engine.calls)
			}
		})
	}
}
