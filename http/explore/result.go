package explore

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
)

// Facet are the values of a field with their numbers of documents.
type Facet struct {
	core.CatalogueField
	// Total is the number of distinct values, at most that of a page. Partial is set if Values lacks some of those that match Find.
	Total   int
	Partial bool
	// Large is set if there are more values than a response has, so that a text is to be found by another query.
	Large  bool
	Values []Value
	Find   string
}

// Value is one value of a facet.
type Value struct {
	Key, Label string
	Count      int64
	Chosen     bool
	// Share is Count in percent of the highest of the facet.
	Share int64
}

// RangeFacet are the bounds of a field and its histogram.
type RangeFacet struct {
	core.CatalogueField
	Range
	// Min and Max are the lowest and the highest value; Empty is set if there is none.
	Min, Max string
	Empty    bool
	// Low and High are Min and Max as numbers, of dates in milliseconds since 1970; Step is the distance of the values that a slider has
	// between them, "any" for all. Slides is set if there is anything between them.
	Low, High, Step string
	Slides          bool
	// Date is set for dates. Histogram is JSON of the keys and the counts of its bars, empty for none.
	Date      bool
	Histogram string
	Bars      []Bar
}

// Bar is one bar of a histogram, in percent of the drawing.
type Bar struct{ X, Y, Width, Height float64 }

// Row is one document of a table.
type Row struct {
	ID    string
	Cells []string
}

// Facets returns the facets of a response to Query. Chosen values are kept even if no document has them. found are the responses to the
// FindQuery of a field, by its name.
func Facets(l Layout, s Selection, aggregations gjson.Result, found map[string]gjson.Result) []Facet {
	facets := make([]Facet, 0, len(l.Terms))
	for _, f := range l.Terms {
		of := aggregations.Get(gjsonKey(AggregationName(f.Name)))
		buckets := of.Get("buckets").Array()
		facet := Facet{CatalogueField: f, Total: min(len(buckets), maxBuckets), Large: isLarge(f, len(buckets)), Find: s.Finds[f.Name]}
		if searched, is := found[f.Name]; is {
			buckets = searched.Get("buckets").Array()
		}
		facet.Partial = len(buckets) > maxBuckets
		buckets = buckets[:min(len(buckets), maxBuckets)]
		seen := map[string]bool{}
		for _, b := range buckets {
			v := Value{Key: b.Get("key").String(), Label: b.Get("key_as_string").String(), Count: b.Get("doc_count").Int()}
			if f.Type == "boolean" && v.Label != "" {
				v.Key = v.Label
			}
			if v.Label == "" {
				v.Label = v.Key
			}
			v.Chosen = slices.Contains(s.In[f.Name], v.Key)
			seen[v.Key] = true
			if v.Chosen || matches(v.Label, facet.Find) {
				facet.Values = append(facet.Values, v)
			}
		}
		for _, chosen := range s.In[f.Name] {
			if !seen[chosen] {
				facet.Values = append(facet.Values, Value{Key: chosen, Label: chosen, Chosen: true})
			}
		}
		facet.setShares()
		facets = append(facets, facet)
	}
	return facets
}

func (f *Facet) setShares() {
	highest := int64(1)
	for _, v := range f.Values {
		highest = max(highest, v.Count)
	}
	for i, v := range f.Values {
		f.Values[i].Share = (100*v.Count + highest - 1) / highest
	}
}

// matches reports whether a value contains a text, in any case. In the text * is any text and ? any character.
func matches(value, text string) bool {
	pattern := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(text))
	found, err := regexp.MatchString("(?is)"+pattern, value)
	return err != nil || found
}

// RangeFacets returns the ranges of the responses to Query and HistogramQuery.
func RangeFacets(l Layout, s Selection, aggregations, histograms gjson.Result) []RangeFacet {
	facets := make([]RangeFacet, 0, len(l.Ranges))
	for _, f := range l.Ranges {
		key := gjsonKey(AggregationName(f.Name))
		stats := aggregations.Get(key + ".stats")
		facet := RangeFacet{CatalogueField: f, Range: s.Ranges[f.Name], Date: fieldtype.Of(f.Type).Date(), Empty: stats.Get("count").Int() == 0}
		if !facet.Empty {
			facet.setBounds(stats.Get("min").Float(), stats.Get("max").Float())
		}
		facet.draw(histograms.Get(key + ".histogram.buckets").Array())
		facets = append(facets, facet)
	}
	return facets
}

// setBounds sets the lowest and the highest value.
func (f *RangeFacet) setBounds(low, high float64) {
	f.Min, f.Max, f.Slides = bound(f.Date, low), bound(f.Date, high), low < high
	f.Step = "1"
	switch {
	case f.Date:
		low, high = math.Floor(low/day)*day, math.Floor(high/day)*day
		f.Step = bound(false, day)
	case fieldtype.Of(f.Type).Fractional() && (low != math.Trunc(low) || high != math.Trunc(high) || high-low < bars):
		f.Step = "any"
	}
	f.Low, f.High = bound(false, low), bound(false, high)
}

func bound(date bool, value float64) string {
	if date {
		return time.UnixMilli(int64(value)).UTC().Format(time.DateOnly)
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// draw sets the bars of a histogram.
func (f *RangeFacet) draw(buckets []gjson.Result) {
	if len(buckets) == 0 {
		return
	}
	keys, counts := make([]float64, len(buckets)), make([]int64, len(buckets))
	highest := int64(1)
	for i, b := range buckets {
		keys[i], counts[i] = b.Get("key").Float(), b.Get("doc_count").Int()
		highest = max(highest, counts[i])
	}
	if encoded, err := json.Marshal([]any{keys, counts}); err == nil {
		f.Histogram = string(encoded)
	}
	width := 100 / float64(len(counts))
	for i, n := range counts {
		height := 100 * float64(n) / float64(highest)
		f.Bars = append(f.Bars, Bar{X: float64(i) * width, Y: 100 - height, Width: width * .9, Height: height})
	}
}

// Rows returns the rows of a response to Query.
func Rows(columns, fields []core.CatalogueField, edges gjson.Result) []Row {
	nested := nestedOf(fields)
	rows := make([]Row, 0, PageSize)
	for _, edge := range edges.Array() {
		node := edge.Get("node")
		row := Row{ID: node.Get("id").String(), Cells: make([]string, len(columns))}
		for i, c := range columns {
			var values []string
			collect(node, strings.Split(c.Name, "."), "", nested, &values)
			row.Cells[i] = strings.Join(values[:min(len(values), maxShown)], ", ")
			row.Cells[i] = shorten(row.Cells[i])
			if more := len(values) - maxShown; more > 0 {
				row.Cells[i] += " and " + strconv.Itoa(more) + " more"
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// shorten returns the start of a long text: a cell is no place to read a document.
func shorten(text string) string {
	if len(text) <= maxCell {
		return text
	}
	return strings.ToValidUTF8(text[:maxCell], "") + "…"
}

// collect appends the distinct values at a path.
func collect(node gjson.Result, path []string, prefix string, nested map[string]bool, values *[]string) {
	if node.IsArray() {
		for _, element := range node.Array() {
			collect(element, path, prefix, nested, values)
		}
		return
	}
	if len(path) == 0 {
		if text := node.String(); node.Exists() && node.Type != gjson.Null && !slices.Contains(*values, text) {
			*values = append(*values, text)
		}
		return
	}
	child := node.Get(path[0])
	at := prefix + path[0]
	if !nested[at] {
		collect(child, path[1:], at+".", nested, values)
		return
	}
	for _, edge := range child.Get("hits.edges").Array() {
		collect(edge.Get("node"), path[1:], at+".", nested, values)
	}
}
