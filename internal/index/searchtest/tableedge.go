package searchtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/index/query"
	"tutti/internal/sqon"
)

// everything asks for a bit of all that can be asked.
func (w *world) everything() index.SearchRequest {
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

// ids asks for documents by their ids.
func (w *world) ids() {
	w.Helper()
	id := query.Field{Path: "_id", Type: "keyword"}
	some := &query.Node{Op: query.Terms, Field: id, Terms: []string{"a", "c", "g", "none"}}
	for want, n := range map[string]*query.Node{
		"ac":     some,
		"bdef":   {Op: query.Not, Children: []*query.Node{some}},
		"abcdef": {Op: query.Exists, Field: id},
		"c":      {Op: query.And, Children: []*query.Node{some, w.lower(in("score", `0`))}},
		"":       {Op: query.Terms, Field: id, Terms: []string{"g"}},
	} {
		ask := index.HitsRequest{Size: 100, Sort: []index.Sort{w.sort("uid")}, Source: index.Source{None: true}}
		if got := letters(w.search(index.SearchRequest{Filter: n, Hits: &ask}).Hits); got != want {
			w.Errorf("%v %v finds %q, want %q", n.Op, n.Terms, got, want)
		}
	}
}

// alone returns the same engine with an alias of its own.
func (w *world) alone() *world {
	w.Helper()
	tree, err := mapping.Parse([]byte(tableMapping))
	if err != nil {
		w.Fatal(err)
	}
	out := *w
	out.begin(tree)
	return &out
}

func (w *world) empty() {
	w.Helper()
	other := w.alone()
	r := other.search(other.everything())
	if r.Total != 0 || len(r.Hits) != 0 || len(r.Facets) != 2 {
		w.Fatalf("%+v", r)
	}
	if d := sameFacet(textClass, r.Facets[0], index.FacetResult{}); d != "" {
		w.Error(d)
	}
	if d := sameFacet(integerClass, r.Facets[1], index.FacetResult{Ranges: []int64{0}}); d != "" {
		w.Error(d)
	}
	err := other.x.Stream(w.Context(), other.alias, index.StreamRequest{}, func(hits []index.Hit) error {
		if len(hits) > 0 {
			w.Errorf("a stream of nothing gave %d hits", len(hits))
		}
		return nil
	})
	if err != nil {
		w.Error(err)
	}
}

func (w *world) missing() {
	w.Helper()
	alias := fmt.Sprintf("tutti-searchtest-none-%016x", rand.Uint64())
	_, err := w.x.Search(w.Context(), alias, []index.SearchRequest{w.everything()})
	streamed := w.x.Stream(w.Context(), alias, index.StreamRequest{}, func([]index.Hit) error { return nil })
	for what, err := range map[string]error{"Search": err, "Stream": streamed} {
		if core.CodeOf(err) != core.CodeIndexBlocked || core.MessageOf(err) == "" {
			w.Errorf("%s: %v (%s), want one of %s with a message", what, err, core.CodeOf(err), core.CodeIndexBlocked)
		}
	}
}

func (w *world) ended() {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	if _, err := w.x.Search(ctx, w.alias, []index.SearchRequest{w.everything()}); core.CodeOf(err) != core.CodeUnavailable {
		w.Errorf("Search: %v (%s), want one of %s", err, core.CodeOf(err), core.CodeUnavailable)
	}
	err := w.x.Stream(ctx, w.alias, index.StreamRequest{}, func([]index.Hit) error { return nil })
	if core.CodeOf(err) != core.CodeUnavailable {
		w.Errorf("Stream: %v (%s), want one of %s", err, core.CodeOf(err), core.CodeUnavailable)
	}
}

// pages goes on from page to page over documents of several segments, of which about half have a value of each type.
func (w *world) pages() {
	w.Helper()
	other := w.alone()
	batches := make([][]change, 2)
	for i := range 20 {
		id := fmt.Sprintf("d%02d", i)
		source := `{"uid":"` + id + `"`
		if i*i%5 == 1 {
			x := []string{"0", "1", "2", "3", "2048", "65504"}[i*7%6]
			source += `,"weight":` + x + `,"score":` + x + `,"donor":{"age":` + x + `},"files":[{"size":` + x + `}],"at":` + x + `,"tags":"` + x + `","open":true,"address":"10.0.0.` + x[:1] + `","info":{"x":"` + x + `"}`
		}
		batches[i*3%7%2] = append(batches[i*3%7%2], change{id, source + "}"})
	}
	other.write(batches)
	for _, name := range []string{"weight", "score", "donor.age", "files.size", "at", "tags", "open", "address", "info"} {
		for n := range 8 {
			first := index.Sort{Field: other.sort(name).Field, Descending: n&1 > 0, MissingFirst: n&2 > 0}
			ask := index.HitsRequest{Size: 2 + n/4, Sort: []index.Sort{first, other.sort("uid")}, Source: index.Source{None: true}}
			var got []string
			for range 20 {
				hits := other.search(index.SearchRequest{Hits: &ask}).Hits
				for _, h := range hits {
					got = append(got, h.ID)
				}
				if difference := other.samePlaces(hits, ask.Sort); difference != "" {
					w.Errorf("%s, downwards %t, missing first %t: %s", name, first.Descending, first.MissingFirst, difference)
				}
				if len(hits) < ask.Size {
					break
				}
				ask.After = hits[len(hits)-1].Sort
			}
			if want := other.inOrder(sqon.Filter{}, ask.Sort); !slices.Equal(got, want) {
				w.Errorf("%s, pages of %d, downwards %t, missing first %t:\n got %q\nwant %q", name, ask.Size, first.Descending, first.MissingFirst, got, want)
			}
		}
	}
}

func (w *world) streamEnds() {
	w.Helper()
	enough, calls := errors.New("enough"), 0
	err := w.x.Stream(w.Context(), w.alias, index.StreamRequest{}, func([]index.Hit) error {
		calls++
		return enough
	})
	if err != enough || calls != 1 { //nolint:errorlint // it is to come back as it is
		w.Errorf("%v after %d calls, want the callback's own after one", err, calls)
	}
}

// moment changes all documents while they are streamed.
func (w *world) moment() {
	w.Helper()
	const documents = 3000
	other := w.alone()
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
				if difference := sameSource(h.Source, sources[h.ID], index.Source{}); difference != "" {
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
			w.Errorf("%d documents, or not in their order, want the %d of the beginning", len(got), len(want))
		}
	}
}
