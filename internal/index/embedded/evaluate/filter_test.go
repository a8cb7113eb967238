package evaluate_test

import (
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
)

func terms(path string, values ...string) *query.Node {
	return &query.Node{Op: query.Terms, Field: field(path), Terms: values}
}

func exists(path string) *query.Node { return &query.Node{Op: query.Exists, Field: field(path)} }

func patterns(fold bool, path string, of ...sqon.Pattern) *query.Node {
	return &query.Node{Op: query.Patterns, Field: field(path), Patterns: of, Fold: fold}
}

func some(path string, child *query.Node) *query.Node {
	return &query.Node{Op: query.Some, Path: path, Children: []*query.Node{child}}
}

func and(children ...*query.Node) *query.Node { return &query.Node{Op: query.And, Children: children} }

func or(children ...*query.Node) *query.Node { return &query.Node{Op: query.Or, Children: children} }

func not(child *query.Node) *query.Node {
	return &query.Node{Op: query.Not, Children: []*query.Node{child}}
}

func between(path string, from, to query.Bound) *query.Node {
	return &query.Node{Op: query.Range, Field: field(path), From: from, To: to}
}

func from(number string) query.Bound {
	return query.Bound{Set: true, Inclusive: true, Number: number}
}

func beyond(number string) query.Bound { return query.Bound{Set: true, Number: number} }

// ids returns the joined ids of the hits.
func ids(hits []index.Hit) string {
	var b strings.Builder
	for _, h := range hits {
		b.WriteString(h.ID)
	}
	return b.String()
}

// answer runs one search over all parts.
func answer(t *testing.T, parts []evaluate.Part, req index.SearchRequest) evaluate.Result {
	t.Helper()
	answers, err := evaluate.Search(t.Context(), parts, []index.SearchRequest{req})
	if err != nil {
		t.Fatal(err)
	}
	return answers[0]
}

// invalid asserts that an error is CodeInvalid with a message.
func invalid(t *testing.T, err error, message string) {
	t.Helper()
	if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != message {
		t.Errorf("%q of code %s, want %q", core.MessageOf(err), core.CodeOf(err), message)
	}
}

func filtered(t *testing.T) []document {
	return documentsOf(
		t,
		`{"color":"red","tags":["a","ab"],"size":3,"ok":true,"files":[{"kind":"bam","bytes":10,"parts":[{"letter":"x","n":1},{"letter":"y","n":2}]},{"kind":"vcf","bytes":20}]}`,
		`{"color":"Red*","tags":"abc","size":-4,"ok":false,"files":{"kind":"vcf","bytes":10,"parts":[{"letter":"x","n":2}]}}`,
		`{"color":"blue","score":0.5,"day":"2024-02-29T12:00:00Z","files":[]}`,
		`{"tags":[],"files":[{"kind":"cram"},{}]}`,
		`{"color":null,"score":-0.25,"day":"2024-03-01","donor":{"visits":[{"site":"ear"}]}}`,
	)
}

func TestFilters(t *testing.T) {
	noon := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		filter *query.Node
		want   string
	}{
		"nil is all":                      {nil, "abcde"},
		"everything":                      {&query.Node{Op: query.Everything}, "abcde"},
		"nothing":                         {&query.Node{Op: query.Nothing}, ""},
		"terms":                           {terms("color", "blue", "nope", "red"), "ac"},
		"terms of several values":         {terms("tags", "ab"), "a"},
		"terms of an unknown field":       {terms("nowhere", "x"), ""},
		"terms of a number":               {terms("size", "-4", "3"), "ab"},
		"terms of a boolean":              {terms("ok", "false"), "b"},
		"terms of ids":                    {terms("_id", "a", "e", "z"), "ae"},
		"every document has an id":        {exists("_id"), "abcde"},
		"exists":                          {exists("color"), "abc"},
		"null and no values are missing":  {not(exists("tags")), "cde"},
		"not":                             {not(terms("color", "red")), "bcde"},
		"and":                             {and(terms("ok", "true", "false"), not(terms("color", "red"))), "b"},
		"and of nots":                     {and(not(exists("score")), not(exists("ok"))), "d"},
		"or":                              {or(terms("color", "blue"), exists("ok")), "abc"},
		"range of integers":               {between("size", from("-4"), beyond("3")), "b"},
		"range with a fraction":           {between("size", from("-3.5"), query.Bound{}), "a"},
		"range of fractions":              {between("score", beyond("-0.25"), from("0.5")), "c"},
		"range of dates":                  {between("day", query.Bound{Set: true, Time: noon}, query.Bound{}), "e"},
		"range from a date":               {between("day", query.Bound{Set: true, Inclusive: true, Time: noon}, query.Bound{}), "ce"},
		"an empty range":                  {between("size", from("5"), from("4")), ""},
		"a range of texts has no meaning": {between("color", query.Bound{}, query.Bound{}), ""},
		"a pattern whose case counts":     {patterns(false, "color", "R*"), "b"},
		"a pattern of both cases":         {patterns(true, "color", "rED"), "a"},
		"contained in both cases":         {patterns(true, "color", "*E*"), "abc"},
		"contained":                       {patterns(false, "color", "*e*"), "abc"},
		"an escaped star":                 {patterns(false, "color", `Red\*`), "b"},
		"one character":                   {patterns(false, "tags", "a?"), "a"},
		"several patterns":                {patterns(false, "tags", "abc", "a"), "ab"},
		"contained, begun twice":          {patterns(true, "tags", "*AC*", "*aB*"), "ab"},
		"contained, longer":               {patterns(true, "tags", "*abcd*"), ""},
		"any value":                       {patterns(true, "color", "*"), "abc"},
		"a boolean's text":                {patterns(true, "ok", "T*"), "a"},
		"some element":                    {some("files", terms("files.kind", "vcf")), "ab"},
		"each clause has its own element": {and(some("files", terms("files.kind", "vcf")), some("files", between("files.bytes", query.Bound{}, from("10")))), "ab"},
		"one element for both":            {some("files", and(terms("files.kind", "vcf"), between("files.bytes", query.Bound{}, from("10")))), "b"},
		"some other element":              {some("files", not(terms("files.kind", "vcf"))), "ad"},
		"no element":                      {not(some("files", &query.Node{Op: query.Everything})), "ce"},
		"an element of an element":        {some("files.parts", and(terms("files.parts.letter", "x"), terms("files.parts.n", "2"))), "b"},
		"an element with one of its own": {
			some("files", and(terms("files.kind", "vcf"), some("files.parts", exists("files.parts.n")))), "b",
		},
		"an element without one of its own": {
			some("files", and(terms("files.kind", "vcf"), not(some("files.parts", exists("files.parts.n"))))), "a",
		},
		"elements below an object": {some("donor.visits", terms("donor.visits.site", "ear")), "e"},
	}
	docs := filtered(t)
	layouts := map[string][]evaluate.Part{"whole": parts(t, docs), "spread": parts(t, docs, 1, 1, 3)}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for layout, of := range layouts {
				got := answer(t, of, index.SearchRequest{Filter: test.filter, Total: true, Hits: &index.HitsRequest{Size: 10}})
				if ids(got.Hits) != test.want || int(got.Total) != len(test.want) {
					t.Errorf("%s: %q of %d, want %q", layout, ids(got.Hits), got.Total, test.want)
				}
			}
		})
	}
}

// TestSharedNode uses one node in two scopes, in which it has different meanings.
func TestSharedNode(t *testing.T) {
	all := &query.Node{Op: query.Everything}
	got := answer(t, parts(t, filtered(t)), index.SearchRequest{
		Filter: and(all, some("files", all)), Hits: &index.HitsRequest{Size: 10},
	})
	if ids(got.Hits) != "abd" {
		t.Errorf("%q", ids(got.Hits))
	}
}

func TestDeadDocuments(t *testing.T) {
	docs := filtered(t)
	docs[0].stale, docs[2].stale = true, true
	of := parts(t, docs)
	facet := index.Facet{Field: field("color"), Buckets: &index.Buckets{Max: 10}, Missing: true, Cardinality: 10}
	got := answer(t, of, index.SearchRequest{
		Filter: not(terms("color", "green")), Total: true, Hits: &index.HitsRequest{Size: 10}, Facets: []index.Facet{facet},
	})
	f := got.Facets[0]
	if ids(got.Hits) != "bde" || got.Total != 3 || f.Missing != 2 || f.Cardinality != 1 || f.Buckets[0].Key != "Red*" {
		t.Errorf("%+v", got)
	}
}

func TestNoParts(t *testing.T) {
	got := answer(t, nil, index.SearchRequest{
		Total: true, Hits: &index.HitsRequest{Size: 10, Sort: []index.Sort{{Field: field("size")}}},
		Facets: []index.Facet{{Field: field("size"), Buckets: &index.Buckets{Max: 1, TopHits: 1}, Stats: true, Histogram: 1, Ranges: make([]index.NumberRange, 2)}},
	})
	if got.Total != 0 || len(got.Hits) != 0 || len(got.Facets[0].Buckets) != 0 || len(got.Facets[0].Ranges) != 2 {
		t.Errorf("%+v", got)
	}
	err := evaluate.Stream(t.Context(), nil, index.StreamRequest{}, func([]evaluate.DocumentRef, []index.Hit) error {
		t.Error("documents of no part")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
