package graphql_test

import (
	"encoding/json"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
)

// TestCachedEdges: a repeated query uses the current values of its variables.
func TestCachedEdges(t *testing.T) {
	for _, c := range []struct{ name, query, first, then, want, wantThen string }{
		{
			"nothing varies", `query($f:JSON){analysis{hits(filters:$f){edges{node{count small: count}}}}}`, `{}`, `{"f":{"op":"and","content":[]}}`,
			`{"count":7,"small":7}`, `{"count":7,"small":7}`,
		},
		{
			"a directive", `query($no:Boolean!){analysis{hits{edges{node{count @skip(if:$no) studyId}}}}}`, `{"no":false}`, `{"no":true}`,
			`{"count":7,"studyId":"S1"}`, `{"studyId":"S1"}`,
		},
		{
			"a directive in a fragment", `query($no:Boolean!){analysis{hits{edges{node{...n studyId}}}}} fragment n on analysisNode{... @include(if:$no){count}}`,
			`{"no":true}`, `{"no":false}`, `{"count":7,"studyId":"S1"}`, `{"studyId":"S1"}`,
		},
		{
			"a directive of a fragment", `query($no:Boolean!){analysis{hits{edges{node{...n @skip(if:$no) studyId}}}}} fragment n on analysisNode{count}`,
			`{"no":true}`, `{"no":false}`, `{"studyId":"S1"}`, `{"count":7,"studyId":"S1"}`,
		},
		{
			"an argument", `query($n:Int){analysis{hits{edges{node{files{hits(first:$n){edges{node{name}}}}}}}}}`, `{"n":1}`, `{"n":2}`,
			`{"files":{"hits":{"edges":[{"node":{"name":"a"}}]}}}`,
			`{"files":{"hits":{"edges":[{"node":{"name":"a"}},{"node":{"name":"b"}}]}}}`,
		},
		{
			"fields of two selections", `query($f:JSON){analysis{hits(filters:$f){edges{node{count}} edges{node{studyId}}}}}`, `{}`, `{"f":null}`,
			`{"count":7,"studyId":"S1"}`, `{"count":7,"studyId":"S1"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.engine.answer = gives(1, index.Hit{ID: "1", Source: []byte(`{"studyId":"S1","files":[{"name":"a"},{"name":"b"}],"count":7}`)})
			for _, again := range []struct{ variables, want string }{{c.first, c.want}, {c.then, c.wantThen}, {c.first, c.want}} {
				got := w.ask(core.GraphQLRequest{Query: c.query, Variables: json.RawMessage(again.variables)})
				same(w, `{"data":{"analysis":{"hits":{"edges":[{"node":`+again.want+`}]}}}}`, got.Body)
			}
		})
	}
}

// TestNamesThatArePaths: {"a.b":1} is the same as {"a":{"b":1}}, as in engines.
func TestNamesThatArePaths(t *testing.T) {
	const query = `{analysis{hits{edges{node{count experiment{platform lab{city}} files{hits{total edges{node{name}}}}}}}}}`
	want := `{"count":1,"experiment":{"platform":"P","lab":{"city":"C"}},"files":{"hits":{"total":2,"edges":[{"node":{"name":"a"}},{"node":{"name":"b"}}]}}}`
	for name, source := range map[string]string{
		"objects":          `{"count":1,"experiment":{"platform":"P","lab":{"city":"C"}},"files":[{"name":"a"},{"name":"b"}]}`,
		"paths":            `{"experiment.lab.city":"C","count":1,"experiment.platform":"P","files":[{"name":"a"},{"name":"b"}]}`,
		"both":             `{"experiment.lab":{"city":"C"},"count":1,"experiment":{"platform":"P"},"files":[{"name":"a"},{"name":"b"}]}`,
		"a path within":    `{"experiment":{"lab.city":"C","platform":"P"},"count":1,"files":[{"name":"a"},{"name":"b"}]}`,
		"of another field": `{"odd.count":2,"experiment":{"lab":{"city":"C"},"platform":"P"},"count":1,"files":[{"name":"a"},{"name":"b"}],"x.y":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.engine.answer = gives(1, index.Hit{ID: "1", Source: []byte(source)})
			w.answers(query, `{"data":{"analysis":{"hits":{"edges":[{"node":`+want+`}]}}}}`)
		})
	}
}
