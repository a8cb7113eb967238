package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/http/explore"
	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
)

// maxResultBytes bounds the hits and the values of facets, or of fields, in a result: models read all of it.
const maxResultBytes = 256 << 10

type queryResult struct {
	Total int64             `json:"total"`
	Hits  []json.RawMessage `json:"hits"`
	// Facets holds values of type termsBody or boundsBody by the name of the field.
	Facets map[string]any `json:"facets,omitempty"`
	// Truncated says what is missing because the result is too large.
	Truncated string          `json:"truncated,omitempty"`
	Warnings  json.RawMessage `json:"warnings,omitempty"`
}

// termsBody are the most frequent values of a field. More reports whether there are others.
type termsBody struct {
	Values []valueBody `json:"values"`
	More   bool        `json:"more,omitempty"`
}

type valueBody struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// boundsBody are the bounds of a field of numbers or dates; nil without values.
type boundsBody struct {
	Min   any   `json:"min"`
	Max   any   `json:"max"`
	Count int64 `json:"count"`
}

// resultBuilder converts a response of explore.Query into the result of execute_query.
type resultBuilder struct {
	known       fields
	facetValues int
	// room is how many bytes the result may still have.
	room int
}

func (b *resultBuilder) result(response gjson.Result, document string, facets []core.CatalogueField) queryResult {
	data := response.Get("data." + document)
	r := queryResult{Total: data.Get("hits.total").Int(), Hits: []json.RawMessage{}}
	if warnings := response.Get("extensions.warnings"); warnings.Exists() {
		r.Warnings = json.RawMessage(warnings.Raw)
	}
	full := true
	for _, f := range facets {
		of := data.Get("aggregations." + explore.AggregationName(f.Name))
		if r.Facets == nil {
			r.Facets = map[string]any{}
		}
		if fieldtype.Of(f.Type).Ordered() {
			r.Facets[f.Name] = bounds(f, of.Get("stats"))
			continue
		}
		var terms termsBody
		terms, full = b.terms(of, full)
		r.Facets[f.Name] = terms
	}
	edges := data.Get("hits.edges").Array()
	for _, edge := range edges {
		hit := b.appendDocument(nil, edge.Get("node"), "")
		if b.room -= len(hit); b.room < 0 {
			break
		}
		r.Hits = append(r.Hits, hit)
	}
	switch {
	case !full:
		r.Truncated = "the values of facets are too large; ask for fewer facets, or lower facetValues"
	case len(r.Hits) < len(edges):
		r.Truncated = fmt.Sprintf("%d of %d documents of this page fit; ask for fewer fields, or continue with a higher offset", len(r.Hits), len(edges))
	}
	return r
}

// terms returns the values of a facet; full reports whether all fitted until now.
func (b *resultBuilder) terms(of gjson.Result, full bool) (termsBody, bool) {
	t := termsBody{Values: []valueBody{}}
	for i, bucket := range of.Get("buckets").Array() {
		if i == b.facetValues {
			t.More = true
			break
		}
		value := bucket.Get("key_as_string")
		if value.Type == gjson.Null {
			value = bucket.Get("key")
		}
		if b.room -= len(value.Raw); b.room < 0 {
			t.More = true
			return t, false
		}
		t.Values = append(t.Values, valueBody{value.String(), bucket.Get("doc_count").Int()})
	}
	return t, full
}

// bounds returns the bounds of a field; those of dates as text.
func bounds(f core.CatalogueField, stats gjson.Result) boundsBody {
	count := stats.Get("count").Int()
	if count == 0 {
		return boundsBody{}
	}
	one := func(name string) any {
		if fieldtype.Of(f.Type).Date() {
			return time.UnixMilli(stats.Get(name).Int()).UTC().Format(time.RFC3339Nano)
		}
		return json.RawMessage(stats.Get(name).Raw)
	}
	return boundsBody{one("min"), one("max"), count}
}

// appendDocument appends a value of a document with nested fields as lists instead of connections. path is that of the field.
func (b *resultBuilder) appendDocument(dst []byte, value gjson.Result, path string) []byte {
	if value.IsObject() && b.known[path].Type == "nested" {
		return b.appendMembers(dst, value.Get("hits.edges.#.node"), "[]", func(dst []byte, _, node gjson.Result) []byte {
			return b.appendObject(dst, node, path)
		})
	}
	switch {
	case value.IsArray():
		return b.appendMembers(dst, value, "[]", func(dst []byte, _, element gjson.Result) []byte { return b.appendDocument(dst, element, path) })
	case value.IsObject():
		return b.appendObject(dst, value, path)
	default:
		return append(dst, value.Raw...)
	}
}

// appendObject appends a document, an object or an element of a nested field.
func (b *resultBuilder) appendObject(dst []byte, of gjson.Result, path string) []byte {
	return b.appendMembers(dst, of, "{}", func(dst []byte, name, member gjson.Result) []byte {
		dst = append(jsontext.AppendString(dst, name.String()), ':')
		return b.appendDocument(dst, member, strings.TrimPrefix(path+"."+name.String(), "."))
	})
}

// appendMembers appends what each returns for the members of an object or an array between two brackets.
func (*resultBuilder) appendMembers(dst []byte, of gjson.Result, brackets string, each func(dst []byte, name, value gjson.Result) []byte) []byte {
	dst = append(dst, brackets[0])
	first := true
	of.ForEach(func(name, value gjson.Result) bool {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = each(dst, name, value)
		return true
	})
	return append(dst, brackets[1])
}
