package response

import (
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
)

// Facet refers to the result of one planned facet: its request, and its position there.
type Facet struct{ Request, Index int }

// facet returns the result of a facet.
func (w *Writer) facet(f Facet) *index.FacetResult {
	return &w.results.Searches[f.Request].Facets[w.facets[f.Request][f.Index]]
}

// Aggregations writes the facets of a catalogue.
type Aggregations struct {
	Field   *ast.Field
	Members []Member
	// Requested is set if facets were requested from the index.
	Requested bool
}

// Write writes the aggregations, or null with an error.
func (a *Aggregations) Write(w *Writer) bool {
	if a.Requested && w.results.Err != nil {
		return w.NullWithError(output.ErrorOf(w.results.Err).At(a.Field.Position))
	}
	return w.object(a.Members)
}

// Cardinality writes the number of distinct values.
func (f Facet) Cardinality(w *Writer) bool { return w.Int(w.facet(f).Cardinality) }

// Statistic returns the Value of a field of stats. Without values, min, max and avg are null.
func (f Facet) Statistic(name string) Value {
	return func(w *Writer) bool {
		s := w.facet(f).Stats
		switch {
		case name == "count":
			return w.Int(s.Count)
		case name == "sum":
			return w.Number(s.Sum)
		case s.Count == 0:
			return w.Null()
		case name == "min":
			return w.Number(s.Min)
		case name == "max":
			return w.Number(s.Max)
		default:
			return w.Number(s.Avg)
		}
	}
}

// Histogram returns the Value of a histogram with intervals of a width, or null with an error if it has too many intervals: then it
// has values, but no intervals.
func (f Facet) Histogram(field query.Field, width float64, position *ast.Position, members []Member) Value {
	return func(w *Writer) bool {
		if r := w.facet(f); len(r.Histogram) == 0 && r.Stats.Count > 0 {
			asked := index.Facet{Field: field, Histogram: width}
			return w.NullWithError(output.ErrorOf(asked.TooManyIntervals()).At(position))
		}
		return w.object(members)
	}
}
