package searchtest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/tools/searchtest/cases"
	"tutti/internal/tools/searchtest/draw"
	"tutti/internal/tools/searchtest/model"
)

// checkFacet compares a facet with its expected result.
func (w *fixture) checkFacet(c cases.Facet) {
	w.Helper()
	f := w.parse(c.Filter)
	ask := c.Ask
	ask.Field, ask.Missing, ask.Buckets = w.sort(c.Field).Field, true, &index.Buckets{Max: 100}
	if !query.Countable(ask.Field.Type) { // in the engine's dialect
		c.Buckets = ""
	}
	filters, err := query.Facet(w.Context(), f, c.Field, c.Themselves, w.oracle.Fields, setsOf)
	if err != nil {
		w.Fatal(err)
	}
	documents := filters.Documents
	ask.Elements = filters.Elements
	r := w.search(index.SearchRequest{Filter: documents, Facets: []index.Facet{ask}})
	if len(r.Facets) != 1 {
		w.Fatalf("%d facets", len(r.Facets))
	}
	readings, err := w.oracle.FacetScopes(f, c.Field, c.Themselves)
	if err != nil {
		w.Fatal(err)
	}
	for who, got := range map[string]index.FacetResult{"the engine": r.Facets[0], "the oracle": w.oracle.Facet(ask, readings[0], nil)} {
		buckets := asText(got.Buckets)
		if buckets != c.Buckets || got.Missing != c.Missing {
			w.Errorf("%s: %q and %d missing, want %q and %d", who, buckets, got.Missing, c.Buckets, c.Missing)
		}
		want := c.Want
		want.Buckets, want.Missing = got.Buckets, got.Missing
		if difference := diffFacet(model.ClassOf(ask.Field.Type), got, want); difference != "" {
			w.Errorf("%s: %s", who, difference)
		}
	}
	ask.Buckets = &index.Buckets{Max: 1}
	first, _, _ := strings.Cut(c.Buckets, " ")
	if got := asText(w.search(index.SearchRequest{Filter: documents, Facets: []index.Facet{ask}}).Facets[0].Buckets); got != first {
		w.Errorf("the first bucket is %q, want %q", got, first)
	}
}

func asText(buckets []index.Bucket) string {
	var texts []string
	for _, b := range buckets {
		texts = append(texts, fmt.Sprintf("%s=%d", b.Key, b.Count))
	}
	return strings.Join(texts, " ")
}

// checkOrder compares an order, as hits, by pages and as a stream.
func (w *fixture) checkOrder(c cases.Order) {
	w.Helper()
	c.Order.Field = w.sort(c.Field).Field
	by := []index.Sort{c.Order, w.sort("uid")}
	ask := index.HitsRequest{Sort: by, Size: 100, Source: index.Source{None: true}}
	if got := letters(w.search(index.SearchRequest{Hits: &ask}).Hits); got != c.Want {
		w.Errorf("%q, want %q", got, c.Want)
	}
	if got := strings.Join(w.expectedIDs(sqon.Filter{}, by), ""); got != c.Want {
		w.Errorf("the oracle: %q, want %q", got, c.Want)
	}
	ask.Size = 2
	got := ""
	for range c.Want {
		hits := w.search(index.SearchRequest{Hits: &ask}).Hits
		if len(hits) == 0 {
			break
		}
		got, ask.After = got+letters(hits), hits[len(hits)-1].Sort
	}
	if got != c.Want {
		w.Errorf("by pages %q, want %q", got, c.Want)
	}
	got = ""
	err := w.x.Stream(w.Context(), w.alias, index.StreamRequest{Sort: by}, func(hits []index.Hit) error {
		got += letters(hits)
		return nil
	})
	if err != nil || got != c.Want {
		w.Errorf("as a stream %q, %v, want %q", got, err, c.Want)
	}
}

// checkMissingInPivot checks that the documents without a value below a pivot are those that choosing __missing__ inside the pivot finds.
func (w *fixture) checkMissingInPivot() {
	w.Helper()
	big, second := cases.In("files.size", "20"), cases.In("files.index.size", "2")
	for _, c := range []struct{ field, path, clause, beside, want string }{
		{"files.type", "files", big, "", "d"},
		{"files.type", "files", big, cases.In("donor.sex", `"M"`), ""},
		{"files.type", "files", cases.In("files.size", "10"), big, "d"}, // a clause beside the pivot may hold for another element
		{"files.index.type", "files", big, "", "a"},                     // the pivot is above the field's own path
		{"files.index.part.n", "files.index", second, big, "b"},
		{"files.index.part.n", "files.index", second, cases.Pivot("files", "and", big), "b"},
		{"kin.sex", "files", big, "", ""}, // the field is not below the pivot
	} {
		with := func(choice ...string) string {
			members := []string{cases.Pivot(c.path, "and", append(choice, c.clause)...)}
			if c.beside != "" {
				members = append(members, c.beside)
			}
			return cases.Group("and", members...)
		}
		filters, err := query.Facet(w.Context(), w.parse(with()), c.field, false, w.oracle.Fields, setsOf)
		if err != nil {
			w.Fatal(err)
		}
		field := w.sort(c.field).Field
		missing := filters.MissingInPivot(field)
		if !slices.Contains(field.Nested, c.path) {
			if missing != nil {
				w.Errorf("%s has a condition of a pivot on %s", c.field, c.path)
			}
			continue
		}
		w.checkFilter(with(cases.In(c.field, `"__missing__"`)), c.want)
		hits := index.HitsRequest{Sort: []index.Sort{w.sort("uid")}, Size: 100, Source: index.Source{None: true}}
		if got := letters(w.search(index.SearchRequest{Filter: query.Both(filters.Documents, missing), Hits: &hits}).Hits); got != c.want {
			w.Errorf("%s in %s: %q, want %q", c.field, with(), got, c.want)
		}
	}
}

// checkBucketFilters checks that a filter by each bucket matches as many documents as the bucket counts.
func (w *fixture) checkBucketFilters() {
	w.Helper()
	for _, name := range w.oracle.Fields.WithValues() {
		field := w.sort(name).Field
		if !query.Countable(field.Type) {
			continue
		}
		r := w.search(index.SearchRequest{Facets: []index.Facet{{Field: field, Buckets: &index.Buckets{Max: 100}, Missing: true}}})
		choices := append(slices.Clone(r.Facets[0].Buckets), index.Bucket{Key: "__missing__", Count: r.Facets[0].Missing})
		for _, b := range choices {
			chosen := index.SearchRequest{Filter: w.lower(cases.In(name, draw.Quoted(sqon.Escape(b.Key)))), Total: true}
			if total := w.search(chosen).Total; total != b.Count {
				w.Errorf("%s: the bucket %q counts %d, choosing it finds %d", name, b.Key, b.Count, total)
			}
		}
	}
}

// invalidRequests returns requests that every engine rejects, with the expected message.
func (w *fixture) invalidRequests() map[string]struct {
	ask  index.SearchRequest
	want string
} {
	w.Helper()
	type invalidRequest = struct {
		ask  index.SearchRequest
		want string
	}
	by := func(f query.Field, mode string) index.SearchRequest {
		return index.SearchRequest{Hits: &index.HitsRequest{Sort: []index.Sort{{Field: f, Mode: mode}}, Size: 10}}
	}
	of := func(f index.Facet) index.SearchRequest { return index.SearchRequest{Facets: []index.Facet{f}} }
	note, tags, age, size := w.sort("note").Field, w.sort("tags").Field, w.sort("donor.age").Field, w.sort("files.size").Field
	unsigned := query.Field{Path: "unsigned", Type: "unsigned_long"}
	const (
		analyzed = "the field \"note\" is analyzed text, which supports neither facets nor sorting"
		interval = "the histogram interval of the field \"donor.age\" must be at least 1e-100 and finite"
		buckets  = "the number of buckets of the field \"tags\" must be between 1 and 300000"
		tops     = "the number of top hits per bucket of the field \"tags\" must be between 0 and 100"
		integers = "the field \"unsigned\" has unsigned integers, which sort only by min or max"
	)
	return map[string]invalidRequest{
		"buckets of a text":             {of(index.Facet{Field: note, Buckets: &index.Buckets{Max: 10}}), analyzed},
		"cardinality of a text":         {of(index.Facet{Field: note, Cardinality: 10}), analyzed},
		"the order of a text":           {by(note, ""), analyzed},
		"the sum of texts":              {by(tags, "sum"), "the field \"tags\" has text values, which sort only by min or max"},
		"an unknown mode":               {by(age, "first"), "the sort mode of the field \"donor.age\" must be min, max, sum, avg or median"},
		"the median of elements":        {by(size, "median"), "the field \"files.size\" is nested, and nested fields do not sort by median"},
		"an average without sign":       {by(unsigned, "avg"), integers},
		"a sum without sign":            {by(unsigned, "sum"), integers},
		"a median without sign":         {by(unsigned, "median"), integers},
		"no bucket":                     {of(index.Facet{Field: tags, Buckets: &index.Buckets{}}), buckets},
		"too many buckets":              {of(index.Facet{Field: tags, Buckets: &index.Buckets{Max: index.MaxBuckets + 1}}), buckets},
		"too many top hits":             {of(index.Facet{Field: tags, Buckets: &index.Buckets{Max: 1, TopHits: index.MaxTopHits + 1}}), tops},
		"less than no top hits":         {of(index.Facet{Field: tags, Buckets: &index.Buckets{Max: 1, TopHits: -1}}), tops},
		"an interval backwards":         {of(index.Facet{Field: age, Histogram: -1}), interval},
		"a tiny interval":               {of(index.Facet{Field: age, Histogram: index.MinInterval / 2}), interval},
		"an endless interval":           {of(index.Facet{Field: age, Histogram: math.Inf(1)}), interval},
		"an interval that is no number": {of(index.Facet{Field: age, Histogram: math.NaN()}), interval},
		"more intervals than given":     {of(index.Facet{Field: age, Histogram: 0.001}), "a histogram of the field \"donor.age\" with an interval of 0.001 would have more than 10000 intervals"},
	}
}

// checkInvalidRequests runs invalid requests.
func (w *fixture) checkInvalidRequests() {
	w.Helper()
	for what, r := range w.invalidRequests() {
		_, err := w.x.Search(w.Context(), w.alias, []index.SearchRequest{r.ask})
		if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != r.want {
			w.Errorf("%s: %q of code %q, want %q (%v)", what, core.MessageOf(err), core.CodeOf(err), r.want, err)
		}
		if r.ask.Hits == nil {
			continue
		}
		err = w.x.Stream(w.Context(), w.alias, index.StreamRequest{Sort: r.ask.Hits.Sort}, func([]index.Hit) error { return nil })
		if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != r.want {
			w.Errorf("%s in a stream: %q of code %q, want %q (%v)", what, core.MessageOf(err), core.CodeOf(err), r.want, err)
		}
	}
	note := w.sort("note")
	r := w.search(index.SearchRequest{Facets: []index.Facet{{Field: note.Field, Missing: true}}})
	if r.Facets[0].Missing != 4 {
		w.Errorf("%d documents without a note, want 4", r.Facets[0].Missing)
	}
}
