package searchtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/tools/searchtest/draw"
	"tutti/internal/tools/searchtest/model"
	"tutti/internal/tools/searchtest/oracle"
)

// facetQuestion is a facet of a field and its parameters.
type facetQuestion struct {
	name string
	// themselves is set when clauses on the field apply to the facet too.
	themselves bool
	ask        index.Facet
	// filters are those of its buckets.
	filters []sqon.Filter
}

func (a facetQuestion) String() string {
	return fmt.Sprintf("%s (themselves: %t, filters %s) %s", a.name, a.themselves, filtersText(a.filters), facetText(a.ask))
}

// drawFacetCase returns a random facet of a field.
func (w *fixture) drawFacetCase(d draw.Choices, maker *draw.Filters, name string, themselves bool) facetQuestion {
	a := facetQuestion{name: name, themselves: themselves}
	a.ask, a.filters = w.drawFacet(d, maker, w.oracle.Fields.ByName[name].Field)
	return a
}

// buildFacet returns the facet, and the filter of its documents.
func (w *fixture) buildFacet(ctx context.Context, f sqon.Filter, a facetQuestion) (documents *query.Node, facet index.Facet, err error) {
	facet = a.ask
	filters, err := query.Facet(ctx, f, a.name, a.themselves, w.oracle.Fields, setsOf)
	if documents, facet.Elements = filters.Documents, filters.Elements; err != nil || facet.Buckets == nil {
		return documents, facet, err
	}
	buckets := *facet.Buckets
	for _, other := range a.filters {
		n, err := query.Lower(ctx, other, w.oracle.Fields, setsOf)
		if err != nil {
			return nil, facet, err
		}
		buckets.Filters = append(buckets.Filters, n)
	}
	facet.Buckets = &buckets
	return documents, facet, nil
}

// facetProbe returns a probe for a facet of a field.
func (w *fixture) facetProbe(d draw.Choices, maker *draw.Filters, f sqon.Filter, name string) probe {
	a := w.drawFacetCase(d, maker, name, d.Percent(30))
	total := d.Percent(30)
	return probe{
		what: "facet of " + a.String(), filter: f,
		build: func(ctx context.Context, f sqon.Filter) (index.SearchRequest, diffFunc, error) {
			documents, facet, err := w.buildFacet(ctx, f, a)
			if err != nil {
				return index.SearchRequest{}, nil, err
			}
			scopes, err := w.oracle.FacetScopes(f, name, a.themselves)
			request := index.SearchRequest{Filter: documents, Total: total, Facets: []index.Facet{facet}}
			return request, func(r index.SearchResult) string {
				difference := ""
				for i, in := range slices.Backward(scopes) {
					if difference = w.diffFacetResult(r, a, in, total); difference == "" || i == 0 {
						break
					}
				}
				return difference
			}, err
		},
	}
}

// pageProbe returns a probe for documents and several facets in one request.
func (w *fixture) pageProbe(d draw.Choices, maker *draw.Filters, f sqon.Filter) probe {
	var aspects []facetQuestion
	for range d.Between(1, 4) {
		if name := draw.Pick(d, maker.Leaves); w.countable(w.oracle.Fields.ByName[name].Field) {
			aspects = append(aspects, w.drawFacetCase(d, maker, name, true))
		}
	}
	hits := index.HitsRequest{Size: 3, Sort: w.order(d, maker), Source: index.Source{None: true}}
	return probe{
		what: fmt.Sprintf("page of hits and facets %s", aspects), filter: f,
		build: func(ctx context.Context, f sqon.Filter) (index.SearchRequest, diffFunc, error) {
			request := index.SearchRequest{Total: true, Hits: &hits}
			var scopes [][]oracle.FacetScope
			for _, a := range aspects {
				_, facet, err := w.buildFacet(ctx, f, a)
				if err != nil {
					return request, nil, err
				}
				in, err := w.oracle.FacetScopes(f, a.name, true)
				if err != nil {
					return request, nil, err
				}
				request.Facets, scopes = append(request.Facets, facet), append(scopes, in)
			}
			var err error
			request.Filter, err = query.Lower(ctx, f, w.oracle.Fields, setsOf)
			want := w.expectedIDs(f, hits.Sort)
			return request, func(r index.SearchResult) string {
				if len(r.Facets) != len(aspects) || r.Total != int64(len(want)) {
					return fmt.Sprintf("%d facets of %d, want %d of %d", len(r.Facets), r.Total, len(aspects), len(want))
				}
				for i, a := range aspects {
					if difference := diffFacet(model.ClassOf(a.ask.Field.Type), r.Facets[i], w.oracle.Facet(a.ask, scopes[i][0], a.filters)); difference != "" {
						return "facet of " + a.String() + ":\n" + difference
					}
				}
				return w.diffHits(r.Hits, want[:min(hits.Size, len(want))], hits)
			}, err
		},
	}
}

// diffFacetResult returns how a result differs from that of a facet over the documents in one of its possible
// scopes.
func (w *fixture) diffFacetResult(r index.SearchResult, a facetQuestion, in oracle.FacetScope, total bool) string {
	if len(r.Facets) != 1 {
		return fmt.Sprintf("%d facets, want 1", len(r.Facets))
	}
	if total && r.Total != int64(len(in.Documents)) {
		return fmt.Sprintf("Total %d, want %d", r.Total, len(in.Documents))
	}
	return diffFacet(model.ClassOf(a.ask.Field.Type), r.Facets[0], w.oracle.Facet(a.ask, in, a.filters))
}

func filtersText(filters []sqon.Filter) string {
	texts := make([]string, len(filters))
	for i, f := range filters {
		texts[i] = filterText(f)
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// facetText describes the parameters of a facet.
func facetText(ask index.Facet) string {
	ranges := make([]string, len(ask.Ranges))
	for i, r := range ask.Ranges {
		ranges[i] = boundText(r.From) + ".." + boundText(r.To)
	}
	text := fmt.Sprintf("missing %t, cardinality %d, stats %t, histogram %g, ranges %s",
		ask.Missing, ask.Cardinality, ask.Stats, ask.Histogram, ranges)
	if ask.Buckets != nil {
		text += fmt.Sprintf(", buckets %d with top hits %d", ask.Buckets.Max, ask.Buckets.TopHits)
	}
	return text
}

func boundText(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'g', -1, 64)
}

// drawFacet returns a random facet of a field, and the filters of its buckets.
func (w *fixture) drawFacet(d draw.Choices, maker *draw.Filters, field query.Field) (index.Facet, []sqon.Filter) {
	ask := index.Facet{Field: field, Missing: d.Percent(60)}
	var filters []sqon.Filter
	if d.Percent(75) {
		ask.Buckets = &index.Buckets{Max: draw.Pick(d, []int{1, 2, 3, 10, 1000})}
		if d.Percent(25) {
			ask.Buckets.TopHits, ask.Buckets.TopSource = d.Between(1, 3), index.Source{None: true}
		}
		for d.Percent(25) && len(filters) < 2 {
			if f, ok := w.accepted(maker.Next()); ok {
				filters = append(filters, f)
			}
		}
	}
	if d.Percent(30) {
		ask.Cardinality = d.Between(400, 3000)
	}
	if !model.ClassOf(field.Type).Numeric() {
		return ask, filters
	}
	ask.Stats = d.Percent(50)
	if d.Percent(35) {
		ask.Histogram = w.interval(d, field)
	}
	for d.Percent(30) {
		ask.Ranges = append(ask.Ranges, w.drawRange(d, field))
	}
	return ask, filters
}

// interval returns an interval for a histogram of not too many intervals, 0 when the values are too far apart.
func (w *fixture) interval(d draw.Choices, field query.Field) float64 {
	largest := w.largest(field)
	if largest > 1<<50 {
		return 0
	}
	interval := draw.Pick(d, []float64{0.25, 0.5, 1, 2, 5})
	for largest/interval > 100 {
		interval *= 8
	}
	return interval
}

// drawRange returns a random range with bounds near values of the field.
func (w *fixture) drawRange(d draw.Choices, field query.Field) index.NumberRange {
	var out index.NumberRange
	bound := func() *float64 {
		x := draw.Pick(d, []float64{0, 1, 7, 2.5})
		if documents := w.oracle.Documents; len(documents) > 0 {
			if values := model.ValuesOf(field, draw.Pick(d, documents).At(field.Row())); len(values) > 0 {
				x = model.Float(model.ClassOf(field.Type), draw.Pick(d, values))
			}
		}
		if math.Abs(x) > 1<<50 {
			x = 1 << 50
		}
		x += draw.Pick(d, []float64{0, 0, 0.5, -1, 1})
		if query.Dated(field.Type) {
			x = min(x, 253_402_300_799_999) // engines refuse a bound after the year 9999
		}
		return &x
	}
	if d.Percent(80) {
		out.From = bound()
	}
	if d.Percent(80) {
		out.To = bound()
	}
	if out.From != nil && out.To != nil && *out.From > *out.To {
		out.From, out.To = out.To, out.From
	}
	return out
}

// diffFacet returns how a result differs from the expected one, "" for equal.
func diffFacet(c model.Class, got, want index.FacetResult) string {
	text := ""
	note := func(what string, got, want any) {
		if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
			text += fmt.Sprintf("%s:\n  got  %s\n  want %s\n", what, a, b)
		}
	}
	note("buckets", bucketTexts(c, got.Buckets), bucketTexts(c, want.Buckets))
	note("missing", got.Missing, want.Missing)
	note("cardinality", got.Cardinality, want.Cardinality)
	note("histogram", histogramText(got.Histogram), histogramText(want.Histogram))
	note("ranges", got.Ranges, want.Ranges)
	if !sameStats(got.Stats, want.Stats) {
		note("stats", got.Stats, want.Stats)
	}
	return text
}

// histogramText describes a histogram, with the number of empty intervals.
func histogramText(intervals []index.Interval) string {
	text, empty := "", 0
	for _, i := range intervals {
		if i.Count == 0 {
			empty++
			continue
		}
		text += fmt.Sprintf(" (%d empty) %g:%d", empty, i.Key, i.Count)
		empty = 0
	}
	return fmt.Sprintf("%d intervals:%s", len(intervals), text)
}

// bucketTexts returns buckets in a comparable form: only ids, and numbers in one format.
func bucketTexts(c model.Class, buckets []index.Bucket) []string {
	var out []string
	for _, b := range buckets {
		key := b.Key
		if x, err := strconv.ParseFloat(key, 64); err == nil && c == model.FractionClass {
			key = strconv.FormatFloat(x, 'g', -1, 64)
		}
		ids := []string{}
		for _, h := range b.TopHits {
			ids = append(ids, h.ID)
		}
		out = append(out, fmt.Sprintf("%q:%d top %v filters %v", key, b.Count, ids, b.Filters))
	}
	return out
}

// sameStats reports whether statistics are equal, except for the rounding of sums.
func sameStats(got, want index.Stats) bool {
	most := max(math.Abs(want.Min), math.Abs(want.Max))
	near := func(a, b, scale float64) bool { return a == b || math.Abs(a-b) <= 1e-9*scale }
	return got.Count == want.Count && near(got.Min, want.Min, most) && near(got.Max, want.Max, most) && near(got.Avg, want.Avg, most) &&
		near(got.Sum, want.Sum, most*float64(want.Count))
}
