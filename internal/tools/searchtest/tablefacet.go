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
	"tutti/internal/tools/searchtest/model"
)

// facetCase is a facet with its expected buckets, each as key=count, and number of documents without a value.
type facetCase struct {
	name, filter, field string
	themselves          bool
	buckets             string
	missing             int64
	// ask and want are further parameters of the facet, and their expected result.
	ask  index.Facet
	want index.FacetResult
}

func facetCases() []facetCase {
	bam := in("files.type", `"bam"`)
	return []facetCase{
		{name: "documents are counted, not elements", filter: `{}`, field: "files.type", buckets: "bam=2 vcf=2", missing: 3},
		{name: "a clause on the field does not narrow it", filter: bam, field: "files.type", buckets: "bam=2 vcf=2", missing: 3},
		{name: "themselves: it does", filter: bam, field: "files.type", themselves: true, buckets: "bam=2"},
		{name: "also under not", filter: group("not", bam), field: "files.type", buckets: "bam=2 vcf=2", missing: 3},
		{name: "also beside others", filter: group("and", bam, in("sex", `"M"`)), field: "files.type", buckets: "bam=1"},
		{name: "also below a pivot", filter: pivot("files", "and", bam, in("files.size", `20`)), field: "files.type", buckets: "bam=1 vcf=1", missing: 1},
		{name: "also when the pivot is its own", filter: pivot("files", "and", bam), field: "files.type", buckets: "bam=2 vcf=2", missing: 3},
		{name: "also by an alias", filter: in("sex", `"F"`), field: "donor.sex", buckets: "F=2 =1 M=1", missing: 2},
		{name: "themselves below a pivot", filter: pivot("files", "and", bam, in("files.size", `20`)), field: "files.type", themselves: true, buckets: "bam=1"},
		{name: "an or with another field does narrow it", filter: group("or", bam, in("sex", `"M"`)), field: "files.type", buckets: "bam=2 vcf=1"},
		{name: "another field narrows documents", filter: in("sex", `"F"`), field: "files.type", buckets: "vcf=2 bam=1"},
		{name: "a sibling narrows elements", filter: in("files.size", `10`), field: "files.type", buckets: "bam=1 vcf=1", missing: 1},
		{name: "a pivot narrows elements", filter: pivot("files", "and", in("files.size", `20`)), field: "files.type", buckets: "bam=1 vcf=1", missing: 1},
		{name: "a pivot with a wildcard inside and outside of it narrows elements", filter: pivot("files", "and", in("files.size", `20`), wildcard("x", "files.type", "tags")), field: "files.type", buckets: "bam=1 vcf=1"},
		{name: "its clause on the field does not", filter: pivot("files", "and", in("files.size", `20`), wildcard("x", "files.type", "tags")), field: "files.size", buckets: "20=2 10=1 30=1"},
		{name: "an or inside and outside of a pivot narrows elements", filter: pivot("files", "or", in("files.size", `20`), group("and", in("files.size", `30`), in("donor.sex", `"M"`))), field: "files.type", buckets: "bam=1 vcf=1", missing: 1},
		{name: "all over elements narrows to any", filter: clause("all", "files.type", `["bam","vcf"]`), field: "files.size", buckets: "10=1 20=1"},
		{name: "all of nothing narrows nothing", filter: clause("all", "files.size", `[]`), field: "files.type", buckets: "bam=2 vcf=2", missing: 3},
		{name: "missing elements", filter: in("files.type", `"__missing__"`), field: "files.size", buckets: "10=1 20=1", missing: 2},
		{name: "missing themselves", filter: in("files.type", `"__missing__"`), field: "files.type", themselves: true, missing: 3},
		{name: "two deep", filter: `{}`, field: "files.index.type", buckets: "bai=2 csi=2", missing: 3},
		{name: "two deep, a sibling", filter: in("files.index.size", `2`), field: "files.index.type", buckets: "bai=1 csi=1"},
		{name: "two deep, a clause above narrows only documents", filter: in("files.size", `20`), field: "files.index.type", buckets: "bai=2 csi=2"},
		{name: "three deep", filter: `{}`, field: "files.index.part.n", buckets: "2=2 1=1", missing: 4},
		{name: "three deep themselves", filter: in("files.index.part.n", `1`), field: "files.index.part.n", themselves: true, buckets: "1=1"},
		{name: "by count, then by bytes", filter: `{}`, field: "tags", buckets: "x=2 HLA-A*02:01=1 y=1", missing: 3},
		{name: "by count, then by value", filter: `{}`, field: "donor.age", buckets: "0=1 7=1 40=1 50=1 60=1", missing: 2},
		{name: "booleans", filter: `{}`, field: "open", buckets: "false=2 true=1", missing: 3},
		{name: "dates", filter: `{}`, field: "at", buckets: "1709596800000=1 1709634030000=1 1709634030123=1 1735689600000=1", missing: 2},
		{name: "fractions, one that occurs twice", filter: `{}`, field: "score", buckets: "0=1 0.5=1 2=1", missing: 3},
		{name: "addresses", filter: `{}`, field: "address", buckets: "10.0.0.1=1", missing: 5},
		{name: "texts in lower case", filter: `{}`, field: "code", buckets: "foo=2 bär=1", missing: 3},
		{name: "ranges have no buckets", filter: `{}`, field: "whole", missing: 3},
		{name: "places have no buckets", filter: `{}`, field: "place", missing: 3},
		{name: "flattened", filter: `{}`, field: "info", buckets: "v=1", missing: 5},
		{name: "no documents", filter: in("tags", `[]`), field: "files.type"},
	}
}

// valueCases returns cases of statistics and of counts of numbers.
func valueCases() []facetCase {
	bam := in("files.type", `"bam"`)
	return []facetCase{
		{
			name: "statistics, intervals and ranges of documents", filter: `{}`, field: "donor.age",
			buckets: "0=1 7=1 40=1 50=1 60=1", missing: 2,
			ask: index.Facet{Cardinality: 100, Stats: true, Histogram: 25, Ranges: []index.NumberRange{{To: new(float64(40))}, {From: new(float64(40))}, {}}},
			want: index.FacetResult{
				Cardinality: 5, Stats: index.Stats{Min: 0, Max: 60, Sum: 157, Avg: 31.4, Count: 5},
				Histogram: []index.Interval{{Key: 0, Count: 2}, {Key: 25, Count: 1}, {Key: 50, Count: 1}}, Ranges: []int64{2, 2, 4},
			},
		},
		{
			name: "of elements that count", filter: bam, field: "files.size", buckets: "10=1 20=1 30=1",
			ask: index.Facet{Cardinality: 100, Stats: true, Histogram: 10, Ranges: []index.NumberRange{{To: new(float64(20))}, {From: new(float64(20))}}},
			want: index.FacetResult{
				Cardinality: 3, Stats: index.Stats{Min: 10, Max: 30, Sum: 60, Avg: 20, Count: 3},
				Histogram: []index.Interval{{Key: 10, Count: 1}, {Key: 20, Count: 1}, {Key: 30, Count: 1}}, Ranges: []int64{1, 1},
			},
		},
		{
			name: "a value counts as often as it occurs, an interval may be empty", filter: `{}`, field: "score", buckets: "0=1 0.5=1 2=1", missing: 3,
			ask: index.Facet{Stats: true, Histogram: 0.5},
			want: index.FacetResult{
				Stats:     index.Stats{Min: 0, Max: 2, Sum: 4.5, Avg: 1.125, Count: 4},
				Histogram: []index.Interval{{Key: 0, Count: 1}, {Key: 0.5, Count: 1}, {Key: 1}, {Key: 1.5}, {Key: 2, Count: 1}},
			},
		},
		{
			name: "milliseconds of dates", filter: in("at", `"2024-03-05T10"`), field: "at", themselves: true, buckets: "1709634030000=1 1709634030123=1",
			ask: index.Facet{Stats: true, Histogram: 100, Ranges: []index.NumberRange{{From: new(float64(1709634030000)), To: new(float64(1709634030123))}}},
			want: index.FacetResult{
				Stats:     index.Stats{Min: 1709634030000, Max: 1709634030123, Sum: 3419268060123, Avg: 1709634030061.5, Count: 2},
				Histogram: []index.Interval{{Key: 1709634030000, Count: 1}, {Key: 1709634030100, Count: 1}}, Ranges: []int64{1},
			},
		},
		{name: "of nothing", filter: in("tags", `[]`), field: "donor.age", ask: index.Facet{Cardinality: 100, Stats: true, Histogram: 1}},
		{
			name: "texts have no statistics", filter: `{}`, field: "tags", buckets: "x=2 HLA-A*02:01=1 y=1", missing: 3,
			ask: index.Facet{Stats: true, Cardinality: 100}, want: index.FacetResult{Cardinality: 3},
		},
	}
}

// orderCase is an order and the sorted documents, each a letter.
type orderCase struct {
	name, field string
	order       index.Sort
	want        string
}

func orderCases() []orderCase {
	return []orderCase{
		{name: "upwards by the least", field: "donor.age", want: "deabcf"},
		{name: "downwards by the most", field: "donor.age", order: index.Sort{Descending: true}, want: "baedcf"},
		{name: "missing first", field: "donor.age", order: index.Sort{MissingFirst: true}, want: "cfdeab"},
		{name: "missing first downwards", field: "donor.age", order: index.Sort{Descending: true, MissingFirst: true}, want: "cfbaed"},
		{name: "upwards by the most", field: "files.size", order: index.Sort{Mode: "max"}, want: "eadbcf"},
		{name: "downwards by the least", field: "files.size", order: index.Sort{Mode: "min", Descending: true}, want: "badecf"},
		{name: "elements by the least", field: "files.size", want: "adebcf"},
		{name: "elements by the sum", field: "files.size", order: index.Sort{Mode: "sum"}, want: "eadbcf"},
		{name: "elements by the average", field: "files.size", order: index.Sort{Mode: "avg", Descending: true}, want: "badecf"},
		{name: "two deep", field: "files.index.size", order: index.Sort{Descending: true}, want: "bdacef"},
		{name: "three deep", field: "files.index.part.n", order: index.Sort{Mode: "sum", Descending: true}, want: "adbcef"},
		{name: "the median", field: "donor.age", order: index.Sort{Mode: "median"}, want: "deabcf"},
		{name: "texts by their bytes", field: "tags", want: "eabcdf"},
		{name: "texts downwards", field: "tags", order: index.Sort{Descending: true}, want: "abecdf"},
		{name: "booleans", field: "open", want: "bcadef"},
		{name: "addresses by their bits", field: "from", want: "cbadef"},
		{name: "addresses downwards", field: "from", order: index.Sort{Descending: true}, want: "cadbef"},
		{name: "addresses by the highest", field: "from", order: index.Sort{Mode: "max", MissingFirst: true}, want: "efbdac"},
		{name: "dates", field: "at", order: index.Sort{Descending: true}, want: "cdbaef"},
		{name: "small fractions", field: "weight", want: "dabcef"},
		{name: "small fractions downwards, missing first", field: "weight", order: index.Sort{Descending: true, MissingFirst: true}, want: "cefbad"},
		{name: "fractions", field: "score", order: index.Sort{Mode: "sum", Descending: true}, want: "eacbdf"},
	}
}

// checkFacet compares a facet with its expected result.
func (w *fixture) checkFacet(c facetCase) {
	w.Helper()
	f := w.parse(c.filter)
	ask := c.ask
	ask.Field, ask.Missing, ask.Buckets = w.sort(c.field).Field, true, &index.Buckets{Max: 100}
	if !query.Countable(ask.Field.Type) { // in the engine's dialect
		c.buckets = ""
	}
	filters, err := query.Facet(w.Context(), f, c.field, c.themselves, w.oracle.fields, setsOf)
	if err != nil {
		w.Fatal(err)
	}
	documents := filters.Documents
	ask.Elements = filters.Elements
	r := w.search(index.SearchRequest{Filter: documents, Facets: []index.Facet{ask}})
	if len(r.Facets) != 1 {
		w.Fatalf("%d facets", len(r.Facets))
	}
	readings, err := w.oracle.facetScopes(f, c.field, c.themselves)
	if err != nil {
		w.Fatal(err)
	}
	for who, got := range map[string]index.FacetResult{"the engine": r.Facets[0], "the oracle": w.oracle.facet(ask, readings[0], nil)} {
		buckets := asText(got.Buckets)
		if buckets != c.buckets || got.Missing != c.missing {
			w.Errorf("%s: %q and %d missing, want %q and %d", who, buckets, got.Missing, c.buckets, c.missing)
		}
		want := c.want
		want.Buckets, want.Missing = got.Buckets, got.Missing
		if difference := diffFacet(model.ClassOf(ask.Field.Type), got, want); difference != "" {
			w.Errorf("%s: %s", who, difference)
		}
	}
	ask.Buckets = &index.Buckets{Max: 1}
	first, _, _ := strings.Cut(c.buckets, " ")
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
func (w *fixture) checkOrder(c orderCase) {
	w.Helper()
	c.order.Field = w.sort(c.field).Field
	by := []index.Sort{c.order, w.sort("uid")}
	ask := index.HitsRequest{Sort: by, Size: 100, Source: index.Source{None: true}}
	if got := letters(w.search(index.SearchRequest{Hits: &ask}).Hits); got != c.want {
		w.Errorf("%q, want %q", got, c.want)
	}
	if got := strings.Join(w.expectedIDs(sqon.Filter{}, by), ""); got != c.want {
		w.Errorf("the oracle: %q, want %q", got, c.want)
	}
	ask.Size = 2
	got := ""
	for range c.want {
		hits := w.search(index.SearchRequest{Hits: &ask}).Hits
		if len(hits) == 0 {
			break
		}
		got, ask.After = got+letters(hits), hits[len(hits)-1].Sort
	}
	if got != c.want {
		w.Errorf("by pages %q, want %q", got, c.want)
	}
	got = ""
	err := w.x.Stream(w.Context(), w.alias, index.StreamRequest{Sort: by}, func(hits []index.Hit) error {
		got += letters(hits)
		return nil
	})
	if err != nil || got != c.want {
		w.Errorf("as a stream %q, %v, want %q", got, err, c.want)
	}
}

// checkMissingInPivot checks that the documents without a value below a pivot are those that choosing __missing__ inside the pivot finds.
func (w *fixture) checkMissingInPivot() {
	w.Helper()
	big, second := in("files.size", "20"), in("files.index.size", "2")
	for _, c := range []struct{ field, path, clause, beside, want string }{
		{"files.type", "files", big, "", "d"},
		{"files.type", "files", big, in("donor.sex", `"M"`), ""},
		{"files.type", "files", in("files.size", "10"), big, "d"}, // a clause beside the pivot may hold for another element
		{"files.index.type", "files", big, "", "a"},               // the pivot is above the field's own path
		{"files.index.part.n", "files.index", second, big, "b"},
		{"files.index.part.n", "files.index", second, pivot("files", "and", big), "b"},
		{"kin.sex", "files", big, "", ""}, // the field is not below the pivot
	} {
		with := func(choice ...string) string {
			members := []string{pivot(c.path, "and", append(choice, c.clause)...)}
			if c.beside != "" {
				members = append(members, c.beside)
			}
			return group("and", members...)
		}
		filters, err := query.Facet(w.Context(), w.parse(with()), c.field, false, w.oracle.fields, setsOf)
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
		w.checkFilter(with(in(c.field, `"__missing__"`)), c.want)
		hits := index.HitsRequest{Sort: []index.Sort{w.sort("uid")}, Size: 100, Source: index.Source{None: true}}
		if got := letters(w.search(index.SearchRequest{Filter: query.Both(filters.Documents, missing), Hits: &hits}).Hits); got != c.want {
			w.Errorf("%s in %s: %q, want %q", c.field, with(), got, c.want)
		}
	}
}

// checkBucketFilters checks that a filter by each bucket matches as many documents as the bucket counts.
func (w *fixture) checkBucketFilters() {
	w.Helper()
	for _, name := range w.oracle.fields.WithValues() {
		field := w.sort(name).Field
		if !query.Countable(field.Type) {
			continue
		}
		r := w.search(index.SearchRequest{Facets: []index.Facet{{Field: field, Buckets: &index.Buckets{Max: 100}, Missing: true}}})
		choices := append(slices.Clone(r.Facets[0].Buckets), index.Bucket{Key: "__missing__", Count: r.Facets[0].Missing})
		for _, b := range choices {
			chosen := index.SearchRequest{Filter: w.lower(in(name, quoted(sqon.Escape(b.Key)))), Total: true}
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
