package graphql_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
)

// TestDocumentsThatDiffer: documents may differ in their members and in the order of members.
func TestDocumentsThatDiffer(t *testing.T) {
	sources := []string{
		`{"count":1,"studyId":"S","experiment":{"platform":"P","lab":{"city":"C"}}}`,
		`{"studyId":"S","count":1,"experiment":{"lab":{"city":"C"},"platform":"P"}}`,
		`{"counts":7,"count":1,"studyIdentifier":"X","studyId":"S","experiment":{"platforms":"X","platform":"P","lab":{"city":"C"}}}`,
		`{"experiment.platform":"P","count":1,"studyId":"S","experiment":{"lab":{"city":"C"}}}`,
		`{"experiment.platform":"P","count":1,"studyId":"S","experiment":{"lab":{"city":"C"}}}`,
		`{"experiment.platform":"P","count":1,"studyId":"S","experiment":{"lab.city":"C"}}`,
		`{"\u0063ount":1,"study\u0049d":"S","experiment":{"platform":"P","lab":{"city":"C"}}}`,
		`{"\u0063ount":1,"study\u0049d":"S","experiment":{"platform":"P","lab":{"city":"C"}}}`,
		`{ "count" : 1 , "studyId" : "S" , "experiment" : { "platform" : "P" , "lab" : { "city" : "C" } } }`,
		`{"count":2,"count":1,"studyId":null,"studyId":"S","experiment":{"platform":"P","lab":{"city":"C"}}}`,
		`{"count":1,"studyId":"S","experiment":{"platform":"P","lab":{"city":"C"}},"more":{"count":5}}`,
	}
	const want = `{"count":1,"again":1,"studyId":"S","experiment":{"platform":"P","lab":{"city":"C"}}}`
	for _, turned := range []bool{false, true} {
		t.Run(fmt.Sprint("turned ", turned), func(t *testing.T) {
			w := newWorld(t)
			if turned {
				slices.Reverse(sources)
			}
			var hits []index.Hit
			for i, source := range slices.Concat(sources, sources) {
				hits = append(hits, index.Hit{ID: fmt.Sprint(i), Source: []byte(source)})
			}
			w.engine.answer = gives(1, hits...)
			edges := strings.TrimSuffix(strings.Repeat(`{"node":`+want+`},`, len(hits)), ",")
			for range 3 {
				w.answers(`{analysis{hits{edges{node{count again:count studyId experiment{platform lab{city}}}}}}}`, `{"data":{"analysis":{"hits":{"edges":[`+edges+`]}}}}`)
			}
		})
	}
}

// TestBothOfOnePath: values at a path by dotted name and in objects have a deterministic order.
func TestBothOfOnePath(t *testing.T) {
	w := newWorld(t)
	w.engine.answer = gives(1, index.Hit{ID: "1", Source: []byte(
		`{"files.name":"z","files":[{"name":"a"}],"experiment.lab.city":"C","experiment":{"lab":null,"platform":"P"},"count":1}`)})
	for range 30 {
		w.answers(`{analysis{hits{edges{node{count experiment{platform lab{city}} files{hits{total edges{node{name}}}}}}}}}`,
			`{"data":{"analysis":{"hits":{"edges":[{"node":{"count":1,"experiment":{"platform":"P","lab":{"city":"C"}},`+
				`"files":{"hits":{"total":2,"edges":[{"node":{"name":"a"}},{"node":{"name":"z"}}]}}}}]}}}}`)
	}
}

// TestManyNames: documents without common members, and with more members than are cached, are written correctly.
func TestManyNames(t *testing.T) {
	w := newWorld(t)
	var hits []index.Hit
	for i := range 60 {
		var b strings.Builder
		for j := range 300 {
			fmt.Fprintf(&b, `"m%d-%d":%d,`, i, j, j)
		}
		hits = append(hits, index.Hit{ID: fmt.Sprint(i), Source: fmt.Appendf(nil, `{%s"count":%d}`, b.String(), i)})
	}
	w.engine.answer = gives(60, hits...)
	for range 2 {
		got := w.ask(core.GraphQLRequest{Query: `{analysis{hits(first:60){edges{node{count}}}}}`})
		var edges []string
		for i := range hits {
			edges = append(edges, fmt.Sprintf(`{"node":{"count":%d}}`, i))
		}
		same(w, `{"data":{"analysis":{"hits":{"edges":[`+strings.Join(edges, ",")+`]}}}}`, got.Body)
	}
}
