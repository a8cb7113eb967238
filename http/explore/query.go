package explore

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
)

const (
	// maxFacets, maxRanges and maxBuckets bound what a page shows.
	maxFacets, maxRanges, maxBuckets = 12, 3, 60
	// bars is the number of bars of a histogram.
	bars = 20
	// maxColumns bounds the columns that are shown by default, maxQuick the fields of the quick search.
	maxColumns, maxQuick = 6, 16
	// maxShown bounds the values of one cell, maxCell its bytes.
	maxShown, maxCell = 4, 300
	day               = 24 * float64(time.Hour/time.Millisecond)
)

// Layout is which fields of a catalogue a page shows.
type Layout struct {
	// Terms are the facets with values, Ranges those with bounds, Columns those that a table may have, Default those it has by default.
	Terms, Ranges, Columns []core.CatalogueField
	Default                []string
	// Quick are the fields of the quick search.
	Quick []string
	// Sort is the default order.
	Sort       string
	Descending bool
}

// ConfigQuery returns the GraphQL query of the display configuration of a document type.
func ConfigQuery(document string) string {
	return "{" + document + "{configs{extended facets{aggregations{fieldName show isActive}} " +
		"table{columns{fieldName show} defaultSorting{fieldName desc}}}}}"
}

// NewLayout chooses the fields of a page: those that the catalogue's configuration names, else the first ones that fit.
func NewLayout(fields []core.CatalogueField, configs gjson.Result) Layout {
	var l Layout
	byName := map[string]core.CatalogueField{}
	var leaves []core.CatalogueField
	for _, f := range fields {
		if !isLeaf(f.Type) || !isName(f.Name) {
			continue
		}
		byName[f.Name] = f
		leaves = append(leaves, f)
		parent := f.Name[:max(0, strings.LastIndexByte(f.Name, '.'))]
		if byName[parent].Name == "" { // a multi-field has values only for facets
			l.Columns = append(l.Columns, f)
		}
	}
	facets := shown(configs.Get("facets.aggregations"), byName)
	if len(facets) == 0 {
		facets = leaves
	}
	l.addFacets(facets, leaves)
	l.setDefault(configs.Get("table.columns"), byName)
	l.setQuick(configs.Get("extended"), byName)
	if first := configs.Get("table.defaultSorting.0"); Countable(byName[first.Get("fieldName").String()]) {
		l.Sort, l.Descending = first.Get("fieldName").String(), first.Get("desc").Bool()
	}
	return l
}

// shown returns the fields of a configured list that are to be shown.
func shown(list gjson.Result, byName map[string]core.CatalogueField) (found []core.CatalogueField) {
	for _, one := range list.Array() {
		if one.Get("show").Type == gjson.False || one.Get("isActive").Type == gjson.False {
			continue
		}
		if f, ok := byName[strings.ReplaceAll(one.Get("fieldName").String(), "__", ".")]; ok {
			found = append(found, f)
		}
	}
	return found
}

// setDefault sets the columns that a table has by default.
func (l *Layout) setDefault(configured gjson.Result, byName map[string]core.CatalogueField) {
	for _, f := range shown(configured, byName) {
		if slices.ContainsFunc(l.Columns, func(c core.CatalogueField) bool { return c.Name == f.Name }) {
			l.Default = append(l.Default, f.Name)
		}
	}
	if len(l.Default) > 0 {
		return
	}
	for _, f := range l.Columns {
		if !fieldtype.Of(f.Type).Analyzed() && len(l.Default) < maxColumns {
			l.Default = append(l.Default, f.Name)
		}
	}
}

// setQuick sets the fields of the quick search: those that are configured for it, else the first keywords. QuickFields adds what is shown.
func (l *Layout) setQuick(extended gjson.Result, byName map[string]core.CatalogueField) {
	for _, one := range extended.Array() {
		name := one.Get("fieldName").String()
		if f := byName[name]; one.Get("quickSearchEnabled").Bool() && (f.Type == "keyword" || fieldtype.Of(f.Type).Analyzed()) {
			l.Quick = append(l.Quick, name)
		}
	}
	if len(l.Quick) > 0 {
		return
	}
	for _, f := range l.Columns {
		if f.Type == "keyword" && len(l.Quick) < maxQuick {
			l.Quick = append(l.Quick, f.Name)
		}
	}
}

// QuickFields returns the fields that the quick search searches: its own, and those whose words are on the screen as columns or facets.
func (l Layout) QuickFields(columns []core.CatalogueField) []string {
	fields := slices.Clone(l.Quick)
	for _, f := range slices.Concat(columns, l.Terms) {
		if (f.Type == "keyword" || fieldtype.Of(f.Type).Analyzed()) && len(fields) < maxQuick && !slices.Contains(fields, f.Name) {
			fields = append(fields, f.Name)
		}
	}
	return fields
}

// addFacets chooses facets among the wanted fields, and ranges also among all: those with a unit first.
func (l *Layout) addFacets(wanted, all []core.CatalogueField) {
	for _, f := range wanted {
		switch {
		case isTerm(f) && len(l.Terms) < maxFacets:
			l.Terms = append(l.Terms, f)
		case isOrdered(f) && len(l.Ranges) < maxRanges:
			l.Ranges = append(l.Ranges, f)
		}
	}
	if len(l.Ranges) > 0 {
		return
	}
	numeric := slices.DeleteFunc(slices.Clone(all), func(f core.CatalogueField) bool { return !isOrdered(f) })
	sort.SliceStable(numeric, func(i, j int) bool { return numeric[i].Unit != "" && numeric[j].Unit == "" })
	l.Ranges = numeric[:min(len(numeric), maxRanges)]
}

// Query returns the GraphQL query of a page: hits with the columns, and the facets. Its variables are sqon, sort, first and offset.
func Query(document string, l Layout, columns []core.CatalogueField, fields []core.CatalogueField) string {
	var b strings.Builder
	b.WriteString("query($sqon:JSON,$sort:[Sort],$first:Int,$offset:Int){" + document + "{hits(filters:$sqon,sort:$sort,first:$first,offset:$offset){total edges{node{id ")
	root := &selection{}
	for _, f := range columns {
		root.add(strings.Split(f.Name, "."))
	}
	root.write(&b, "", nestedOf(fields))
	b.WriteString("}}}")
	if len(l.Terms)+len(l.Ranges) > 0 {
		b.WriteString(" aggregations(filters:$sqon,include_missing:false,aggregations_filter_themselves:false){")
		for _, f := range l.Terms {
			fmt.Fprintf(&b, "%s{buckets(max:%d){key key_as_string doc_count}} ", AggregationName(f.Name), maxBuckets+1)
		}
		for _, f := range l.Ranges {
			b.WriteString(AggregationName(f.Name) + "{stats{min max count}} ")
		}
		b.WriteString("}")
	}
	b.WriteString("}}")
	return b.String()
}

// Searched returns the facets with more values than a response to Query has, in which a text is to be found: FindQuery finds it in all.
func Searched(l Layout, s Selection, aggregations gjson.Result) []core.CatalogueField {
	var fields []core.CatalogueField
	for _, f := range l.Terms {
		count := aggregations.Get(gjsonKey(AggregationName(f.Name)) + ".buckets.#").Int()
		if s.Finds[f.Name] != "" && isLarge(f, int(count)) {
			fields = append(fields, f)
		}
	}
	return fields
}

// isLarge reports whether a field with so many buckets in a response has more values than a page shows, and a type whose values can be
// searched for a text. A response has one more bucket than a page shows, if there are so many.
func isLarge(f core.CatalogueField, buckets int) bool {
	return buckets > maxBuckets && fieldtype.Of(f.Type).Group == fieldtype.Exact
}

// FindQuery returns the GraphQL query of the values of a field in the documents that its variable sqon selects: the Selection's Finding.
func FindQuery(document string, f core.CatalogueField) string {
	return fmt.Sprintf("query($sqon:JSON){%s{aggregations(filters:$sqon,include_missing:false,aggregations_filter_themselves:true){%s{buckets(max:%d){key key_as_string doc_count}}}}}",
		document, AggregationName(f.Name), maxBuckets+1)
}

// Found returns the facet of a response to FindQuery.
func Found(document string, f core.CatalogueField, data gjson.Result) gjson.Result {
	return data.Get(document + ".aggregations." + gjsonKey(AggregationName(f.Name)))
}

// HistogramQuery returns the GraphQL query of the histograms of ranges, empty if there is nothing to draw. aggregations are those of the
// response to Query. Its variable is sqon.
func HistogramQuery(document string, l Layout, aggregations gjson.Result) string {
	var b strings.Builder
	for _, f := range l.Ranges {
		if interval := intervalOf(f, aggregations.Get(gjsonKey(AggregationName(f.Name))+".stats")); interval > 0 {
			fmt.Fprintf(&b, "%s{histogram(interval:%s){buckets{key doc_count}}} ", AggregationName(f.Name), strconv.FormatFloat(interval, 'f', -1, 64))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "query($sqon:JSON){" + document + "{aggregations(filters:$sqon,include_missing:false,aggregations_filter_themselves:false){" + b.String() + "}}}"
}

// intervalOf returns the width of the bars of a histogram, 0 for none.
func intervalOf(f core.CatalogueField, stats gjson.Result) float64 {
	low, high := stats.Get("min").Float(), stats.Get("max").Float()
	if stats.Get("count").Int() == 0 || high <= low {
		return 0
	}
	interval := (high - low) / bars
	if fieldtype.Of(f.Type).Date() {
		return max(day, float64(int64(interval/day+1))*day)
	}
	if !fieldtype.Of(f.Type).Fractional() {
		return max(1, float64(int64(interval+1)))
	}
	return interval
}

// selection is a selection set of GraphQL.
type selection struct {
	names    []string
	children map[string]*selection
}

func (s *selection) add(path []string) {
	if len(path) == 0 {
		return
	}
	if s.children == nil {
		s.children = map[string]*selection{}
	}
	if s.children[path[0]] == nil {
		s.children[path[0]] = &selection{}
		s.names = append(s.names, path[0])
	}
	s.children[path[0]].add(path[1:])
}

func (s *selection) write(b *strings.Builder, prefix string, nested map[string]bool) {
	for _, name := range s.names {
		b.WriteString(name)
		if child := s.children[name]; len(child.names) > 0 {
			open, closing := "{", "} "
			if nested[prefix+name] {
				open, closing = "{hits{edges{node{", "}}}} "
			}
			b.WriteString(open)
			child.write(b, prefix+name+".", nested)
			b.WriteString(closing)
		} else {
			b.WriteByte(' ')
		}
	}
}

func nestedOf(fields []core.CatalogueField) map[string]bool {
	nested := map[string]bool{}
	for _, f := range fields {
		if f.Type == "nested" {
			nested[f.Name] = true
		}
	}
	return nested
}

// DocumentName returns the name of a document type in GraphQL.
func DocumentName(documentType string) string {
	var b strings.Builder
	for i, r := range documentType {
		digit := r >= '0' && r <= '9'
		if i == 0 && digit {
			b.WriteByte('_')
		}
		if digit || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	return b.String()
}

// AggregationName returns the name of a field among the aggregations of GraphQL.
func AggregationName(name string) string { return strings.ReplaceAll(name, ".", "__") }

func gjsonKey(name string) string { return strings.ReplaceAll(name, ".", `\.`) }

// isName reports whether the segments of a dotted name are names in GraphQL, so that the name has the same form there.
func isName(dotted string) bool {
	for segment := range strings.SplitSeq(dotted, ".") {
		if segment == "" || strings.HasPrefix(segment, "__") || DocumentName(segment) != segment {
			return false
		}
	}
	return true
}
