package searchtest

import (
	"fmt"
	"slices"
	"strings"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/tools/searchtest/model"
)

// The number of documents of the pages of orders: of the first ones up to smallPages, and of the others.
const (
	smallPage  = 7
	smallPages = 50
	largePage  = 997
)

// walk reads pages in an order.
type walk struct {
	index.HitsRequest
	got   []string
	ended bool
}

// checkOrders pages through all documents in every order by one field, and streams them.
func (w *fixture) checkOrders() {
	w.Helper()
	for _, name := range w.oracle.Fields.WithValues() {
		f := w.oracle.Fields.ByName[name].Field
		if !w.sortable(name, f) {
			continue
		}
		var walks []*walk
		for _, mode := range modesOf(f) {
			for n := range 4 {
				by := index.Sort{Field: f, Mode: mode, Descending: n&1 > 0, MissingFirst: n&2 > 0}
				walks = append(walks, &walk{HitsRequest: index.HitsRequest{Sort: []index.Sort{by, w.sort("uid")}, Size: smallPage, Source: index.Source{None: true}}})
			}
		}
		w.walkAll(walks)
	}
}

// walkAll reads the pages of several orders beside each other, and compares the documents.
func (w *fixture) walkAll(walks []*walk) {
	w.Helper()
	for open := slices.Clone(walks); len(open) > 0; {
		requests := make([]index.SearchRequest, len(open))
		for i, one := range open {
			requests[i].Hits = &one.HitsRequest
		}
		results, err := w.x.Search(w.Context(), w.alias, requests)
		if err != nil || len(results) != len(open) {
			for i, one := range open { // which of them
				if _, err := w.x.Search(w.Context(), w.alias, requests[i:i+1]); err != nil {
					w.differs(one.String(), "all documents", fmt.Sprintf("after %d: %v", len(one.got), err))
				}
			}
			return
		}
		for i, one := range open {
			w.add(one, results[i].Hits)
		}
		open = slices.DeleteFunc(open, func(one *walk) bool { return one.ended })
	}
	for _, one := range walks {
		want := w.expectedIDs(sqon.Filter{}, one.Sort)
		if !slices.Equal(one.got, want) {
			w.differs(one.String(), "all documents", w.diffOrder(one.got, want, one.Sort))
		}
		if one.Sort[0].Mode != "" {
			continue
		}
		var streamed []string
		err := w.x.Stream(w.Context(), w.alias, index.StreamRequest{Sort: one.Sort, Source: one.Source}, func(hits []index.Hit) error {
			streamed = append(streamed, idsOf(hits)...)
			return nil
		})
		if err != nil || !slices.Equal(streamed, want) {
			w.differs("stream, "+one.String(), "all documents", fmt.Sprintf("%v: %s", err, w.diffOrder(streamed, want, one.Sort)))
		}
	}
}

// add adds a page.
func (w *fixture) add(one *walk, hits []index.Hit) {
	w.Helper()
	one.got = append(one.got, idsOf(hits)...)
	if difference := w.diffSortValues(hits, one.Sort); difference != "" {
		w.differs(one.String(), "all documents", difference)
	}
	if one.ended = len(hits) < one.Size || len(one.got) > len(w.oracle.Documents); one.ended {
		return
	}
	one.After = hits[len(hits)-1].Sort
	if len(one.got) >= smallPages {
		one.Size = largePage
	}
}

// String describes the order.
func (o *walk) String() string {
	s := o.Sort[0]
	return fmt.Sprintf("pages by %s, mode %q, downwards %t, missing first %t", s.Field.Path, s.Mode, s.Descending, s.MissingFirst)
}

// diffOrder describes the first place at which two lists of documents differ, with the values by which they are sorted.
func (w *fixture) diffOrder(got, want []string, by []index.Sort) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d documents, want %d; the first difference is at %d\n", len(got), len(want), at)
	for what, ids := range map[string][]string{"got": got, "want": want} {
		for _, id := range ids[max(0, min(at-1, len(ids))):min(at+3, len(ids))] {
			fmt.Fprintf(&b, "%s %s", what, id)
			if i := slices.IndexFunc(w.oracle.Documents, func(d *model.Element) bool { return d.ID == id }); i >= 0 {
				for _, s := range by {
					fmt.Fprintf(&b, " %s", valuesText(s.Field, w.oracle.Documents[i]))
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String() + w.diffDocuments(got, want)
}

func valuesText(f query.Field, d *model.Element) string {
	var texts []string
	for _, v := range model.ValuesOf(f, d.At(f.Row())) {
		texts = append(texts, model.Key(model.ClassOf(f.Type), v))
		if model.ClassOf(f.Type) == model.DateClass {
			texts[len(texts)-1] = v.At.Format("2006-01-02T15:04:05.999999999Z")
		}
	}
	return "[" + strings.Join(texts, " ") + "]"
}
