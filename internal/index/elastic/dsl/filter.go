package dsl

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
)

const (
	// maxQueryDepth is the depth from which compound queries are wrapped. Elasticsearch 7 allows 20 levels, later ones 30
	// (indices.query.bool.max_nested_depth) and restarts counting inside a wrapper query.
	maxQueryDepth = 18
	// maxTermsCount is the maximum number of terms in one query (index.max_terms_count).
	maxTermsCount = 65_536
	// maxPatternMatches limits the values that replace patterns of a type for which the cluster has no pattern query.
	maxPatternMatches = 10_000
)

// Queries that match everything and nothing.
const (
	MatchAll  = `{"match_all":{}}`
	matchNone = `{"match_none":{}}`
)

// MatchEach matches every document, as MatchAll does, for a composite aggregation: over MatchAll the cluster reads the documents of each value
// anew, with all their values, which took 39 s for 325,000 values in documents of 1,000 instead of 0.5 s. No id has more than 512 bytes.
var MatchEach = `{"bool":{"must_not":{"term":{"_id":"` + strings.Repeat("-", 513) + `"}}}}`

// FilterWriter writes filters as queries. Equal trees produce equal bytes, which the cluster's request cache requires.
type FilterWriter struct {
	// Values are, for each node of PatternNodes, the values of its field in the documents that it can select.
	Values map[*query.Node][]string
	Err    error
}

// Write appends the query of n to dst; nil matches everything.
func (w *FilterWriter) Write(dst []byte, n *query.Node) []byte {
	if n == nil {
		return append(dst, MatchAll...)
	}
	return w.node(dst, n, 1)
}

// node appends the query of n at a nesting depth.
func (w *FilterWriter) node(dst []byte, n *query.Node, depth int) []byte {
	switch n.Op {
	case query.Everything:
		return append(dst, MatchAll...)
	case query.And, query.Or, query.Not, query.Some:
		if depth >= maxQueryDepth {
			return w.wrapped(dst, n)
		}
		return w.compound(dst, n, depth)
	case query.Terms:
		return w.terms(dst, n.Field, n.Terms)
	case query.Range:
		return appendRange(dst, n)
	case query.Patterns:
		return w.patterns(dst, n)
	case query.Exists:
		return appendExists(dst, n.Field)
	default:
		return append(dst, matchNone...)
	}
}

// wrapped appends the query of n as a wrapper query, in which the cluster restarts counting depth.
func (w *FilterWriter) wrapped(dst []byte, n *query.Node) []byte {
	dst = append(dst, `{"wrapper":{"query":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, w.compound(nil, n, 1))
	return append(dst, `"}}`...)
}

func (w *FilterWriter) compound(dst []byte, n *query.Node, depth int) []byte {
	switch n.Op {
	case query.Some:
		dst = fmt.Appendf(dst, `{"nested":{"path":%s,"score_mode":"none","query":`, quote(n.Path))
		return append(w.node(dst, n.Children[0], depth+1), "}}"...)
	case query.Or:
		should := flattenOp(nil, query.Or, n)
		if len(should) == 1 {
			return w.node(dst, should[0], depth)
		}
		dst = append(dst, `{"bool":{`...)
		return append(w.clauses(dst, "should", should, depth), "}}"...)
	default:
		var filter, mustNot []*query.Node
		filter, mustNot = splitBool(filter, mustNot, n)
		if len(filter) == 1 && len(mustNot) == 0 {
			return w.node(dst, filter[0], depth)
		}
		dst = append(dst, `{"bool":{`...)
		if len(filter) > 0 {
			dst = w.clauses(dst, "filter", filter, depth)
		}
		if len(filter) > 0 && len(mustNot) > 0 {
			dst = append(dst, ',')
		}
		if len(mustNot) > 0 {
			dst = w.clauses(dst, "must_not", mustNot, depth)
		}
		return append(dst, "}}"...)
	}
}

// clauses appends one list of a bool query.
func (w *FilterWriter) clauses(dst []byte, name string, nodes []*query.Node, depth int) []byte {
	dst = fmt.Appendf(dst, `"%s":[`, name)
	for i, n := range nodes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.node(dst, n, depth+1)
	}
	return append(dst, ']')
}

// flattenOp appends n to dst or, if n is a tree of op, the operands at any depth.
func flattenOp(dst []*query.Node, op query.Op, n *query.Node) []*query.Node {
	if n.Op != op {
		return append(dst, n)
	}
	for _, child := range n.Children {
		dst = flattenOp(dst, op, child)
	}
	return dst
}

// splitBool appends the clauses that must hold and those that must not hold for n.
func splitBool(filter, mustNot []*query.Node, n *query.Node) (with, without []*query.Node) {
	switch n.Op {
	case query.And:
		for _, child := range n.Children {
			filter, mustNot = splitBool(filter, mustNot, child)
		}
	case query.Not:
		if inner := n.Children[0]; inner.Op == query.Not {
			return splitBool(filter, mustNot, inner.Children[0])
		}
		mustNot = flattenOp(mustNot, query.Or, n.Children[0])
	default:
		filter = append(filter, n)
	}
	return filter, mustNot
}

// terms appends the query of rows with a value in terms.
func (w *FilterWriter) terms(dst []byte, f query.Field, terms []string) []byte {
	if f.Constant != "" { // OpenSearch takes an asterisk in the terms of a constant for a pattern
		terms = slices.DeleteFunc(slices.Clone(terms), func(term string) bool { return term != f.Constant })
	}
	switch {
	case len(terms) == 0 || !searchable(f):
		return append(dst, matchNone...)
	case fieldtype.Of(f.End().Type).Group == fieldtype.Float && slices.Contains(terms, "0") && !slices.Contains(terms, negativeZero):
		terms = append(slices.Clip(terms), negativeZero)
	}
	switch {
	case f.Path == idPath:
		return fmt.Appendf(dst, `{"ids":{"values":%s}}`, quoteAll(terms))
	case len(terms) == 1 && f.Type != "wildcard": // of whose terms OpenSearch 2 takes a single one for a pattern
		return fmt.Appendf(dst, `{"term":{%s:%s}}`, quote(f.Path), quote(terms[0]))
	case len(terms) <= maxTermsCount:
		return fmt.Appendf(dst, `{"terms":{%s:%s}}`, quote(f.Path), quoteAll(terms))
	}
	var parts [][]byte
	for part := range slices.Chunk(terms, maxTermsCount) {
		parts = append(parts, w.terms(nil, f, part))
	}
	return appendShould(dst, parts)
}

// patterns appends the query of rows with a value that matches a pattern.
func (w *FilterWriter) patterns(dst []byte, n *query.Node) []byte {
	if n.Field.Path == idPath || !searchable(n.Field) || query.Keyed(n.Field.Type) || len(n.Patterns) == 0 {
		return append(dst, matchNone...)
	}
	if matchesLocally(n) || n.Field.Constant != "" { // of which OpenSearch takes a question mark as itself
		return w.terms(dst, n.Field, w.matches(n))
	}
	fold := ""
	if n.Fold {
		fold = `,"case_insensitive":true`
	}
	parts := make([][]byte, len(n.Patterns))
	for i, p := range n.Patterns {
		parts[i] = fmt.Appendf(nil, `{"wildcard":{%s:{"value":%s%s}}}`, quote(n.Field.Path), quote(string(p)), fold)
	}
	if len(parts) == 1 {
		return append(dst, parts[0]...)
	}
	return appendShould(dst, parts)
}

// appendShould appends a query of rows that match one of queries.
func appendShould(dst []byte, queries [][]byte) []byte {
	return fmt.Appendf(dst, `{"bool":{"should":[%s]}}`, Join(queries...))
}

// matchesLocally reports whether n's patterns are matched by tutti against the values in the index: the cluster has no pattern
// query for addresses.
func matchesLocally(n *query.Node) bool { return n.Op == query.Patterns && n.Field.Type == typeIP }

// PatternNodes appends to into the nodes in n with patterns that need the values of their field.
func PatternNodes(into []*query.Node, n *query.Node) []*query.Node {
	if n == nil {
		return into
	}
	if matchesLocally(n) {
		into = append(into, n)
	}
	for _, child := range n.Children {
		into = PatternNodes(into, child)
	}
	return into
}

// matches returns the values that match n.
func (w *FilterWriter) matches(n *query.Node) []string {
	var found []string
	values := w.Values[n]
	if n.Field.Constant != "" {
		values = []string{n.Field.Constant}
	}
	for _, value := range values {
		for _, p := range n.Patterns {
			if n.Fold && p.MatchFold(value) || !n.Fold && p.Match(value) {
				found = append(found, value)
				break
			}
		}
	}
	if len(found) > maxPatternMatches {
		w.Err = core.NewError(core.CodeInvalid, fmt.Sprintf("more than %d values of the field %s match a pattern; use a more specific one",
			maxPatternMatches, n.Field.Path))
	}
	return found
}

func appendExists(dst []byte, f query.Field) []byte {
	if f.Path == idPath {
		return append(dst, MatchAll...)
	}
	return fmt.Appendf(dst, `{"exists":{"field":%s}}`, quote(f.Path))
}

// quote returns a string of JSON.
func quote(text string) []byte { return jsontext.AppendRawString(nil, text) }

// quoteAll returns an array of strings of JSON.
func quoteAll(texts []string) []byte {
	dst := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendRawString(dst, text)
	}
	return append(dst, ']')
}

// Join joins the parts that are not empty by commas.
func Join(parts ...[]byte) []byte {
	return bytes.Join(slices.DeleteFunc(parts, func(part []byte) bool { return len(part) == 0 }), []byte{','})
}

// appendRange appends the query of rows with a value within n's bounds. The cluster rejects bounds outside a type's range and
// rounds dates in its own way, so bounds are first converted to values of the type.
func appendRange(dst []byte, n *query.Node) []byte {
	bounds, ok := boundsOf(&query.Node{Field: n.Field.End(), From: n.From, To: n.To})
	if !ok {
		return append(dst, matchNone...)
	}
	if len(bounds.limits) == 0 {
		return appendExists(dst, n.Field)
	}
	var parts [][]byte
	for _, limit := range bounds.limits {
		parts = append(parts, fmt.Appendf(nil, `"%s":"%s"`, limit.op, limit.text))
	}
	if bounds.format != "" {
		parts = append(parts, fmt.Appendf(nil, `"format":"%s"`, bounds.format))
	}
	return fmt.Appendf(dst, `{"range":{%s:{%s}}}`, quote(n.Field.Path), Join(parts...))
}

// rangeBounds are the bounds of a range query, none when all values match.
type rangeBounds struct {
	limits []rangeLimit
	// format is the format of dates.
	format string
}

type rangeLimit struct{ op, text string }

// boundsOf converts n's bounds for the cluster; false when no value can match.
func boundsOf(n *query.Node) (rangeBounds, bool) {
	switch {
	case !query.Keyed(n.Field.Type):
		return rangeBounds{}, false
	case fieldtype.Of(n.Field.Type).Group == fieldtype.Nanos:
		return nanosBounds(n)
	case fieldtype.Of(n.Field.Type).Group == fieldtype.Float:
		return fractionBounds(n)
	}
	var b rangeBounds
	lo, hi, ok := query.KeyRange(n.Field, n.From, n.To)
	if !ok {
		return b, false
	}
	if n.From.Set {
		b.limits = append(b.limits, rangeLimit{"gte", query.Text(n.Field, lo)})
	}
	if n.To.Set {
		b.limits = append(b.limits, rangeLimit{"lte", query.Text(n.Field, hi)})
	}
	if query.Dated(n.Field.Type) {
		b.asDates()
	}
	return b, true
}

// asDates writes bounds in milliseconds as dates. OpenSearch finds nothing by negative numbers, so these are written as texts, as far as
// they have the four digits of a year.
func (b *rangeBounds) asDates() {
	b.format = "epoch_millis"
	for i := range b.limits {
		limit := &b.limits[i]
		millis, err := strconv.ParseInt(limit.text, 10, 64)
		if t := time.UnixMilli(millis).UTC(); err == nil && millis < 0 && t.Year() >= -9999 {
			limit.text, b.format = t.Format("2006-01-02T15:04:05.000Z"), "epoch_millis||strict_date_optional_time"
		}
	}
}

// fractionBounds converts the bounds for a fractional type, rounded as the type rounds. A bound outside the type's range is
// dropped, or excludes all values.
func fractionBounds(n *query.Node) (rangeBounds, bool) {
	var b rangeBounds
	for _, end := range []struct {
		query.Bound
		upper bool
	}{{n.From, false}, {n.To, true}} {
		if !end.Set {
			continue
		}
		key, fits := query.Key(n.Field, end.Number)
		switch negative := strings.HasPrefix(end.Number, "-"); {
		case fits:
			text := jsontext.Number(query.Number(n.Field, key))
			if text == "0" && end.Inclusive != end.upper { // gte and lt: before both zeros
				text = negativeZero
			}
			b.limits = append(b.limits, rangeLimit{comparison(end.upper, end.Inclusive), text})
		case negative == end.upper:
			return b, false
		}
	}
	return b, true
}

// nanosBounds converts the bounds for date_nanos.
func nanosBounds(n *query.Node) (rangeBounds, bool) {
	b := rangeBounds{format: "strict_date_optional_time_nanos"}
	first, last := time.Unix(0, 0), time.Unix(0, math.MaxInt64) // the type's range
	for _, end := range []struct {
		query.Bound
		upper bool
	}{{n.From, false}, {n.To, true}} {
		before, after := end.Time.Before(first), end.Time.After(last)
		switch {
		case !end.Set, before && !end.upper, after && end.upper: // all values are within the bound
		case before || after:
			return b, false
		default:
			b.limits = append(b.limits, rangeLimit{comparison(end.upper, end.Inclusive), nanosText(end.Time)})
		}
	}
	return b, true
}

// nanosText formats all nine digits: the cluster rounds missing ones.
func nanosText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }

func comparison(upper, inclusive bool) string {
	switch {
	case upper && inclusive:
		return "lte"
	case upper:
		return "lt"
	case inclusive:
		return "gte"
	default:
		return "gt"
	}
}

// integerUp is roundedUp for an integer type. A bound outside the type's range is infinite. Elasticsearch 7 rejects both fractions and
// bounds outside the range.
func integerUp(f query.Field, v float64) float64 {
	low, high := fieldtype.Of(f.Type).Limits()
	switch up := math.Ceil(v); {
	case up > high:
		return math.Inf(1)
	case up <= low:
		return math.Inf(-1)
	default:
		return up
	}
}

// roundedUp returns the lowest value of a numeric type that is not below v, infinity when there is none. The cluster rounds
// the bounds of a range aggregation to the nearest value of the type.
func roundedUp(f query.Field, v float64) float64 {
	t := fieldtype.Of(f.Type)
	switch {
	case t.Integral():
		return integerUp(f, v)
	case f.Scale != 0:
		return scaledUp(f, v)
	case t.Group != fieldtype.Float || t.Bits == 64:
		return v
	}
	key, fits := query.Key(f, jsontext.Number(v))
	switch nearest := query.Number(f, key); {
	case !fits && v > 0:
		return math.Inf(1)
	case !fits && v < 0:
		least, _ := t.Limits()
		return max(v, least)
	case !fits:
		return v
	case nearest >= v:
		return nearest
	case t.Bits == 32:
		return float64(math.Nextafter32(float32(nearest), float32(math.Inf(1))))
	default:
		return nextHalf(nearest)
	}
}

// scaledUp returns the middle between the lowest value of a scaled_float that is not below v and the one before: the cluster compares numbers that
// are next to the values (query.Computed).
func scaledUp(f query.Field, v float64) float64 {
	stored := math.Round(v * f.Scale)
	if stored/f.Scale < v {
		stored++
	}
	return (stored - 0.5) / f.Scale
}

// nextHalf returns the next half_float after v, which must be one; infinity after the last.
func nextHalf(v float64) float64 {
	if _, most := fieldtype.Of("half_float").Limits(); v >= most {
		return math.Inf(1)
	}
	exponent := -14
	if v != 0 {
		exponent = max(math.Ilogb(v), exponent)
	}
	if v == -math.Ldexp(1, exponent) && exponent > -14 {
		exponent-- // towards zero the steps after a power of two are shorter
	}
	return v + math.Ldexp(1, exponent-10)
}

const (
	// idPath is the path of the document's id.
	idPath = "_id"
	typeIP = "ip"
)

// searchable reports whether the field can be searched by value.
func searchable(f query.Field) bool {
	return f.Path == idPath || query.Searchable(f.Type)
}

// Countable reports whether values of a field can be counted and sorted; other fields have no buckets and no order.
func Countable(f query.Field) bool {
	return f.Path != idPath && query.Countable(f.Type)
}

// negativeZero is the zero below zero that the cluster has in floating-point types; to filters they are the same.
const negativeZero = "-0.0"
