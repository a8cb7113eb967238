package searchtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest/cases"
	"tutti/internal/tools/searchtest/model"
)

// fullRequest returns a request that uses all features.
func (w *fixture) fullRequest() index.SearchRequest {
	w.Helper()
	types, age := w.sort("files.type"), w.sort("donor.age")
	return index.SearchRequest{
		Total: true, Hits: &index.HitsRequest{Size: 10, Sort: []index.Sort{types, w.sort("uid")}},
		Facets: []index.Facet{
			{Field: types.Field, Buckets: &index.Buckets{Max: 10}, Missing: true, Cardinality: 100},
			{Field: age.Field, Stats: true, Histogram: 10, Ranges: []index.NumberRange{{}}},
		},
	}
}

// checkIDs filters by document id.
func (w *fixture) checkIDs() {
	w.Helper()
	id := query.Field{Path: "_id", Type: "keyword"}
	some := &query.Node{Op: query.Terms, Field: id, Terms: []string{"a", "c", "g", "none"}}
	for want, n := range map[string]*query.Node{
		"ac":     some,
		"bdef":   {Op: query.Not, Children: []*query.Node{some}},
		"abcdef": {Op: query.Exists, Field: id},
		"c":      {Op: query.And, Children: []*query.Node{some, w.lower(cases.In("score", `0`))}},
		"":       {Op: query.Terms, Field: id, Terms: []string{"g"}},
	} {
		ask := index.HitsRequest{Size: 100, Sort: []index.Sort{w.sort("uid")}, Source: index.Source{None: true}}
		if got := letters(w.search(index.SearchRequest{Filter: n, Hits: &ask}).Hits); got != want {
			w.Errorf("%v %v finds %q, want %q", n.Op, n.Terms, got, want)
		}
	}
}

// ownAlias returns a fixture for the same engine with its own alias.
func (w *fixture) ownAlias() *fixture {
	w.Helper()
	tree, _, err := mapping.ParseForeign([]byte(w.mapping)) // keeps the engine's types
	if err != nil {
		w.Fatal(err)
	}
	out := *w
	out.createAlias(tree)
	return &out
}

func (w *fixture) checkEmpty() {
	w.Helper()
	other := w.ownAlias()
	r := other.search(other.fullRequest())
	if r.Total != 0 || len(r.Hits) != 0 || len(r.Facets) != 2 {
		w.Fatalf("%+v", r)
	}
	if d := diffFacet(model.TextClass, r.Facets[0], index.FacetResult{}); d != "" {
		w.Error(d)
	}
	if d := diffFacet(model.IntegerClass, r.Facets[1], index.FacetResult{Ranges: []int64{0}}); d != "" {
		w.Error(d)
	}
	err := other.x.Stream(w.Context(), other.alias, index.StreamRequest{}, func(hits []index.Hit) error {
		if len(hits) > 0 {
			w.Errorf("a stream of no documents returned %d hits", len(hits))
		}
		return nil
	})
	if err != nil {
		w.Error(err)
	}
}

// RunManyValues checks that a facet with more values than a response has room for counts the others.
func RunManyValues(t *testing.T, open func(t *testing.T) index.Index) {
	t.Helper()
	w := &fixture{TB: t, x: open(t), reproduction: "many values"}
	tree, err := mapping.Parse([]byte(`{"properties":{"tags":{"type":"keyword"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	w.createAlias(tree)
	const more, each = 7, 1000
	documents := []change{{"last", `{"tags":["v000009","v000005"]}`}}
	for first := 0; first < index.MaxBuckets+more; first += each {
		var values strings.Builder
		for i := first; i < min(first+each, index.MaxBuckets+more); i++ {
			fmt.Fprintf(&values, `,"v%06d"`, i)
		}
		documents = append(documents, change{fmt.Sprint(first), `{"tags":[` + values.String()[1:] + `]}`})
	}
	w.writeUnread([][]change{documents})
	tags := w.sort("tags").Field
	r := w.search(index.SearchRequest{Facets: []index.Facet{{Field: tags, Buckets: &index.Buckets{Max: index.MaxBuckets}}, {Field: tags, Buckets: &index.Buckets{Max: 3}}}})
	if n := len(r.Facets[0].Buckets); n != index.MaxBuckets || r.Facets[0].Omitted != more {
		w.Errorf("%d values and %d more, want %d and %d", n, r.Facets[0].Omitted, index.MaxBuckets, more)
	}
	if got := asText(r.Facets[1].Buckets); got != "v000005=2 v000009=2 v000000=1" || r.Facets[1].Omitted != 0 {
		w.Errorf("%s and %d more", got, r.Facets[1].Omitted)
	}
}

// RunHidden checks that documents that a filter hides from the caller change nothing in what the caller's patterns find.
func RunHidden(t *testing.T, open func(t *testing.T) index.Index) {
	t.Helper()
	w := &fixture{TB: t, x: open(t), reproduction: "hidden documents"}
	tree, err := mapping.Parse([]byte(`{"properties":{"org":{"type":"keyword"},"address":{"type":"ip"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	w.createAlias(tree)
	var hidden strings.Builder
	for i := range 70_000 { // more than the values that may match one pattern
		fmt.Fprintf(&hidden, `,"10.%d.%d.%d"`, i>>16, i>>8&255, i&255)
	}
	w.writeUnread([][]change{{
		{"a", `{"org":"seen","address":["10.200.0.1","9.0.0.1"]}`},
		{"b", `{"org":"seen","address":"9.0.0.2"}`},
		{"c", `{"org":"hidden","address":[` + hidden.String()[1:] + `]}`},
	}})
	address := w.sort("address").Field
	pattern := &query.Node{Op: query.Patterns, Field: address, Patterns: []sqon.Pattern{"10.*"}, Fold: true}
	granted := query.Exactly(w.sort("org").Field, []string{"seen"})
	filter := query.Both(granted, pattern)
	r := w.search(index.SearchRequest{Filter: filter, Total: true, Facets: []index.Facet{{Field: address, Buckets: &index.Buckets{Max: 10, Filters: []*query.Node{pattern}}}}})
	if got := asText(r.Facets[0].Buckets); r.Total != 1 || got != "10.200.0.1=1 9.0.0.1=1" || r.Facets[0].Buckets[0].Filters[0] != 1 {
		t.Errorf("%d documents, %s", r.Total, got)
	}
	// The same pattern in two filters.
	results, err := w.x.Search(t.Context(), w.alias, []index.SearchRequest{
		{Filter: query.Both(filter, &query.Node{Op: query.Not, Children: []*query.Node{query.Exactly(address, []string{"10.200.0.1"})}}), Total: true},
		{Filter: query.Both(granted, &query.Node{Op: query.Not, Children: []*query.Node{pattern}}), Total: true},
		{Filter: filter, Total: true},
	})
	if err != nil || results[0].Total != 0 || results[1].Total != 1 || results[2].Total != 1 {
		t.Errorf("%+v, %v", results, err)
	}
	streamed := ""
	err = w.x.Stream(t.Context(), w.alias, index.StreamRequest{Filter: filter}, func(hits []index.Hit) error {
		streamed += letters(hits)
		return nil
	})
	if err != nil || streamed != "a" {
		t.Errorf("streamed %q, %v", streamed, err)
	}
}

func (w *fixture) checkMissingAlias() {
	w.Helper()
	alias := fmt.Sprintf("tutti-searchtest-none-%016x", rand.Uint64())
	_, err := w.x.Search(w.Context(), alias, []index.SearchRequest{w.fullRequest()})
	streamed := w.x.Stream(w.Context(), alias, index.StreamRequest{}, func([]index.Hit) error { return nil })
	for what, err := range map[string]error{"Search": err, "Stream": streamed} {
		if core.CodeOf(err) != core.CodeIndexBlocked || core.MessageOf(err) == "" {
			w.Errorf("%s: %v (%s), want %s with a message", what, err, core.CodeOf(err), core.CodeIndexBlocked)
		}
	}
}

func (w *fixture) checkCancelled() {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	if _, err := w.x.Search(ctx, w.alias, []index.SearchRequest{w.fullRequest()}); core.CodeOf(err) != core.CodeUnavailable {
		w.Errorf("Search: %v (%s), want %s", err, core.CodeOf(err), core.CodeUnavailable)
	}
	err := w.x.Stream(ctx, w.alias, index.StreamRequest{}, func([]index.Hit) error { return nil })
	if core.CodeOf(err) != core.CodeUnavailable {
		w.Errorf("Stream: %v (%s), want %s", err, core.CodeOf(err), core.CodeUnavailable)
	}
}

func (w *fixture) checkStreamError() {
	w.Helper()
	enough, calls := errors.New("enough"), 0
	err := w.x.Stream(w.Context(), w.alias, index.StreamRequest{}, func([]index.Hit) error {
		calls++
		return enough
	})
	if err != enough || calls != 1 { //nolint:errorlint // must be returned unwrapped
		w.Errorf("%v after %d calls, want the callback's error after one", err, calls)
	}
}

// checkStreamSnapshot changes all documents while they are streamed.
func (w *fixture) checkStreamSnapshot() {
	w.Helper()
	const documents = 3000
	other := w.ownAlias()
	var first, second []change
	for i := range documents {
		id := fmt.Sprintf("d%04d", i)
		first = append(first, change{id, `{"uid":"` + id + `","tags":"first"}`})
		second = append(second, change{id, `{"uid":"` + id + `","tags":"second"}`})
		if i%3 == 0 {
			second[i].source = ""
		}
	}
	other.write([][]change{first})
	for _, by := range [][]index.Sort{nil, {{Field: other.sort("uid").Field, Descending: true}}} {
		var got []string
		sources := maps.Clone(other.sources)
		err := other.x.Stream(w.Context(), other.alias, index.StreamRequest{Sort: by}, func(hits []index.Hit) error {
			if len(got) == 0 {
				other.write([][]change{second})
				second = first
			}
			for _, h := range hits {
				got = append(got, h.ID)
				if difference := model.DiffSource(h.Source, sources[h.ID], index.Source{}); difference != "" {
					w.Fatalf("%s: %s", h.ID, difference)
				}
			}
			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
		if by != nil {
			slices.Reverse(got)
		} else {
			slices.Sort(got)
		}
		want := slices.Sorted(maps.Keys(sources))
		if !slices.Equal(got, want) {
			w.Errorf("%d documents, or in another order, want the %d documents of the start", len(got), len(want))
		}
	}
}
