package dsl

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"

	"tutti/internal/base/jsontext"
	"tutti/internal/base/order"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// FacetReader reads the aggregations of one facet.
type FacetReader struct {
	Facet *index.Facet
	// Into is the result.
	Into index.FacetResult
	// More is set when more buckets were requested than the response contains, and there are more.
	More bool
	// After is the raw key after which the next page of buckets begins.
	After []byte
	Copy  func([]byte) []byte
	Err   error
}

// ReadFacets reads the aggregations of a search, which are named by the facets' indexes in readers.
func ReadFacets(c *Reader, readers []*FacetReader) {
	c.Object(func(name []byte) {
		if len(name) < 2 || name[0] != facetPrefix {
			return
		}
		digits := len(name)
		if last := name[digits-1]; last < '0' || last > '9' {
			digits--
		}
		place, err := strconv.Atoi(string(name[1:digits]))
		if err != nil || place < 0 || place >= len(readers) {
			return
		}
		if digits < len(name) {
			readers[place].aggregation(c, name[digits:])
		} else {
			c.Object(func(name []byte) { readers[place].aggregation(c, name) })
		}
	})
}

// aggregation reads the aggregation named name.
func (r *FacetReader) aggregation(c *Reader, name []byte) {
	if string(name) == aggElements {
		c.Object(func(name []byte) { r.aggregation(c, name) })
		return
	}
	if len(name) != 1 {
		return
	}
	switch name[0] {
	case aggTerms, aggPage:
		r.buckets(c)
	case aggMissing:
		r.Into.Missing = documentCount(c)
	case aggCardinality:
		c.Object(func(name []byte) {
			if string(name) == "value" {
				r.Into.Cardinality = c.count()
			}
		})
	case aggStats:
		r.stats(c)
	case aggHistogram:
		r.histogram(c)
	case aggRanges:
		r.ranges(c)
	}
}

// documentCount reads an aggregation's doc_count.
func documentCount(c *Reader) int64 {
	var n int64
	c.Object(func(name []byte) {
		if string(name) == "doc_count" {
			n = c.count()
		}
	})
	return n
}

// buckets reads the buckets of values and appends them to those of earlier pages.
func (r *FacetReader) buckets(c *Reader) {
	others := int64(0)
	c.Object(func(name []byte) {
		switch string(name) {
		case "buckets":
			c.Array(func() { r.Into.Buckets = append(r.Into.Buckets, r.bucket(c)) })
		case "sum_other_doc_count":
			others = c.count()
		case "after_key":
			r.After = bytes.Clone(c.raw())
		}
	})
	r.More = others > 0 && r.Facet.Buckets.Max > len(r.Into.Buckets)
	float := fieldtype.Of(r.Facet.Field.Type).Group == fieldtype.Float
	switch merged := float && r.mergeZeros(); {
	case r.More:
	case r.Facet.Field.Type == typeIP || merged:
		r.Into.Buckets = SortBuckets(r.Facet, r.Into.Buckets)
	case float: // one more was requested
		r.Into.Buckets = r.Into.Buckets[:min(len(r.Into.Buckets), r.Facet.Buckets.Max)]
	}
}

// mergeZeros makes one bucket of those of 0 and -0.0, and reports whether there were two. A document with both counts twice.
func (r *FacetReader) mergeZeros() bool {
	first := -1
	for i, b := range r.Into.Buckets {
		switch {
		case b.Key != "0":
		case first < 0:
			first = i
		default:
			into := &r.Into.Buckets[first]
			into.Count += b.Count
			for j := range b.Filters {
				into.Filters[j] += b.Filters[j]
			}
			into.TopHits = append(into.TopHits, b.TopHits...)
			order.Sort(into.TopHits, func(a, b index.Hit) int { return cmp.Compare(a.ID, b.ID) })
			into.TopHits = into.TopHits[:min(len(into.TopHits), r.Facet.Buckets.TopHits)]
			r.Into.Buckets = slices.Delete(r.Into.Buckets, i, i+1)
			return true
		}
	}
	return false
}

func (r *FacetReader) bucket(c *Reader) index.Bucket {
	var b index.Bucket
	if n := len(r.Facet.Buckets.Filters); n > 0 {
		b.Filters = make([]int64, n)
	}
	nested := r.Facet.Field.Row() != ""
	c.Object(func(name []byte) {
		switch string(name) {
		case "key":
			if c.Peek() == '{' { // a page of a composite aggregation
				c.Object(func([]byte) { b.Key = r.key(c.raw()) })
				return
			}
			b.Key = r.key(c.raw())
		case "key_as_string":
			if r.Facet.Field.Type == "boolean" {
				b.Key = c.ReadString()
			}
		case "doc_count":
			if !nested {
				b.Count = c.count()
			}
		case aggDocuments:
			b.Count = documentCount(c)
		case aggPerDocument:
			c.Object(func(name []byte) { r.perBucket(c, name, &b) })
		default:
			r.perBucket(c, name, &b)
		}
	})
	return b
}

// perBucket reads a sub-aggregation of a bucket.
func (r *FacetReader) perBucket(c *Reader, name []byte, b *index.Bucket) {
	if string(name) == aggTopHits {
		c.Object(func([]byte) { // the member hits
			c.Object(func(name []byte) {
				if string(name) == "hits" {
					hits := HitsReader{Source: r.Facet.Buckets.TopSource, Copy: r.Copy}
					b.TopHits = hits.Read(c)
				}
			})
		})
		return
	}
	if digits, ok := bytes.CutPrefix(name, []byte(aggFilter)); ok {
		if i, err := strconv.Atoi(string(digits)); err == nil && i >= 0 && i < len(b.Filters) {
			b.Filters[i] = documentCount(c)
		}
	}
}

// key returns a bucket's key in the form of Bucket.Key.
func (r *FacetReader) key(raw []byte) string {
	switch {
	case len(raw) > 0 && raw[0] == '"':
		return jsontext.Unquote(raw)
	case bytes.ContainsAny(raw, ".eE") && raw[0] != 't' && raw[0] != 'f':
		v, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return string(raw)
		}
		return jsontext.Number(query.Value(r.Facet.Field, v) + 0) // turns -0 into 0
	default:
		return string(raw)
	}
}

// SortBuckets sorts buckets in the port's order and drops those over the requested maximum.
func SortBuckets(f *index.Facet, buckets []index.Bucket) []index.Bucket {
	numeric := query.Keyed(f.Field.Type) && f.Field.Type != "boolean"
	order.Sort(buckets, func(a, b index.Bucket) int {
		if byCount := cmp.Compare(b.Count, a.Count); byCount != 0 {
			return byCount
		}
		if numeric {
			return compareNumbers(f.Field, a.Key, b.Key)
		}
		return cmp.Compare(a.Key, b.Key)
	})
	return buckets[:min(len(buckets), f.Buckets.Max)]
}

// compareNumbers compares two literals; integers exactly.
func compareNumbers(f query.Field, a, b string) int {
	if query.Dated(f.Type) {
		f.Type = "long"
	}
	left, _ := query.Key(f, a)
	right, _ := query.Key(f, b)
	return cmp.Compare(left, right)
}

func (r *FacetReader) stats(c *Reader) {
	s := &r.Into.Stats
	c.Object(func(name []byte) {
		switch string(name) {
		case "count":
			s.Count = c.count()
		case "min":
			s.Min = query.Value(r.Facet.Field, c.number())
		case "max":
			s.Max = query.Value(r.Facet.Field, c.number())
		case "avg":
			s.Avg = c.number()
		case "sum":
			s.Sum = c.number()
		}
	})
}

// histogram reads the intervals that have documents and adds the empty ones between them.
func (r *FacetReader) histogram(c *Reader) {
	var found []index.Interval
	endless := false
	r.numberBuckets(c, func(raw []byte, documents int64) {
		key, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || math.IsInf(key, 0) {
			endless = true // the key is "Infinity": the value divided by the interval overflows
			return
		}
		found = append(found, index.Interval{Key: key, Count: documents})
	})
	if len(found) == 0 && !endless {
		return
	}
	if !endless {
		order.Sort(found, func(a, b index.Interval) int { return cmp.Compare(a.Key, b.Key) })
		r.Into.Histogram, endless = fillIntervals(found, r.Facet.Histogram)
	}
	if endless {
		r.Err = r.Facet.TooManyIntervals()
	}
}

// fillIntervals returns all intervals from the first found to the last; true if they are more than index.MaxIntervals.
func fillIntervals(found []index.Interval, width float64) ([]index.Interval, bool) {
	first := math.Round(found[0].Key / width)
	count := math.Round(found[len(found)-1].Key/width) - first + 1
	if !(count <= index.MaxIntervals) {
		return nil, true
	}
	all := make([]index.Interval, int(count))
	for i := range all {
		all[i].Key = (first + float64(i)) * width
	}
	for _, f := range found {
		at := int(math.Round(f.Key/width) - first)
		all[at].Count += f.Count
	}
	return all, false
}

func (r *FacetReader) ranges(c *Reader) {
	r.numberBuckets(c, func(raw []byte, documents int64) {
		if place, err := strconv.Atoi(jsontext.Unquote(raw)); err == nil && place >= 0 && place < len(r.Into.Ranges) {
			r.Into.Ranges[place] = documents
		}
	})
}

// numberBuckets calls each with the raw keys of numeric buckets and their document counts.
func (r *FacetReader) numberBuckets(c *Reader, each func(key []byte, documents int64)) {
	nested := r.Facet.Field.Row() != ""
	c.Object(func(name []byte) {
		if string(name) != "buckets" {
			return
		}
		c.Array(func() {
			var key []byte
			var documents int64
			c.Object(func(name []byte) {
				switch string(name) {
				case "key":
					key = c.raw()
				case "doc_count":
					if !nested {
						documents = c.count()
					}
				case aggDocuments:
					documents = documentCount(c)
				}
			})
			each(key, documents)
		})
	})
}
