package dsl

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/elastic/flavour"
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

// FacetWriter encodes the aggregations of facets.
type FacetWriter struct {
	Filter  *FilterWriter
	IDField string
	// Engine is the engine that the facets are for.
	Engine flavour.Engine
}

// Write returns the members of an aggs object that compute f, with names that start with name; nothing if the field's type
// supports none of them.
func (w *FacetWriter) Write(name string, f *index.Facet) []byte {
	var missing []byte
	if f.Missing {
		missing = fmt.Appendf(nil, `"%s%c":{"filter":{"bool":{"must_not":[%s]}}}`, name, aggMissing,
			w.Filter.Write(nil, existsAnywhere(f.Field)))
	}
	if f.Field.Row() == "" {
		return Join(missing, w.metrics(name, f))
	}
	aggs := w.metrics("", f)
	if len(aggs) == 0 {
		return missing
	}
	return Join(missing, w.nested(name, f, aggs))
}

// nested returns a nested aggregation over the rows of f's path that contains aggs.
func (w *FacetWriter) nested(name string, f *index.Facet, aggs []byte) []byte {
	if f.Elements != nil {
		aggs = fmt.Appendf(nil, `"%s":{"filter":%s,"aggs":{%s}}`, aggElements, w.Filter.Write(nil, f.Elements), aggs)
	}
	return fmt.Appendf(nil, `"%s":{"nested":{"path":%s},"aggs":{%s}}`, name, quote(f.Field.Row()), aggs)
}

// Page returns the members of an aggs object that return one page of all values of f in their order, after the key after.
func (w *FacetWriter) Page(name string, f *index.Facet, after []byte) []byte {
	prefix, nested := name, f.Field.Row() != ""
	if nested {
		prefix = ""
	}
	if after != nil {
		after = fmt.Appendf(nil, `,"after":%s`, after)
	}
	part := fmt.Appendf(nil, `"%s%c":{"composite":{"size":%d,"sources":[{"v":{"terms":{"field":%s}}}]%s}%s}`,
		prefix, aggPage, maxBuckets, quote(f.Field.Path), after, documents(f.Field, w.perBucket(f.Buckets)))
	if !nested {
		return part
	}
	return w.nested(name, f, part)
}

// existsAnywhere returns the filter of documents with a value of f.
func existsAnywhere(f query.Field) *query.Node {
	n := &query.Node{Op: query.Exists, Field: f}
	if row := f.Row(); row != "" {
		n = &query.Node{Op: query.Some, Path: row, Children: []*query.Node{n}}
	}
	return n
}

// metrics returns the aggregations of f's values at their row.
func (w *FacetWriter) metrics(name string, f *index.Facet) []byte {
	var parts [][]byte
	// add adds an aggregation with its parameters besides the field, and its sub-aggregations.
	add := func(letter byte, kind string, parameters, below []byte) {
		parts = append(parts, fmt.Appendf(nil, `"%s%c":{"%s":{"field":%s%s}%s}`, name, letter, kind, quote(f.Field.Path), parameters, below))
	}
	if f.Buckets != nil && Countable(f.Field) {
		add(aggTerms, "terms", termsParameters(f), documents(f.Field, w.perBucket(f.Buckets)))
	}
	if f.Cardinality > 0 && Countable(f.Field) {
		add(aggCardinality, "cardinality", fmt.Appendf(nil, `,"precision_threshold":%d`, min(f.Cardinality, maxPrecision)), nil)
	}
	if !Numeric(f.Field) {
		return Join(parts...)
	}
	if f.Stats {
		add(aggStats, "stats", nil, nil)
	}
	if f.Histogram != 0 {
		// Empty intervals are added by FacetReader: the cluster would create them before it could reject too many.
		interval := fmt.Appendf(nil, `,"interval":%s,"min_doc_count":1`, jsontext.Number(f.Histogram))
		add(aggHistogram, "histogram", interval, documents(f.Field, nil))
	}
	if ranges := numberRanges(f.Field, f.Ranges); len(ranges) > 0 {
		var below []byte
		if fieldtype.Of(f.Field.Type).Group == fieldtype.Nanos && f.Field.Row() == "" {
			// Without a sub-aggregation, OpenSearch 2.19 counts from its points and compares their nanoseconds with the milliseconds.
			below = []byte(`"` + aggDocuments + `":{"filter":{"match_all":{}}}`)
		}
		add(aggRanges, "range", fmt.Appendf(nil, `,"ranges":[%s]`, ranges), documents(f.Field, below))
	}
	return Join(parts...)
}

// termsParameters returns the parameters of a terms aggregation. Each shard returns more values than requested, so that counts
// are exact unless an index has very many values that are distributed unevenly over shards.
func termsParameters(f *index.Facet) []byte {
	size, order := termsSize(f), ""
	if f.Field.Row() != "" {
		order = `,"order":[{"` + aggDocuments + `":"desc"},{"_key":"asc"}]`
	}
	return fmt.Appendf(nil, `,"size":%d,"shard_size":%d%s`, size, size+size/2+1000, order)
}

// termsSize returns the number of values to request. The cluster orders addresses differently, so the last of those with equal
// counts are known only when all values are read.
func termsSize(f *index.Facet) int {
	if f.Field.Type == typeIP {
		return maxBuckets
	}
	if fieldtype.Of(f.Field.Type).Group == fieldtype.Float { // two of them may be the zeros, which are one
		return min(f.Buckets.Max+1, maxBuckets)
	}
	return min(f.Buckets.Max, maxBuckets)
}

// perBucket returns the sub-aggregations for the documents of a bucket.
func (w *FacetWriter) perBucket(b *index.Buckets) []byte {
	var parts [][]byte
	for i, n := range b.Filters {
		parts = append(parts, fmt.Appendf(nil, `"%s%d":{"filter":%s}`, aggFilter, i, w.Filter.Write(nil, n)))
	}
	if b.TopHits > 0 {
		byID := AppendSorts(nil, []index.Sort{{Field: query.Field{Path: idPath}}}, w.IDField)
		parts = append(parts, fmt.Appendf(nil, `"%s":{"top_hits":{"size":%d,"sort":%s%s}}`,
			aggTopHits, b.TopHits, byID, AppendSource(nil, b.TopSource, w.Engine)))
	}
	return Join(parts...)
}

// documents returns the aggs member of an aggregation over rows of f that counts documents, with sub-aggregations.
func documents(f query.Field, below []byte) []byte {
	const count = `"` + aggDocuments + `":{"reverse_nested":{}}`
	nested := f.Row() != ""
	switch {
	case !nested && len(below) == 0:
		return nil
	case !nested:
		return fmt.Appendf(nil, `,"aggs":{%s}`, below)
	case len(below) == 0:
		return []byte(`,"aggs":{` + count + `}`)
	default:
		return fmt.Appendf(nil, `,"aggs":{`+count+`,"`+aggPerDocument+`":{"reverse_nested":{},"aggs":{%s}}}`, below)
	}
}

// numberRanges returns the non-empty ranges, with their indexes as keys, because the cluster returns them in another order.
func numberRanges(f query.Field, ranges []index.NumberRange) []byte {
	var parts [][]byte
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
		part := fmt.Appendf(nil, `{"key":"%d"`, i)
		if !math.IsInf(from, 0) {
			part = fmt.Appendf(part, `,"from":%s`, jsontext.Number(from))
		}
		if !math.IsInf(to, 0) {
			part = fmt.Appendf(part, `,"to":%s`, jsontext.Number(to))
		}
		parts = append(parts, append(part, '}'))
	}
	return Join(parts...)
}

// AppendSource appends the _source member of a search that selects a part of documents. It requests whole top-level members: from
// within an object the cluster omits empty lists and elements without the requested part, which would shift the positions of
// others. Of an engine that leaves vectors out it requests them.
func AppendSource(dst []byte, s index.Source, engine flavour.Engine) []byte {
	const withVectors = `"exclude_vectors":false`
	switch {
	case s.None || s.Paths != nil && len(s.Paths) == 0:
		return append(dst, `,"_source":false`...)
	case s.Paths == nil && engine.OmitsVectors():
		return append(dst, `,"_source":{`+withVectors+`}`...)
	case s.Paths == nil:
		return dst
	case engine.OmitsVectors():
		return fmt.Appendf(dst, `,"_source":{"includes":%s,%s}`, quoteAll(topMembers(s.Paths)), withVectors)
	default:
		return fmt.Appendf(dst, `,"_source":{"includes":%s}`, quoteAll(topMembers(s.Paths)))
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
