package graphql_test

import (
	"encoding/json"
	"testing"

	"tutti/internal/index"
	"tutti/internal/search/catalogue/definition"
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

// TestPagesAreClamped to the window of the catalogue's table, and to that of engines, with a warning in each response.
func TestPagesAreClamped(t *testing.T) {
	for _, c := range []struct {
		name, table, args string
		size, from        int
		warning           string
	}{
		{"the window", ``, `first:10000`, 10_000, 0, ""},
		{"above the window", ``, `first:10001`, 10_000, 0, "first is 10001, and a page has 10000 documents at most: only those are returned"},
		{"behind the first documents", ``, `first:2147483647,offset:9999`, 1, 9999, "first is 2147483647, and a page has 10000 documents at most: only those are returned"},
		{"after a document", ``, `first:20000,searchAfter:["a1"]`, 10_000, 0, "first is 20000, and a page has 10000 documents at most: only those are returned"},
		{"the window of the table", `{"maxResultsWindow":50}`, `first:50,offset:100`, 50, 100, ""},
		{"above the window of the table", `{"maxResultsWindow":50}`, `first:51,offset:100`, 50, 100, "first is 51, and a page has 50 documents at most: only those are returned"},
		{"a window above that of engines", `{"maxResultsWindow":50000}`, `first:20000`, 10_000, 0, "first is 20000, and a page has 10000 documents at most: only those are returned"},
		{"a window below the default of first", `{"maxResultsWindow":5}`, `offset:0`, 5, 0, ""},
		{"null and a window below the default", `{"maxResultsWindow":5}`, `first:null`, 5, 0, ""},
		{"a window of nothing", `{"maxResultsWindow":0}`, `first:20`, 20, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, func(d *definition.Definition) { d.Table = json.RawMessage(c.table) })
			w.engine.answer = gives(1, index.Hit{ID: "a1"})
			want := `{"data":{"analysis":{"hits":{"edges":[{"node":{"id":"a1"}}]}}}`
			if c.warning != "" {
				want += `,"extensions":{"warnings":[{"code":"PAGE_CLAMPED","message":"` + c.warning + `",
					"hint":"read the rest page by page: pass the searchAfter of the last edge to the next page"}]}`
			}
			w.answers(`{analysis{hits(`+c.args+`){edges{node{id}}}}}`, want+`}`)
			if got := w.engine.reqs[0].Hits; got.Size != c.size || got.From != c.from {
				t.Errorf("asked for %d from %d", got.Size, got.From)
			}
		})
	}
	w := newWorld(t, func(d *definition.Definition) { d.Table = json.RawMessage(`{"maxResultsWindow":50000}`) })
	w.answers(`{analysis{configs{table{maxResultsWindow}}}}`, `{"data":{"analysis":{"configs":{"table":{"maxResultsWindow":10000}}}}}`)
	w.refuses(ask(`{analysis{hits(first:1,offset:10000){total}}}`), wrong(
		"the argument offset plus first is more than 10000 documents: continue with the searchAfter of the last edge", "BAD_USER_INPUT", at("1", "24", "analysis", "hits")))
}
