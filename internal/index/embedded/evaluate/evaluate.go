package evaluate

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index"
	"tutti/internal/index/embedded/segment"
)

// Part is one segment of an alias as of one moment.
type Part struct {
	Segment *segment.Segment
	// Dead are the documents that were rewritten or removed since; nil for none. It is not changed.
	Dead *roaring.Bitmap
}

// Place is where a document is.
type Place struct {
	// Number is that of segment.Segment.Numbers.
	Number uint64
	ID     string
}

// Answer is a SearchResult without sources: Hits have ID and Sort.
type Answer struct {
	index.SearchResult
	// Places are those of Hits.
	Places []Place
	// TopPlaces are those of the TopHits, by facet and bucket.
	TopPlaces [][][]Place
}

// Search answers reqs over all parts. The end of ctx ends it with CodeUnavailable.
func Search(_ context.Context, _ []Part, _ []index.SearchRequest) ([]Answer, error) { return nil, nil }

// Stream calls each with the documents that match in the order of req, some at a time.
func Stream(_ context.Context, _ []Part, _ index.StreamRequest, _ func(places []Place, hits []index.Hit) error) error {
	return nil
}
