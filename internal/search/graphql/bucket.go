package graphql

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
)

// found returns the buckets and the number of documents without a value, 0 if that was not requested.
func (b *bucketPlan) found() ([]index.Bucket, int64) {
	result := b.of.result(b.at)
	if !b.missing {
		return result.Buckets, 0
	}
	return result.Buckets, result.Missing
}

// count writes the number of buckets.
func (b *bucketPlan) count(w *responseWriter) bool {
	buckets, missing := b.found()
	n := int64(len(buckets))
	if missing > 0 {
		n++
	}
	return w.int(n)
}

// write writes the buckets; the bucket of documents without a value is last.
func (b *bucketPlan) write(w *responseWriter) bool {
	buckets, missing := b.found()
	n := len(buckets)
	if missing > 0 {
		n++
	}
	return w.list(n, itemRequired(b.field), func(i int) bool {
		w.dst = append(w.dst, '{')
		for k := range b.fields {
			one := &b.fields[k]
			if k > 0 {
				w.dst = append(w.dst, ',')
			}
			w.dst = append(w.dst, one.encodedKey...)
			if i == len(buckets) {
				b.missingBucket(w, one, missing)
			} else {
				b.bucket(w, one, i, &buckets[i])
			}
		}
		w.dst = append(w.dst, '}')
		return true
	})
}

// missingBucket writes one field of the bucket of documents without a value.
func (b *bucketPlan) missingBucket(w *responseWriter, one *bucketField, n int64) {
	switch one.name {
	case "key":
		w.text(missingKey)
	case "doc_count":
		w.int(n)
	case "top_hits":
		b.topHits(w, one, b.of.batch.results[one.missingRequest].Hits)
	case "filter_by_term":
		w.documentCount(b.of.batch.results[one.missingRequest].Total)
	case "__typename":
		w.text(one.field.ObjectDefinition.Name)
	default: // key_as_string
		w.null()
	}
}

// documentCount writes the object of filter_by_term.
func (w *responseWriter) documentCount(n int64) {
	w.dst = append(w.dst, `{"doc_count":`...)
	w.int(n)
	w.dst = append(w.dst, '}')
}

// bucket writes one field of the i-th bucket.
func (b *bucketPlan) bucket(w *responseWriter, one *bucketField, i int, bucket *index.Bucket) {
	switch one.name {
	case "key":
		w.text(bucketKey(b.of.field.Type, bucket.Key))
	case "key_as_string":
		if text := keyText(b.of.field.Type, bucket.Key); text != "" {
			w.text(text)
			return
		}
		w.null()
	case "doc_count":
		w.int(bucket.Count)
	case "top_hits":
		b.topHits(w, one, b.sibling(one, i, bucket.Key).TopHits)
	case "filter_by_term":
		counts := b.sibling(one, i, bucket.Key).Filters
		if one.nth >= len(counts) {
			w.null()
			return
		}
		w.documentCount(counts[one.nth])
	case "__typename":
		w.text(one.field.ObjectDefinition.Name)
	default:
		w.null()
	}
}

// sibling returns the i-th bucket of the facet that has the result of a field. Facets of the same Max have the same buckets in
// the same order.
func (b *bucketPlan) sibling(one *bucketField, i int, key string) *index.Bucket {
	buckets := b.of.result(one.at).Buckets
	if i < len(buckets) && buckets[i].Key == key {
		return &buckets[i]
	}
	return &index.Bucket{}
}

// topHits writes the documents of a bucket: for size 1 an object, {} without a document; otherwise a list.
func (b *bucketPlan) topHits(w *responseWriter, one *bucketField, hits []index.Hit) {
	prefix := b.prefix
	if one.limit == 1 {
		if len(hits) == 0 {
			w.dst = append(w.dst, "{}"...)
			return
		}
		w.dst = appendProjection(w.dst, hits[0].Source, inside(hits[0].Source, prefix), one.paths)
		return
	}
	w.dst = append(w.dst, '[')
	for i, hit := range hits {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = appendProjection(w.dst, hit.Source, inside(hit.Source, prefix), one.paths)
	}
	w.dst = append(w.dst, ']')
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
	case isDate(fieldType):
		millis, err := strconv.ParseFloat(key, 64)
		if err != nil {
			return ""
		}
		return dateText(millis)
	default:
		return ""
	}
}

func isDate(fieldType string) bool { return fieldType == "date" || fieldType == "date_nanos" }

// dateText formats milliseconds since 1970 in the engine's default date format.
func dateText(millis float64) string {
	return time.UnixMilli(int64(millis)).UTC().Format(timeLayout)
}

// countInterval is a bucket of a histogram or a range: an interval of values and its number of documents.
type countInterval struct {
	key, text string
	count     int64
}

// intervals plans the buckets of a histogram or of ranges, and their number.
func (a *aggregationPlanner) intervals(f *ast.Field, get func() []countInterval) writeFunc {
	return a.x.objectOf(f, func(f *ast.Field) (writeFunc, *gqlError) {
		switch f.Name {
		case "bucket_count":
			return func(w *responseWriter) bool { return w.int(int64(len(get()))) }, nil
		case "buckets":
			fields := a.x.below(f)
			for _, part := range fields {
				if part.Name == "top_hits" || part.Name == "filter_by_term" {
					return nil, inputError(fmt.Sprintf(
						"buckets of histogram and range have only document counts: %s is not available", part.Name,
					)).at(part.Position)
				}
			}
			return func(w *responseWriter) bool {
				all := get()
				return w.list(len(all), itemRequired(f), func(i int) bool { return w.interval(fields, &all[i]) })
			}, nil
		default:
			return writeNull, nil
		}
	})
}

func (w *responseWriter) interval(fields []*ast.Field, one *countInterval) bool {
	w.dst = append(w.dst, '{')
	for i, f := range fields {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(appendText(w.dst, f.Alias), ':')
		switch {
		case f.Name == "key":
			w.text(one.key)
		case f.Name == "doc_count":
			w.int(one.count)
		case f.Name == "key_as_string" && one.text != "":
			w.text(one.text)
		case f.Name == "__typename":
			w.text(f.ObjectDefinition.Name)
		default:
			w.null()
		}
	}
	w.dst = append(w.dst, '}')
	return true
}

// namedRange is a range with the key of its bucket.
type namedRange struct {
	index.NumberRange
	name string
}

func rangeOf(item gjson.Result, date bool) namedRange {
	bound := func(name string) *float64 {
		v := item.Get(name)
		if v.Type != gjson.Number {
			return nil
		}
		return &v.Num
	}
	r := namedRange{NumberRange: index.NumberRange{From: bound("from"), To: bound("to")}, name: item.Get("key").String()}
	if r.name == "" {
		r.name = rangeName(r.From, r.To, date)
	}
	return r
}

// rangeName returns the engine's default key of a range.
func rangeName(from, to *float64, date bool) string {
	bound := func(f *float64) string {
		switch {
		case f == nil:
			return "*"
		case date:
			return dateText(*f)
		}
		text := plainNumber(*f)
		if *f == float64(int64(*f)) {
			text += ".0"
		}
		return text
	}
	return bound(from) + "-" + bound(to)
}

// byBounds orders ranges as the engine returns them.
func byBounds(a, b namedRange) int {
	low := func(f *float64) float64 {
		if f == nil {
			return -1e308
		}
		return *f
	}
	high := func(f *float64) float64 {
		if f == nil {
			return 1e308
		}
		return *f
	}
	return cmp.Or(cmp.Compare(low(a.From), low(b.From)), cmp.Compare(high(a.To), high(b.To)))
}

func equalRange(a, b index.NumberRange) bool {
	same := func(a, b *float64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return same(a.From, b.From) && same(a.To, b.To)
}
