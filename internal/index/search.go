package index

import (
	"context"
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/filter/query"
)

// SearchRequest is one request for the documents of an alias that match a filter. The requests of one Search are evaluated
// together, as efficiently as the engine can.
type SearchRequest struct {
	// Filter selects the documents, at the scope ""; nil for all.
	Filter *query.Node
	// Total requests the exact number of matching documents.
	Total bool
	// Hits requests documents; nil for none.
	Hits *HitsRequest
	// Facets request statistics on the values of fields in the matching documents.
	Facets []Facet
	// Reserve, unless nil, is called by an engine that counts values and reads documents in this process, before it does so, with the
	// number of bytes that it needs at most. It blocks until they are free, and its error ends the search. Each call replaces what was
	// reserved before. All requests of one Search have the same.
	Reserve func(ctx context.Context, bytes int64) error
}

// HitsRequest selects the documents to return, and their order.
type HitsRequest struct {
	// Sort is the order. Documents that are equal in it are in an undefined order, so callers append the id.
	Sort []Sort
	// From is the number of documents to skip, 0 when After is set; Size the number to return, 0 for none. Their sum is at most
	// MaxWindow.
	From, Size int
	// After is the Hit.Sort of the document after which to start; nil for the beginning.
	After []json.RawMessage
	// Restricted is set when Filter hides documents from the caller. Neither the order nor Hit.Sort then depends on those.
	Restricted bool
	// Source is the part of the documents to return.
	Source Source
	// Read, unless nil, may be called with each document in the engine's response: the object that starts at data[at], valid until
	// Read returns, and its ID. It returns a replacement for the document, which becomes Hit.Source with Hit.Read set, and the end
	// of the document; a nil replacement keeps the document, an empty one, with end at at, means that neither this nor a later document of the request is
	// needed: an engine may keep them or not. It is called by one goroutine at a time, also for documents that are
	// not in the result. It is for engines that have to find the end of documents anyway, or that need not keep whole documents.
	Read func(id string, data []byte, at int) (kept []byte, end int)
}

// MaxWindow is the highest From+Size of a HitsRequest. Further documents are available by After or Stream.
const MaxWindow = 10_000

// Source is a part of documents.
type Source struct {
	// None requests only ids.
	None bool
	// Paths are the dotted paths, of containers or of values, to return; nil for the whole document. An engine may return more.
	Paths []string
}

// Sort is one key of an order.
type Sort struct {
	// Field is the field to compare: keyword-like texts by their bytes, numbers, dates and booleans by their value.
	Field query.Field
	// Descending reverses the order, except for missing values (see MissingFirst).
	Descending bool
	// Mode selects or computes the value to sort a document by: "min", "max", "sum", "avg", "median"; empty for min, and max when
	// Descending. Texts and unsigned integers support only min and max, values in nested elements no median. Values in nested
	// elements are otherwise treated like those of the document.
	Mode string
	// MissingFirst sorts documents without a value first instead of last.
	MissingFirst bool
}

// Hit is one document of a result.
type Hit struct {
	ID string
	// Source is the JSON of the document, or at least of the requested part; nil with Source.None. When Read is set
	// it is the replacement returned by HitsRequest.Read.
	Source []byte
	Read   bool
	// Sort is the cursor of the document, one value per key, for HitsRequest.After. A missing value is null in every engine; other
	// values are specific to the engine. Keys after the id have no effect, and may be null as well.
	Sort []json.RawMessage
}

// Facet requests statistics on the values of one field.
type Facet struct {
	Field query.Field
	// Elements is evaluated at Field.Row(): only values in rows for which it holds are counted; nil for all rows. It does not apply
	// to Missing. At the row "" it is nil.
	Elements *query.Node
	// Buckets requests the number of documents by value; nil for none.
	Buckets *Buckets
	// Missing requests the number of documents without a value, in nested elements too.
	Missing bool
	// Cardinality requests the number of distinct values, 0 for none. Engines may approximate above that number.
	Cardinality int
	// Stats requests statistics over values, not documents: duplicates count.
	Stats bool
	// Histogram is the interval of a histogram of the number of documents, 0 for none, otherwise at least MinInterval; dates are in
	// milliseconds since 1970.
	Histogram float64
	// Ranges request the number of documents with a value in each range.
	Ranges []NumberRange
}

// Buckets configures the buckets of a facet.
type Buckets struct {
	// Max is the number of buckets to return, between 1 and MaxBuckets: those with the most documents, and among equals the lowest
	// keys.
	Max int
	// TopHits is the number of documents to return per bucket, at most MaxTopHits, 0 for none, sorted by id, with TopSource of
	// them.
	TopHits   int
	TopSource Source
	// Filters request the number of documents of each bucket that match them, at the scope "".
	Filters []*query.Node
}

// Limits of a Facet.
const (
	// MaxBuckets is the highest Buckets.Max.
	MaxBuckets = 300_000
	// MaxTopHits is the highest Buckets.TopHits: Elasticsearch's default of index.max_inner_result_window.
	MaxTopHits = 100
	// MinInterval is the lowest Facet.Histogram. It keeps keys finite: an infinite key of a date ends Elasticsearch's connection.
	MinInterval = 1e-100
)

// NumberRange is the values v with From ≤ v < To; nil is no bound. Dates are in milliseconds since 1970.
type NumberRange struct {
	From, To *float64
}

// SearchResult is the result of a SearchRequest.
type SearchResult struct {
	// Total is the number of matching documents, if requested.
	Total int64
	Hits  []Hit
	// Facets are in the order of the request's.
	Facets []FacetResult
}

// FacetResult is the result of a Facet: what was not requested is the zero value.
type FacetResult struct {
	// Buckets are those with documents, by Count descending, then by Key: texts by their bytes, numbers by their value.
	Buckets []Bucket
	// Omitted is the number of further values, which is counted only if Buckets.Max is MaxBuckets.
	Omitted     int64
	Missing     int64
	Cardinality int64
	Stats       Stats
	// Histogram is by Key ascending, with the empty intervals between the first and the last. More than MaxIntervals are
	// CodeInvalid. Keys are multiples of the interval.
	Histogram []Interval
	// Ranges are the numbers of documents, in the order of the request's.
	Ranges []int64
}

// MaxIntervals is the maximum number of intervals of a histogram.
const MaxIntervals = 10_000

// Bucket is the documents that have a value.
type Bucket struct {
	// Key is the value as text: for numbers the shortest literal, for booleans "true" or "false", for dates milliseconds since
	// 1970.
	Key string
	// Count is the number of documents, not of elements or values.
	Count int64
	// TopHits have no Sort.
	TopHits []Hit
	// Filters are the numbers of documents, in the order of Buckets.Filters.
	Filters []int64
}

// Interval is the documents that have a value v with Key ≤ v < Key + interval.
type Interval struct {
	Key   float64
	Count int64
}

// Stats are statistics over the values of a field; all are 0 when there is none.
type Stats struct {
	Min, Max, Avg, Sum float64
	Count              int64
}

// StreamRequest requests all matching documents, as of one moment.
type StreamRequest struct {
	// Filter selects the documents, at the scope ""; nil for all.
	Filter *query.Node
	// Sort is their order; empty for the most efficient one.
	Sort   []Sort
	Source Source
	// Caller is the client that the documents are for, the zero value for the process itself. Callers share the memory for large
	// documents.
	Caller core.Caller
}
