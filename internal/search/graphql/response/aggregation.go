package response

import (
	"strconv"
	"time"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/jsontext"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/selection"
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

// Interval is a bucket of a histogram or a range: an interval of values and its number of documents.
type Interval struct {
	key, text string
	count     int64
}

// Intervals are the intervals of a facet's result.
type Intervals func(w *Writer) []Interval

// HistogramIntervals returns the intervals of a histogram of numbers or dates.
func (f Facet) HistogramIntervals(date bool) Intervals {
	return func(w *Writer) []Interval {
		found := w.facet(f).Histogram
		out := make([]Interval, len(found))
		for i, h := range found {
			out[i] = Interval{key: output.PlainNumber(h.Key), count: h.Count}
			if date {
				out[i].text = dateText(h.Key)
			}
		}
		return out
	}
}

// RangeIntervals returns the intervals of ranges.
func (f Facet) RangeIntervals(ranges []Range) Intervals {
	return func(w *Writer) []Interval {
		counts := w.facet(f).Ranges
		out := make([]Interval, 0, len(ranges))
		for i, r := range ranges {
			if i < len(counts) {
				out = append(out, Interval{key: r.Name, count: counts[i]})
			}
		}
		return out
	}
}

// Count writes the number of intervals.
func (all Intervals) Count(w *Writer) bool { return w.Int(int64(len(all(w)))) }

// List returns the Value of the buckets of a field with the given fields.
func (all Intervals) List(f *ast.Field, fields []*ast.Field) Value {
	return func(w *Writer) bool {
		intervals := all(w)
		return w.List(len(intervals), output.ItemRequired(f), func(i int) bool { return w.interval(fields, &intervals[i]) })
	}
}

func (w *Writer) interval(fields []*ast.Field, one *Interval) bool {
	w.Buf = append(w.Buf, '{')
	for i, f := range fields {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = append(jsontext.AppendString(w.Buf, f.Alias), ':')
		switch {
		case f.Name == "key":
			w.Text(one.key)
		case f.Name == "doc_count":
			w.Int(one.count)
		case f.Name == "key_as_string" && one.text != "":
			w.Text(one.text)
		case f.Name == "__typename":
			w.Text(f.ObjectDefinition.Name)
		default:
			w.Null()
		}
	}
	w.Buf = append(w.Buf, '}')
	return true
}

// Range is a range with the key of its bucket.
type Range struct {
	index.NumberRange
	Name string
}

// RangeOf reads a range of the argument ranges.
func RangeOf(item gjson.Result, date bool) Range {
	bound := func(name string) *float64 {
		v := item.Get(name)
		if v.Type != gjson.Number {
			return nil
		}
		return &v.Num
	}
	r := Range{NumberRange: index.NumberRange{From: bound("from"), To: bound("to")}, Name: item.Get("key").String()}
	if r.Name == "" {
		r.Name = RangeName(r.From, r.To, date)
	}
	return r
}

// RangeName returns the engine's default key of a range.
func RangeName(from, to *float64, date bool) string {
	bound := func(f *float64) string {
		switch {
		case f == nil:
			return "*"
		case date:
			return dateText(*f)
		}
		text := output.PlainNumber(*f)
		if *f == float64(int64(*f)) {
			text += ".0"
		}
		return text
	}
	return bound(from) + "-" + bound(to)
}
