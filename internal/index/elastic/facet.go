package elastic

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/filter/query"
	"tutti/internal/index"
)

const (
	// maxBuckets is how many values are asked for at once: the cluster gives 65,536 buckets in one answer (search.max_buckets).
	maxBuckets = 65_000
	// maxPrecision is the highest precision_threshold of the cluster.
	maxPrecision = 40_000
)

// Names of aggregations in a body. The parts of a facet have a letter each, behind the facet's own name where they stand on
// the uppermost level.
const (
	aggTerms       = 't'
	aggMissing     = 'm'
	aggCardinality = 'c'
	aggStats       = 's'
	aggHistogram   = 'h'
	aggRanges      = 'r'
	aggPage        = 'p'

	aggElements = "e"
	// aggDocuments are the documents of elements: what is below counts them.
	aggDocuments = "d"
	// aggPerDocument are the same once more, with what is asked of them beside their number: the buckets are chosen by the number,
	// and the rest is then looked at in those alone that were.
	aggPerDocument = "x"
	aggTopHits     = "h"
	aggFilter      = "f"
)

// numeric tells whether values of a field have statistics.
func numeric(f query.Field) bool { return query.Keyed(f.Type) && f.Path != idPath }

// facetWriter appends the aggregations of facets.
type facetWriter struct {
	filter  *filterWriter
	idField string
}

// write appends the members of an aggs object that answer f under a name; nothing when there is nothing to ask.
func (w *facetWriter) write(dst []byte, name string, f *index.Facet) []byte {
	top := memberList{dst: dst}
	if f.Missing {
		top.next()
		top.dst = append(top.dst, '"')
		top.dst = append(top.dst, name...)
		top.dst = append(top.dst, aggMissing)
		top.dst = append(top.dst, `":{"filter":{"bool":{"must_not":[`...)
		top.dst = w.filter.write(top.dst, existsAnywhere(f.Field))
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

// nested appends an aggregation over the rows of f's nested path that has parts below it.
func (w *facetWriter) nested(dst []byte, name string, f *index.Facet, parts []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, name...)
	dst = append(dst, `":{"nested":{"path":`...)
	dst = appendString(dst, f.Field.Row())
	dst = append(dst, `},"aggs":{`...)
	if f.Elements != nil {
		dst = append(dst, `"`+aggElements+`":{"filter":`...)
		dst = w.filter.write(dst, f.Elements)
		dst = append(dst, `,"aggs":{`...)
	}
	dst = append(dst, parts...)
	if f.Elements != nil {
		dst = append(dst, "}}"...)
	}
	return append(dst, "}}"...)
}

// page appends the members of an aggs object that give a page of all values of f in their order, those behind the key after.
func (w *facetWriter) page(dst []byte, name string, f *index.Facet, after []byte) []byte {
	head := `"` + string(aggPage)
	if f.Field.Row() == "" {
		head = `"` + name + string(aggPage)
	}
	part := append([]byte(head), `":{"composite":{"size":`...)
	part = strconv.AppendInt(part, maxBuckets, 10)
	part = append(part, `,"sources":[{"v":{"terms":{"field":`...)
	part = appendString(part, f.Field.Path)
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

// existsAnywhere gives the documents that have a value of f.
func existsAnywhere(f query.Field) *query.Node {
	n := &query.Node{Op: query.Exists, Field: f}
	if row := f.Row(); row != "" {
		n = &query.Node{Op: query.Some, Path: row, Children: []*query.Node{n}}
	}
	return n
}

// memberList appends members that stand behind each other.
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

// metrics appends what is asked of the values of f, at their row, behind what is there already.
func (w *facetWriter) metrics(dst []byte, name string, f *index.Facet, some bool) []byte {
	l := memberList{dst: dst, nonEmpty: some}
	part := func(letter byte, kind string) {
		l.next()
		l.dst = append(l.dst, '"')
		l.dst = append(l.dst, name...)
		l.dst = append(l.dst, letter)
		l.dst = append(l.dst, `":{"`...)
		l.dst = append(l.dst, kind...)
		l.dst = append(l.dst, `":{"field":`...)
		l.dst = appendString(l.dst, f.Field.Path)
	}
	if f.Buckets != nil && countable(f.Field) {
		part(aggTerms, "terms")
		l.dst = w.terms(l.dst, f)
	}
	if f.Cardinality > 0 && countable(f.Field) {
		part(aggCardinality, "cardinality")
		l.dst = append(l.dst, `,"precision_threshold":`...)
		l.dst = strconv.AppendInt(l.dst, int64(min(f.Cardinality, maxPrecision)), 10)
		l.dst = append(l.dst, "}}"...)
	}
	if !numeric(f.Field) {
		return l.dst
	}
	if f.Stats {
		part(aggStats, "stats")
		l.dst = append(l.dst, "}}"...)
	}
	if f.Histogram != 0 {
		// Empty intervals are added here: the cluster would make them before it could tell that they are too many.
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

// terms appends the rest of a terms aggregation. Over several shards each gives more values than are asked for, so that the
// counts of those that are given are right in all but indices with very many values that are spread unevenly.
func (w *facetWriter) terms(dst []byte, f *index.Facet) []byte {
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

// termsSize gives how many values of f are asked for. Addresses have an order of their own in the cluster, so which of those with
// equal counts come last is only known when all are there.
func termsSize(f *index.Facet) int {
	if f.Field.Type == typeIP {
		return maxBuckets
	}
	return min(f.Buckets.Max, maxBuckets)
}

// perBucket appends what is asked of the documents of a bucket.
func (w *facetWriter) perBucket(dst []byte, b *index.Buckets) []byte {
	l := memberList{dst: dst}
	for i, n := range b.Filters {
		l.next()
		l.dst = append(l.dst, `"`+aggFilter...)
		l.dst = strconv.AppendInt(l.dst, int64(i), 10)
		l.dst = append(l.dst, `":{"filter":`...)
		l.dst = w.filter.write(l.dst, n)
		l.dst = append(l.dst, '}')
	}
	if b.TopHits > 0 {
		l.next()
		l.dst = append(l.dst, `"`+aggTopHits+`":{"top_hits":{"size":`...)
		l.dst = strconv.AppendInt(l.dst, int64(b.TopHits), 10)
		l.dst = append(l.dst, `,"sort":`...)
		l.dst = appendSorts(l.dst, []index.Sort{{Field: query.Field{Path: idPath}}}, w.idField)
		l.dst = appendSource(l.dst, b.TopSource)
		l.dst = append(l.dst, "}}"...)
	}
	return l.dst
}

// appendDocuments appends the aggs member of an aggregation over rows of f that counts documents, with what is asked of these.
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

// appendNumberRanges appends the ranges that values can lie in, each with its place as its key: the cluster gives them in
// another order.
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
		if !(from < to) || math.IsInf(from, 1) || math.IsInf(to, -1) { // also when one is no number
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

// appendSource appends the _source member of a search that says which part of documents is wanted, behind other members. What
// is asked for is whole members of the document: of a part of an object the cluster leaves out empty lists, and elements without
// the part, so that others would stand in their places.
func appendSource(dst []byte, s index.Source) []byte {
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

// topMembers gives the members of documents that paths are in, in their order.
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
