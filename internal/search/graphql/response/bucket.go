package response

import (
	"strconv"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/selection"
)

// missingKey is the key of the bucket of documents without a value.
const missingKey = "__missing__"

// Buckets writes the buckets of a facet.
type Buckets struct {
	Facet

	// Type is the type of the facet's field.
	Type  string
	Field *ast.Field
	// Missing adds the bucket of documents without a value.
	Missing bool
	Fields  []BucketField
	// Prefix is the path of the objects that contain the catalogue's fields in a document.
	Prefix []string
}

// BucketField is one selected field of a bucket.
type BucketField struct {
	Field *ast.Field
	// Facet has the result, Filter is the position of the filter within it.
	Facet  Facet
	Filter int
	// Limit is the maximum number of documents, Paths are their selected fields; nil for all.
	Limit int
	Paths [][]string
	// MissingRequest is the request for the documents without a value; -1 for none.
	MissingRequest int
	encodedKey     []byte
}

// NewBucketField returns the BucketField of a field.
func NewBucketField(f *ast.Field) BucketField {
	return BucketField{Field: f, MissingRequest: -1, encodedKey: output.Key(f)}
}

// found returns the buckets and the number of documents without a value, 0 if that was not requested.
func (b *Buckets) found(w *Writer) ([]index.Bucket, int64) {
	result := w.facet(b.Facet)
	if !b.Missing {
		return result.Buckets, 0
	}
	return result.Buckets, result.Missing
}

// Count writes the number of buckets.
func (b *Buckets) Count(w *Writer) bool {
	buckets, missing := b.found(w)
	n := int64(len(buckets))
	if missing > 0 {
		n++
	}
	return w.Int(n)
}

// Write writes the buckets; the bucket of documents without a value is last.
func (b *Buckets) Write(w *Writer) bool {
	buckets, missing := b.found(w)
	n := len(buckets)
	if missing > 0 {
		n++
	}
	return w.List(n, output.ItemRequired(b.Field), func(i int) bool {
		w.Buf = append(w.Buf, '{')
		for k := range b.Fields {
			one := &b.Fields[k]
			if k > 0 {
				w.Buf = append(w.Buf, ',')
			}
			w.Buf = append(w.Buf, one.encodedKey...)
			if i == len(buckets) {
				b.missingBucket(w, one, missing)
			} else {
				b.bucket(w, one, i, &buckets[i])
			}
		}
		w.Buf = append(w.Buf, '}')
		return true
	})
}

// missingBucket writes one field of the bucket of documents without a value.
func (b *Buckets) missingBucket(w *Writer, one *BucketField, n int64) {
	switch one.Field.Name {
	case "key":
		w.Text(missingKey)
	case "doc_count":
		w.Int(n)
	case "top_hits":
		b.topHits(w, one, w.results.Searches[one.MissingRequest].Hits)
	case "filter_by_term":
		w.documentCount(w.results.Searches[one.MissingRequest].Total)
	case "__typename":
		w.Text(one.Field.ObjectDefinition.Name)
	default: // key_as_string
		w.Null()
	}
}

// documentCount writes the object of filter_by_term.
func (w *Writer) documentCount(n int64) {
	w.Buf = append(w.Buf, `{"doc_count":`...)
	w.Int(n)
	w.Buf = append(w.Buf, '}')
}

// bucket writes one field of the i-th bucket.
func (b *Buckets) bucket(w *Writer, one *BucketField, i int, bucket *index.Bucket) {
	switch one.Field.Name {
	case "key":
		w.Text(bucketKey(b.Type, bucket.Key))
	case "key_as_string":
		if text := keyText(b.Type, bucket.Key); text != "" {
			w.Text(text)
			return
		}
		w.Null()
	case "doc_count":
		w.Int(bucket.Count)
	case "top_hits":
		b.topHits(w, one, b.sibling(w, one, i, bucket.Key).TopHits)
	case "filter_by_term":
		counts := b.sibling(w, one, i, bucket.Key).Filters
		if one.Filter >= len(counts) {
			w.Null()
			return
		}
		w.documentCount(counts[one.Filter])
	case "__typename":
		w.Text(one.Field.ObjectDefinition.Name)
	default:
		w.Null()
	}
}

// sibling returns the i-th bucket of the facet that has the result of a field. Facets of the same Max have the same buckets in
// the same order.
func (b *Buckets) sibling(w *Writer, one *BucketField, i int, key string) *index.Bucket {
	buckets := w.facet(one.Facet).Buckets
	if i < len(buckets) && buckets[i].Key == key {
		return &buckets[i]
	}
	return &index.Bucket{}
}

// topHits writes the documents of a bucket: for size 1 an object, {} without a document; otherwise a list.
func (b *Buckets) topHits(w *Writer, one *BucketField, hits []index.Hit) {
	prefix := b.Prefix
	if one.Limit == 1 {
		if len(hits) == 0 {
			w.Buf = append(w.Buf, "{}"...)
			return
		}
		w.Buf = selection.AppendPaths(w.Buf, hits[0].Source, selection.Inside(hits[0].Source, prefix), one.Paths)
		return
	}
	w.Buf = append(w.Buf, '[')
	for i, hit := range hits {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = selection.AppendPaths(w.Buf, hit.Source, selection.Inside(hit.Source, prefix), one.Paths)
	}
	w.Buf = append(w.Buf, ']')
}

// bucketKey returns a key as Arranger's clients expect it: booleans as 1 and 0.
func bucketKey(fieldType, key string) string {
	if fieldType != "boolean" {
		return key
	}
	if key == "true" {
		return "1"
	}
	return "0"
}

// keyText returns key_as_string of a key, "" for none.
func keyText(fieldType, key string) string {
	switch {
	case fieldType == "boolean":
		return key
	case IsDate(fieldType):
		millis, err := strconv.ParseFloat(key, 64)
		if err != nil {
			return ""
		}
		return dateText(millis)
	default:
		return ""
	}
}

// IsDate reports whether the values of a type are times.
func IsDate(fieldType string) bool { return fieldType == "date" || fieldType == "date_nanos" }

// dateText formats milliseconds since 1970 in the engine's default date format.
func dateText(millis float64) string {
	return time.UnixMilli(int64(millis)).UTC().Format(output.TimeLayout)
}
