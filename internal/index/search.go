package index

import (
	"encoding/json"

	"tutti/internal/index/query"
)

// SearchRequest is one question about the documents of an alias that match a filter. Requests of one Search are answered
// together, as cheaply as the engine can.
type SearchRequest struct {
	// Filter selects the documents, at the scope ""; nil for all.
	Filter *query.Node
	// Total asks for the exact number of documents that match.
	Total bool
	// Hits asks for documents; nil for none.
	Hits *HitsRequest
	// Facets ask about the values of fields in the documents that match.
	Facets []Facet
}

// HitsRequest says which documents are given, in which order.
type HitsRequest struct {
	// Sort is the order; what is equal by all of it is in no order that can be relied on, so callers end it with the id.
	Sort []Sort
	// From is how many are left out before the first, 0 when After is given; Size how many are given, 0 for none. Their sum
	// is at most MaxWindow.
	From, Size int
	// After is Hit.Sort of the document after which the first one stands; nil for the beginning.
	After []json.RawMessage
	// Restricted says that Filter hides documents from the caller. Neither the order nor Hit.Sort then depends on those.
	Restricted bool
	// Source is what of the documents is needed.
	Source Source
	// Read, where it is not nil, may be given each document where the engine has it: the object that begins at data[at], which
	// is only valid until Read returns, and its ID. It returns what is kept in the place of the document, as Hit.Source with
	// Hit.Read set, and where the document ends; nil where the document itself is wanted. It is called by one goroutine at a
	// time, also for documents that the answer does not have in the end. For engines that have to look for that end anyway.
	Read func(id string, data []byte, at int) (kept []byte, end int)
}

// MaxWindow is the highest From+Size of a HitsRequest: what lies behind is reached by After, or by Stream.
const MaxWindow = 10_000

// Source is a part of documents.
type Source struct {
	// None asks for ids alone.
	None bool
	// Paths are the dotted paths, of containers or of values, that are needed; nil for the whole document. An engine may
	// give more than was asked for.
	Paths []string
}

// Sort is one key of an order.
type Sort struct {
	// Field is what is compared: keyword-like texts by their bytes, numbers, dates and booleans by their value.
	Field query.Field
	// Descending turns the order; what has no value stays where MissingFirst puts it.
	Descending bool
	// Mode says which of several values of a document counts: "min", "max", "sum", "avg", "median"; empty for min, and max
	// when Descending. Texts and unsigned integers have min and max alone, values in nested elements no median; else these
	// count like those of the document.
	Mode string
	// MissingFirst puts documents without a value first, else they are last.
	MissingFirst bool
}

// Hit is one document of an answer.
type Hit struct {
	ID string
	// Source is the JSON of the document, or at least of the part that was asked for; nil with Source.None. Where Read is set
	// it is what HitsRequest.Read made of that.
	Source []byte
	Read   bool
	// Sort is the document's place in the order, one value for each key, for HitsRequest.After. A document without a value has
	// null in every engine; all else is the engine's own. Keys behind the id decide nothing, and may have null as well.
	Sort []json.RawMessage
}

// Facet asks about the values of one field.
type Facet struct {
	Field query.Field
	// Elements is evaluated at Field.Row(): values count in rows for which it holds; nil for all rows. It does not narrow
	// Missing. At the row "" it is nil.
	Elements *query.Node
	// Buckets asks for the documents by value; nil for none.
	Buckets *Buckets
	// Missing asks for the number of documents without a value, nor one in any nested element.
	Missing bool
	// Cardinality asks for the number of distinct values, 0 for not. Engines may count by approximation above that many.
	Cardinality int
	// Stats asks for statistics over the values, not the documents: each value counts as often as it stands.
	Stats bool
	// Histogram asks for the documents by interval of the field's values; dates are in milliseconds since 1970. 0 for none;
	// else MinInterval at least.
	Histogram float64
	// Ranges ask for the documents with a value in each.
	Ranges []NumberRange
}

// Buckets says what is asked of the values of a field.
type Buckets struct {
	// Max is how many are given, those of the most documents first, among equals by key; between 1 and MaxBuckets.
	Max int
	// TopHits asks for that many documents of each, 0 for none and at most MaxTopHits, in the order of their ids, with TopSource
	// of them.
	TopHits   int
	TopSource Source
	// Filters ask how many documents of each bucket match them, at the scope "".
	Filters []*query.Node
}

// Limits of a Facet.
const (
	// MaxBuckets is the highest Buckets.Max.
	MaxBuckets = 300_000
	// MaxTopHits is the highest Buckets.TopHits: what Elasticsearch gives by default (index.max_inner_result_window).
	MaxTopHits = 100
	// MinInterval is the lowest Facet.Histogram. It keeps the keys within what a double can hold: an infinite one of a date
	// ends Elasticsearch's connection.
	MinInterval = 1e-100
)

// NumberRange is the values v with From ≤ v < To; nil is no bound. Dates are in milliseconds since 1970.
type NumberRange struct {
	From, To *float64
}

// SearchResult answers a SearchRequest.
type SearchResult struct {
	// Total is the number of documents that match, when it was asked for.
	Total int64
	Hits  []Hit
	// Facets are in the order of the request's.
	Facets []FacetResult
}

// FacetResult answers a Facet: what was not asked for is the zero value.
type FacetResult struct {
	// Buckets are those with documents, by Count downwards, then by Key: texts by their bytes, numbers by their value.
	Buckets     []Bucket
	Missing     int64
	Cardinality int64
	Stats       Stats
	// Histogram is by Key upwards, the empty intervals between the first and the last included, unless there would be more
	// than MaxIntervals, which is CodeInvalid. Key is a multiple of the interval.
	Histogram []Interval
	// Ranges are the numbers of documents, in the order of the request's.
	Ranges []int64
}

// MaxIntervals is how many intervals a histogram may have.
const MaxIntervals = 10_000

// Bucket is the documents that have a value.
type Bucket struct {
	// Key is the value as text: of numbers the shortest literal, of booleans "true" or "false", of dates milliseconds since 1970.
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

// Stats are over the values of a field; all but Count are 0 when there is none.
type Stats struct {
	Min, Max, Avg, Sum float64
	Count              int64
}

// StreamRequest asks for all documents that match, as of one moment.
type StreamRequest struct {
	// Filter selects the documents, at the scope ""; nil for all.
	Filter *query.Node
	// Sort is their order; none for whatever is cheapest.
	Sort   []Sort
	Source Source
}
