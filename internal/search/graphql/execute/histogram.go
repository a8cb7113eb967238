package execute

import (
	"context"
	"math"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/view"
)

// search executes the requests. Engines reject a whole request if one histogram has too many intervals. In that case search
// requests everything else first, with the range of values of each histogram, and then the histograms that have few enough
// intervals. A histogram that is left without intervals although it has values is reported at its field.
func search(ctx context.Context, v *view.View, kind view.Kind, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	results, err := v.Search(ctx, kind, reqs)
	measured, some := withoutHistograms(reqs)
	if core.CodeOf(err) != core.CodeInvalid || !some {
		return results, err
	}
	results, err = v.Search(ctx, kind, measured)
	if err != nil || !answersAll(results, reqs) { // the caller reports missing results
		return results, err
	}
	fitting, into := histogramsThatFit(reqs, results)
	if len(fitting) == 0 {
		return results, nil
	}
	found, err := v.Search(ctx, view.KindFacets, fitting)
	switch {
	case core.CodeOf(err) == core.CodeInvalid: // the values have changed since they were measured
		return results, nil
	case err != nil:
		return nil, err
	case !answersAll(found, fitting):
		return nil, notAllAnswered()
	}
	for i := range found {
		for j := range found[i].Facets {
			into[i][j].Histogram = found[i].Facets[j].Histogram
		}
	}
	return results, nil
}

func notAllAnswered() error {
	return core.NewError(core.CodeInternal, "the index returned an incomplete response")
}

// answersAll reports whether there is a result for each request and each of its facets.
func answersAll(results []index.SearchResult, reqs []index.SearchRequest) bool {
	if len(results) != len(reqs) {
		return false
	}
	for i := range reqs {
		if len(results[i].Facets) != len(reqs[i].Facets) {
			return false
		}
	}
	return true
}

// withoutHistograms returns the requests with statistics instead of histograms, and reports whether there were histograms.
func withoutHistograms(reqs []index.SearchRequest) (measured []index.SearchRequest, some bool) {
	measured = make([]index.SearchRequest, len(reqs))
	for i, req := range reqs {
		measured[i] = req
		measured[i].Facets = make([]index.Facet, len(req.Facets))
		for j, f := range req.Facets {
			if f.Histogram != 0 {
				some, f.Histogram, f.Stats = true, 0, true
			}
			measured[i].Facets[j] = f
		}
	}
	return measured, some
}

// histogramsThatFit returns requests for the histograms of reqs that have values and few enough intervals, and the results to
// fill.
func histogramsThatFit(reqs []index.SearchRequest, measured []index.SearchResult) (fitting []index.SearchRequest, into [][]*index.FacetResult) {
	for i, req := range reqs {
		one := index.SearchRequest{Filter: req.Filter}
		var places []*index.FacetResult
		for j, f := range req.Facets {
			result := &measured[i].Facets[j]
			if f.Histogram == 0 || result.Stats.Count == 0 || !fewIntervals(result.Stats, f.Histogram) {
				continue
			}
			one.Facets = append(one.Facets, index.Facet{Field: f.Field, Elements: f.Elements, Histogram: f.Histogram})
			places = append(places, result)
		}
		if len(one.Facets) > 0 {
			fitting, into = append(fitting, one), append(into, places)
		}
	}
	return fitting, into
}

// fewIntervals reports whether a histogram has no more intervals than engines allow. It is false for an infinite bound.
func fewIntervals(s index.Stats, width float64) bool {
	return math.Floor(s.Max/width)-math.Floor(s.Min/width) < index.MaxIntervals
}
