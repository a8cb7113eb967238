package searchtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/tools/searchtest/draw"
	"tutti/internal/tools/searchtest/model"
)

// drawProbes returns random probes with a filter; facet is the field of one of the facets.
func (w *fixture) drawProbes(d draw.Choices, maker *draw.Filters, f sqon.Filter, facet string) []probe {
	out := []probe{w.hitsProbe(d, maker, f)}
	if d.Percent(30) {
		out = append(out, w.pageProbe(d, maker, f))
	}
	for i := range d.Between(0, 2) {
		if i > 0 {
			facet = draw.Pick(d, maker.Leaves)
		}
		if w.countable(w.oracle.Fields.ByName[facet].Field) {
			out = append(out, w.facetProbe(d, maker, f, facet))
		}
	}
	return out
}

// hitsProbe returns a probe for a page of documents.
func (w *fixture) hitsProbe(d draw.Choices, maker *draw.Filters, f sqon.Filter) probe {
	ask := index.HitsRequest{Sort: w.order(d, maker), Size: 1000, Source: w.source(d)}
	if d.Percent(30) {
		ask.From, ask.Size = d.IntN(10), d.IntN(10)
	}
	total := d.Percent(70)
	return probe{
		what: fmt.Sprintf("hits %+v", ask), filter: f,
		build: func(ctx context.Context, f sqon.Filter) (index.SearchRequest, diffFunc, error) {
			n, err := query.Lower(ctx, f, w.oracle.Fields, setsOf)
			want := w.expectedIDs(f, ask.Sort)
			return index.SearchRequest{Filter: n, Total: total, Hits: &ask}, func(r index.SearchResult) string {
				page := want[min(ask.From, len(want)):min(ask.From+ask.Size, len(want))]
				if total && r.Total != int64(len(want)) {
					return fmt.Sprintf("Total %d, want %d", r.Total, len(want))
				}
				return w.diffHits(r.Hits, page, ask)
			}, err
		},
	}
}

// order returns a random order without equal documents.
func (w *fixture) order(d draw.Choices, maker *draw.Filters) []index.Sort {
	var out []index.Sort
	for d.Percent(40) && len(out) < 3 {
		name := draw.Pick(d, maker.Leaves)
		f := w.oracle.Fields.ByName[name].Field
		if !w.sortable(name, f) {
			continue
		}
		out = append(out, index.Sort{Field: f, Descending: d.Percent(50), Mode: draw.Pick(d, modesOf(f)), MissingFirst: d.Percent(40)})
	}
	last := index.Sort{Field: w.oracle.Fields.ByName["uid"].Field, Descending: d.Percent(30)}
	if d.Percent(30) {
		last.Field = query.Field{Path: "_id", Type: "keyword"}
	}
	return append(out, last)
}

// countable reports whether a field has facets and orders.
func (w *fixture) countable(f query.Field) bool {
	return query.Countable(f.Type) && !slices.Contains(w.uncounted, f.Path)
}

// sortable reports whether a field has an order. That of a negative zero among zeros is free.
func (w *fixture) sortable(name string, f query.Field) bool {
	return w.countable(f) && (!strings.HasPrefix(name, "near.") || model.ClassOf(f.Type) != model.FractionClass)
}

// modesOf returns the modes that a field can be sorted by.
func modesOf(f query.Field) []string {
	return slices.DeleteFunc([]string{"", "min", "max", "sum", "avg", "median"}, func(mode string) bool {
		return (&index.Sort{Field: f, Mode: mode}).Check() != nil
	})
}

// largest returns the largest absolute value of a field.
func (w *fixture) largest(f query.Field) float64 {
	largest := 0.0
	for _, d := range w.oracle.Documents {
		for _, v := range model.ValuesOf(f, d.At(f.Row())) {
			largest = max(largest, math.Abs(model.Float(model.ClassOf(f.Type), v)))
		}
	}
	return largest
}

// source returns a random part of documents to request.
func (w *fixture) source(d draw.Choices) index.Source {
	switch d.IntN(3) {
	case 0:
		return index.Source{None: true}
	case 1:
		return index.Source{}
	}
	var paths []string
	for _, name := range w.oracle.Fields.Listed {
		f := w.oracle.Fields.ByName[name]
		above := w.oracle.Fields.ByName[model.ParentOf(name)]
		if f.Path == name && (above.Mapped == nil || above.Mapped.Container()) && d.Percent(20) {
			paths = append(paths, name)
		}
	}
	if paths == nil {
		paths = []string{"uid"}
	}
	return index.Source{Paths: paths}
}

// expectedIDs returns the sorted ids of the documents that match.
func (w *fixture) expectedIDs(f sqon.Filter, by []index.Sort) []string {
	found := w.oracle.Find(f)
	documents := slices.DeleteFunc(slices.Clone(w.oracle.Documents), func(d *model.Element) bool {
		_, is := slices.BinarySearch(found, d.ID)
		return !is
	})
	ids := []string{}
	for _, d := range w.oracle.Sorted(documents, by) {
		ids = append(ids, d.ID)
	}
	return ids
}

// checkPages reads all documents page by page.
func (w *fixture) checkPages(d draw.Choices, maker *draw.Filters, f sqon.Filter) {
	w.Helper()
	ask := index.HitsRequest{Sort: w.order(d, maker), Size: d.Between(1, 7) + len(w.oracle.Documents)/10, Source: index.Source{None: true}}
	what := fmt.Sprintf("pages %+v", ask)
	n, err := query.Lower(w.Context(), f, w.oracle.Fields, setsOf)
	if err != nil {
		w.differs(what, filterText(f), err.Error())
		return
	}
	want := w.expectedIDs(f, ask.Sort)
	got := []string{}
	for len(got) <= len(want) {
		results, err := w.x.Search(w.Context(), w.alias, []index.SearchRequest{{Filter: n, Hits: &ask}})
		if err != nil || len(results) != 1 {
			w.differs(what, filterText(f), "Search: "+errorText(err))
			return
		}
		hits := results[0].Hits
		for _, h := range hits {
			got = append(got, h.ID)
		}
		if difference := w.diffSortValues(hits, ask.Sort); difference != "" {
			w.differs(what, filterText(f), difference)
			return
		}
		if len(hits) < ask.Size {
			break
		}
		ask.After = hits[len(hits)-1].Sort
	}
	if !slices.Equal(got, want) {
		w.differs(what, filterText(f), w.diffOrder(got, want, ask.Sort))
	}
}

// checkStream streams all documents.
func (w *fixture) checkStream(d draw.Choices, maker *draw.Filters, f sqon.Filter) {
	w.Helper()
	ask := index.StreamRequest{Source: w.source(d)}
	if d.Percent(60) {
		ask.Sort = w.order(d, maker)
	}
	what := fmt.Sprintf("stream %+v", ask)
	var err error
	if ask.Filter, err = query.Lower(w.Context(), f, w.oracle.Fields, setsOf); err != nil {
		w.differs(what, filterText(f), err.Error())
		return
	}
	var hits []index.Hit
	err = w.x.Stream(w.Context(), w.alias, ask, func(some []index.Hit) error {
		if difference := w.diffSortValues(some, ask.Sort); some[0].Sort != nil && difference != "" {
			w.differs(what, filterText(f), difference)
		}
		for _, h := range some {
			hits = append(hits, index.Hit{ID: h.ID, Source: slices.Clone(h.Source)})
		}
		return nil
	})
	if err != nil {
		w.differs(what, filterText(f), "Stream: "+err.Error())
		return
	}
	if ask.Sort == nil {
		slices.SortFunc(hits, func(a, b index.Hit) int { return strings.Compare(a.ID, b.ID) })
		ask.Sort = []index.Sort{{Field: query.Field{Path: "_id"}}}
	}
	if difference := w.diffHits(hits, w.expectedIDs(f, ask.Sort), index.HitsRequest{Source: ask.Source}); difference != "" {
		w.differs(what, filterText(f), difference)
	}
}

// diffHits returns how hits differ from the expected documents, "" for equal.
func (w *fixture) diffHits(hits []index.Hit, want []string, ask index.HitsRequest) string {
	got := []string{}
	for _, h := range hits {
		got = append(got, h.ID)
	}
	if !slices.Equal(got, want) {
		return w.diffOrder(got, want, ask.Sort)
	}
	for _, h := range hits[:min(len(hits), 20)] { // of which reading more takes most of the time
		if difference := model.DiffSource(h.Source, w.sources[h.ID], ask.Source); difference != "" {
			return h.ID + ": " + difference
		}
	}
	return ""
}

// diffSortValues returns the first hit whose sort value is null although its document has a value, or the reverse.
func (w *fixture) diffSortValues(hits []index.Hit, by []index.Sort) string {
	for _, h := range hits {
		if len(h.Sort) != len(by) {
			return fmt.Sprintf("%s has the sort values %s in an order of %d keys", h.ID, h.Sort, len(by))
		}
		at, known := slices.BinarySearchFunc(w.oracle.Documents, h.ID, func(d *model.Element, id string) int { return strings.Compare(d.ID, id) })
		if !known {
			continue // reported by diffHits
		}
		for i, s := range by {
			valued := w.oracle.RanksBy(s)[w.oracle.Documents[at]] > 0
			if null := string(h.Sort[i]) == "null"; null == valued {
				return fmt.Sprintf("%s has the sort value %s by %s, whose values are %s", h.ID, h.Sort[i], s.Field.Path, valuesText(s.Field, w.oracle.Documents[at]))
			}
		}
	}
	return ""
}

// diffDocuments returns the documents that are in only one of two lists.
func (w *fixture) diffDocuments(got, want []string) string {
	var text strings.Builder
	const most = 10_000 // bytes
	for _, id := range got {
		if !slices.Contains(want, id) && text.Len() < most {
			fmt.Fprintf(&text, "unexpected: %s %s\n", id, w.sources[id])
		}
	}
	for _, id := range want {
		if !slices.Contains(got, id) && text.Len() < most {
			fmt.Fprintf(&text, "missing: %s %s\n", id, w.sources[id])
		}
	}
	return text.String()
}
