package evaluate

import (
	"math"
	"strconv"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/query"
)

// checkHits refuses what no answer can be given to.
func checkHits(h *index.HitsRequest) error {
	from := h.From
	if len(h.After) > 0 {
		from = 0
	}
	if from < 0 || h.Size < 0 || from > index.MaxWindow || h.Size > index.MaxWindow-from {
		return core.NewError(core.CodeInvalid, "documents are given up to number "+strconv.Itoa(index.MaxWindow)+
			" of an order; what lies behind is reached by the place of the last one")
	}
	return nil
}

// checkFacet refuses what no answer can be given to.
func checkFacet(f *index.Facet) error {
	counts := f.Buckets != nil || f.Cardinality > 0 || f.Stats || f.Histogram != 0 || len(f.Ranges) > 0
	switch {
	case counts && query.Analyzed(f.Field.Type):
		return analyzed(f.Field)
	case f.Buckets != nil && (f.Buckets.Max < 1 || f.Buckets.Max > index.MaxBuckets):
		return core.NewError(core.CodeInvalid, "the number of buckets of the field "+f.Field.Path+" is not between 1 and "+
			strconv.Itoa(index.MaxBuckets))
	case f.Histogram < 0 || math.IsNaN(f.Histogram) || math.IsInf(f.Histogram, 0):
		return core.NewError(core.CodeInvalid, "the interval of the histogram of the field "+f.Field.Path+" is no positive number")
	default:
		return nil
	}
}
