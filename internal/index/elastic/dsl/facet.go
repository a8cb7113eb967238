package dsl

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/jsontext"
)

const (
	// maxBuckets is the number of values requested at once; the cluster's limit is 65,536 buckets per response
	// (search.max_buckets).
	maxBuckets = 65_000
	// maxPrecision is the cluster's highest precision_threshold.
	maxPrecision = 40_000
)

// Names of aggregations. Each aggregation of a facet has a letter, which follows the facet's name at the top level.
const (
	aggTerms       = 't'
	aggMissing     = 'm'
	aggCardinality = 'c'
	aggStats       = 's'
	aggHistogram   = 'h'
	aggRanges      = 'r'
	aggPage        = 'p'

	aggElements = "e"
	// aggDocuments counts the documents of nested elements.
	aggDocuments = "d"
	// aggPerDocument is the same aggregation again, with sub-aggregations. Buckets are ordered by aggDocuments, so the
	// sub-aggregations are computed only for the buckets that are returned.
	aggPerDocument = "x"
	aggTopHits     = "h"
	aggFilter      = "f"
)

// facetPrefix starts the name of a facet's aggregation, before its index in the search.
const facetPrefix = 'a'

// FacetName returns the name of the aggregations of the i-th facet of a search.
func FacetName(i int) string { return string(facetPrefix) + strconv.Itoa(i) }

// Numeric reports whether values of a field have statistics.
func Numeric(f query.Field) bool { return query.Keyed(f.Type) && f.Path != idPath }

// FacetWriter appends the aggregations of facets.
type FacetWriter struct {
	Filter  *FilterWriter
	IDField string
}

// Write appends the members of an aggs object that compute f, with names that start with name; nothing if the field's type
// supports none of them.
func (w *FacetWriter) Write(dst []byte, name string, f *index.Facet) []byte {
	top := memberList{dst: dst}
	if f.Missing {
		top.next()
		top.dst = append(top.dst, '"')
		top.dst = append(top.dst, name...)
		top.dst = append(top.dst, aggMissing)
		top.dst = append(top.dst, `":{"filter":{"bool":{"must_not":[`...)
		top.dst = w.Filter.Write(top.dst, existsAnywhere(f.Field))
		top.dst = append(top.dst, "]}}}"...)
	}
	if f.Field.Row() == "" {
		top.dst = w.metrics(top.dst, name, f, top.nonEmpty)
		return top.dst
	}
	parts := w.metrics(nil, "", f, false)
	if len(parts) == 0 {
		return top.dst
	}
	top.next()
	return w.nested(top.dst, name, f, parts)
}

// nested appends a nested aggregation over the rows of f's path that contains aggs.
func (w *FacetWriter) nested(dst []byte, name string, f *index.Facet, aggs []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, name...)
	dst = append(dst, `":{"nested":{"path":`...)
	dst = jsontext.AppendRawString(dst, f.Field.Row())
	dst = append(dst, `},"aggs":{`...)
	if f.Elements != nil {
		dst = append(dst, `"`+aggElements+`":{"filter":`...)
		dst = w.Filter.Write(dst, f.Elements)
		dst = append(dst, `,"aggs":{`...)
	}
	dst = append(dst, aggs...)
	if f.Elements != nil {
		dst = append(dst, "}}"...)
	}
	return append(dst, "}}"...)
}

// Page appends the members of an aggs object that return one page of all values of f in their order, after the key after.
func (w *FacetWriter) Page(dst []byte, name string, f *index.Facet, after []byte) []byte {
	head := `"` + string(aggPage)
	if f.Field.Row() == "" {
		head = `"` + name + string(aggPage)
	}
	part := append([]byte(head), `":{"composite":{"size":`...)
	part = strconv.AppendInt(part, maxBuckets, 10)
	part = append(part, `,"sources":[{"v":{"terms":{"field":`...)
	part = jsontext.AppendRawString(part, f.Field.Path)
	part = append(part, "}}}]"...)
	if after != nil {
		part = append(part, `,"after":`...)
		part = append(part, after...)
	}
	part = append(part, '}')
	part = appendDocuments(part, f.Field, w.perBucket(nil, f.Buckets))
	part = append(part, '}')
	if f.Field.Row() == "" {
		return append(dst, part...)
	}
	return w.nested(dst, name, f, part)
}

// existsAnywhere returns the filter of documents with a value of f.
func existsAnywhere(f query.Field) *query.Node {
	n := &query.Node{Op: query.Exists, Field: f}
	if row := f.Row(); row != "" {
		n = &query.Node{Op: query.Some, Path: row, Children: []*query.Node{n}}
	}
	return n
}

// memberList appends members separated by commas.
type memberList struct {
	dst      []byte
	nonEmpty bool
}

func (l *memberList) next() {
	if l.nonEmpty {
		l.dst = append(l.dst, ',')
	}
	l.nonEmpty = true
}

// metrics appends the aggregations of f's values at their row; nonEmpty means that dst already ends with a member.
func (w *FacetWriter) metrics(dst []byte, name string, f *index.Facet, nonEmpty bool) []byte {
	l := memberList{dst: dst, nonEmpty: nonEmpty}
	part := func(letter byte, kind string) {
		l.next()
		l.dst = append(l.dst, '"')
		l.dst = append(l.dst, name...)
		l.dst = append(l.dst, letter)
		l.dst = append(l.dst, `":{"`...)
		l.dst = append(l.dst, kind...)
		l.dst = append(l.dst, `":{"field":`...)
		l.dst = jsontext.AppendRawString(l.dst, f.Field.Path)
	}
	if f.Buckets != nil && Countable(f.Field) {
		part(aggTerms, "terms")
		l.dst = w.terms(l.dst, f)
	}
	if f.Cardinality > 0 && Countable(f.Field) {
		part(aggCardinality, "cardinality")
		l.dst = append(l.dst, `,"precision_threshold":`...)
		l.dst = strconv.AppendInt(l.dst, int64(min(f.Cardinality, maxPrecision)), 10)
		l.dst = append(l.dst, "}}"...)
	}
	if !Numeric(f.Field) {
		return l.dst
	}
	if f.Stats {
		part(aggStats, "stats")
		l.dst = append(l.dst, "}}"...)
	}
	if f.Histogram != 0 {
		// Empty intervals are added by FacetReader: the cluster would create them before it could reject too many.
		part(aggHistogram, "histogram")
		l.dst = append(l.dst, `,"interval":`...)
		l.dst = append(l.dst, query.Literal(f.Histogram)...)
		l.dst = append(l.dst, `,"min_doc_count":1}`...)
		l.dst = appendDocuments(l.dst, f.Field, nil)
		l.dst = append(l.dst, '}')
	}
	if ranges := appendNumberRanges(nil, f.Field, f.Ranges); len(ranges) > 0 {
		part(aggRanges, "range")
		l.dst = append(l.dst, `,"ranges":[`...)
		l.dst = append(l.dst, ranges...)
		l.dst = append(l.dst, "]}"...)
		l.dst = appendDocuments(l.dst, f.Field, nil)
		l.dst = append(l.dst, '}')
	}
	return l.dst
}

// terms appends the rest of a terms aggregation. Each shard returns more values than requested, so that counts are exact unless
// an index has very many values that are distributed unevenly over shards.
func (w *FacetWriter) terms(dst []byte, f *index.Facet) []byte {
	size := termsSize(f)
	dst = append(dst, `,"size":`...)
	dst = strconv.AppendInt(dst, int64(size), 10)
	dst = append(dst, `,"shard_size":`...)
	dst = strconv.AppendInt(dst, int64(size+size/2+1000), 10)
	if f.Field.Row() != "" {
		dst = append(dst, `,"order":[{"`+aggDocuments+`":"desc"},{"_key":"asc"}]`...)
	}
	dst = append(dst, '}')
	dst = appendDocuments(dst, f.Field, w.perBucket(nil, f.Buckets))
	return append(dst, '}')
}

// termsSize returns the number of values to request. The cluster orders addresses differently, so the last of those with equal
// counts are known only when all values are read.
func termsSize(f *index.Facet) int {
	if f.Field.Type == typeIP {
		return maxBuckets
	}
	return min(f.Buckets.Max, maxBuckets)
}

// perBucket appends the sub-aggregations for the documents of a bucket.
func (w *FacetWriter) perBucket(dst []byte, b *index.Buckets) []byte {
	l := memberList{dst: dst}
	for i, n := range b.Filters {
		l.next()
		l.dst = append(l.dst, `"`+aggFilter...)
		l.dst = strconv.AppendInt(l.dst, int64(i), 10)
		l.dst = append(l.dst, `":{"filter":`...)
		l.dst = w.Filter.Write(l.dst, n)
		l.dst = append(l.dst, '}')
	}
	if b.TopHits > 0 {
		l.next()
		l.dst = append(l.dst, `"`+aggTopHits+`":{"top_hits":{"size":`...)
		l.dst = strconv.AppendInt(l.dst, int64(b.TopHits), 10)
		l.dst = append(l.dst, `,"sort":`...)
		l.dst = AppendSorts(l.dst, []index.Sort{{Field: query.Field{Path: idPath}}}, w.IDField)
		l.dst = AppendSource(l.dst, b.TopSource)
		l.dst = append(l.dst, "}}"...)
	}
	return l.dst
}

// appendDocuments appends the aggs member of an aggregation over rows of f that counts documents, with sub-aggregations.
func appendDocuments(dst []byte, f query.Field, below []byte) []byte {
	const documents = `"` + aggDocuments + `":{"reverse_nested":{}}`
	nested := f.Row() != ""
	switch {
	case !nested && len(below) == 0:
		return dst
	case !nested:
		dst = append(dst, `,"aggs":{`...)
		dst = append(dst, below...)
	case len(below) == 0:
		dst = append(dst, `,"aggs":{`+documents...)
	default:
		dst = append(dst, `,"aggs":{`+documents+`,"`+aggPerDocument+`":{"reverse_nested":{},"aggs":{`...)
		dst = append(dst, below...)
		dst = append(dst, "}}"...)
	}
	return append(dst, '}')
}

// appendNumberRanges appends the non-empty ranges, with their indexes as keys, because the cluster returns them in another order.
func appendNumberRanges(dst []byte, f query.Field, ranges []index.NumberRange) []byte {
	l := memberList{dst: dst}
	for i, r := range ranges {
		from, to := math.Inf(-1), math.Inf(1)
		if r.From != nil {
			from = roundedUp(f, *r.From)
		}
		if r.To != nil {
			to = roundedUp(f, *r.To)
		}
		if !(from < to) || math.IsInf(from, 1) || math.IsInf(to, -1) { // also for NaN
			continue
		}
		l.next()
		l.dst = append(l.dst, `{"key":"`...)
		l.dst = strconv.AppendInt(l.dst, int64(i), 10)
		l.dst = append(l.dst, '"')
		if !math.IsInf(from, 0) {
			l.dst = append(l.dst, `,"from":`...)
			l.dst = append(l.dst, query.Literal(from)...)
		}
		if !math.IsInf(to, 0) {
			l.dst = append(l.dst, `,"to":`...)
			l.dst = append(l.dst, query.Literal(to)...)
		}
		l.dst = append(l.dst, '}')
	}
	return l.dst
}

// AppendSource appends the _source member of a search that selects a part of documents. It requests whole top-level members: from
// within an object the cluster omits empty lists and elements without the requested part, which would shift the positions of
// others.
func AppendSource(dst []byte, s index.Source) []byte {
	switch {
	case s.None || s.Paths != nil && len(s.Paths) == 0:
		return append(dst, `,"_source":false`...)
	case s.Paths == nil:
		return dst
	default:
		dst = append(dst, `,"_source":{"includes":`...)
		return append(appendStrings(dst, topMembers(s.Paths)), '}')
	}
}

// topMembers returns the top-level members that contain paths, in their order.
func topMembers(paths []string) []string {
	var members []string
	for _, path := range paths {
		member, _, _ := strings.Cut(path, ".")
		if !slices.Contains(members, member) {
			members = append(members, member)
		}
	}
	return members
}
