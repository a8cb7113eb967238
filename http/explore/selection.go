// Package explore turns the choices on the page that explores a catalogue into a SQON and GraphQL queries, and their responses into
// facets and rows.
package explore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/sqon"
)

// PageSize is the number of rows of a page.
const PageSize = 25

// Prefixes of the query parameters that are followed by the name of a field.
const (
	paramIn   = "in."
	paramFrom = "from."
	paramTo   = "to."
	paramFind = "find."
)

// Selection is what a page shows of a catalogue: filters, columns, order and page.
type Selection struct {
	// In are the chosen values by field, Ranges the chosen bounds, Finds the texts that the shown values of a facet contain.
	In     map[string][]string
	Ranges map[string]Range
	Finds  map[string]string
	// Quick is the text of the quick search, SQON a filter in addition to the others, as JSON.
	Quick, SQON string
	// List is a pasted list.
	List       List
	Columns    []string
	Sort       string
	Descending bool
	// Page counts from 0.
	Page   int
	values url.Values
}

// Range are the bounds of a number or a date, empty for none.
type Range struct{ From, To string }

// Parse reads a Selection from the query of a page. Parameters of fields that do not exist are ignored. CodeInvalid for a list that ParseList
// refuses.
func Parse(values url.Values, fields []core.CatalogueField) (s Selection, err error) {
	s = Selection{
		In: map[string][]string{}, Ranges: map[string]Range{}, Finds: map[string]string{}, values: values,
		Quick: strings.TrimSpace(values.Get("q")), SQON: strings.TrimSpace(values.Get("sqon")), Descending: values.Get("order") == "desc",
	}
	if s.List, err = ParseList(values.Get("list.field"), values.Get("list"), fields); err != nil {
		return s, err
	}
	known := map[string]bool{}
	for _, f := range fields {
		known[f.Name] = true
		for _, v := range values[paramIn+f.Name] {
			if v != "" && !slices.Contains(s.In[f.Name], v) {
				s.In[f.Name] = append(s.In[f.Name], v)
			}
		}
		if r := (Range{values.Get(paramFrom + f.Name), values.Get(paramTo + f.Name)}); r != (Range{}) {
			s.Ranges[f.Name] = r
		}
		if find := values.Get(paramFind + f.Name); find != "" {
			s.Finds[f.Name] = find
		}
	}
	for _, name := range values["column"] {
		if known[name] && !slices.Contains(s.Columns, name) {
			s.Columns = append(s.Columns, name)
		}
	}
	if known[values.Get("sort")] {
		s.Sort = values.Get("sort")
	}
	if n, err := strconv.Atoi(values.Get("page")); err == nil && n > 0 && n < 10_000/PageSize {
		s.Page = n
	}
	return s, nil
}

// clause is one part of a SQON.
type clause struct {
	Op      string `json:"op"`
	Content any    `json:"content"`
}

type fieldContent struct {
	FieldName string `json:"fieldName"`
	Value     any    `json:"value"`
}

type textContent struct {
	FieldNames []string `json:"fieldNames"`
	Value      string   `json:"value"`
}

// Filter returns the SQON of the chosen filters, nil for none. quick are the fields of the quick search. CodeInvalid if the additional SQON
// is not a JSON object, or a bound is not a number.
func (s Selection) Filter(fields []core.CatalogueField, quick []string) (json.RawMessage, error) {
	var clauses []any
	for _, f := range fields {
		if chosen := s.In[f.Name]; len(chosen) > 0 {
			terms := make([]string, len(chosen))
			for i, value := range chosen {
				terms[i] = exact(value)
			}
			clauses = append(clauses, clause{"in", fieldContent{f.Name, terms}})
		}
		r := s.Ranges[f.Name]
		for _, bound := range [][2]string{{"gte", r.From}, {"lte", r.To}} {
			if bound[1] == "" {
				continue
			}
			value, err := boundOf(f, bound[1])
			if err != nil {
				return nil, err
			}
			clauses = append(clauses, clause{bound[0], fieldContent{f.Name, value}})
		}
	}
	if s.Quick != "" && len(quick) > 0 {
		clauses = append(clauses, clause{"filter", textContent{quick, "*" + s.Quick + "*"}})
	}
	if len(s.List.Values) > 0 {
		clauses = append(clauses, s.List.clause())
	}
	if s.SQON != "" {
		if !json.Valid([]byte(s.SQON)) || s.SQON[0] != '{' {
			return nil, &core.Error{
				Code: core.CodeInvalid, Message: "the additional SQON is not a JSON object",
				Hint: `write one such as {"op":"in","content":{"fieldName":"studyId","value":["S1"]}}`,
			}
		}
		clauses = append(clauses, json.RawMessage(s.SQON))
	}
	if len(clauses) == 0 {
		return nil, nil
	}
	return encode(clause{"and", clauses})
}

// exact returns the value of "in" that matches a chosen value and not what it would match as a pattern. Of a value that looks like a saved
// set, for which SQON has no escape, that is a pattern for what ends with it. "__missing__" stays the missing value.
func exact(value string) string {
	if strings.HasPrefix(value, "set_id:") {
		return "*" + value[:1] + sqon.Escape(value[1:])
	}
	return sqon.Escape(value)
}

// Finding returns the SQON of the documents with a value of a field that contains its text of Finds. As in the field's facet, its chosen
// values do not limit them.
func (s Selection) Finding(f core.CatalogueField, fields []core.CatalogueField, quick []string) (json.RawMessage, error) {
	others := s
	others.In = maps.Clone(s.In)
	delete(others.In, f.Name)
	rest, err := others.Filter(fields, quick)
	if err != nil {
		return nil, err
	}
	clauses := []any{clause{"filter", textContent{[]string{f.Name}, "*" + s.Finds[f.Name] + "*"}}}
	if rest != nil {
		clauses = append(clauses, rest)
	}
	return encode(clause{"and", clauses})
}

// encode returns the JSON of a SQON.
func encode(c clause) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c); err != nil {
		return nil, core.WrapError(core.CodeInternal, "an internal error occurred", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func boundOf(f core.CatalogueField, text string) (any, error) {
	if fieldtype.Of(f.Type).Date() {
		return text, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("a bound of %s is not a number: %.40q", f.DisplayName, text))
	}
	return json.Number(text), nil
}

// Chip is one chosen filter, and the query string without it.
type Chip struct{ Label, Without string }

// Chips lists the chosen filters.
func (s Selection) Chips(fields []core.CatalogueField) []Chip {
	var chips []Chip
	add := func(label string, drop func(url.Values)) {
		chips = append(chips, Chip{label, s.With(drop)})
	}
	for _, f := range fields {
		for _, v := range s.In[f.Name] {
			add(f.DisplayName+": "+v, func(q url.Values) {
				q[paramIn+f.Name] = slices.DeleteFunc(slices.Clone(q[paramIn+f.Name]), func(o string) bool { return o == v })
			})
		}
		if r := s.Ranges[f.Name]; r != (Range{}) {
			label := f.DisplayName
			if r.From != "" {
				label += " ≥ " + r.From
			}
			if r.To != "" {
				label += " ≤ " + r.To
			}
			add(label, func(q url.Values) { q.Del(paramFrom + f.Name); q.Del(paramTo + f.Name) })
		}
	}
	if s.Quick != "" {
		add("Search: "+s.Quick, func(q url.Values) { q.Del("q") })
	}
	if n := len(s.List.Values); n > 0 {
		add(fmt.Sprintf("%s: list of %d", s.List.Field.DisplayName, n), func(q url.Values) { q.Del("list"); q.Del("list.field") })
	}
	if s.SQON != "" {
		add("Additional SQON", func(q url.Values) { q.Del("sqon") })
	}
	return chips
}

// With returns the query string of the page after a change, on its first page.
func (s Selection) With(change func(url.Values)) string {
	q := url.Values{}
	for name, values := range s.values {
		if name != "page" && name != "notice" && slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
			q[name] = slices.Clone(values)
		}
	}
	change(q)
	return "?" + q.Encode()
}

// Countable reports whether a field has a facet and a sort.
func Countable(f core.CatalogueField) bool {
	return f.Uncounted == "" && fieldtype.Of(f.Type).Countable()
}

// isTerm reports whether the values of a field are counted one by one.
func isTerm(f core.CatalogueField) bool {
	t := fieldtype.Of(f.Type)
	return Countable(f) && !t.Ordered() && t.Group != fieldtype.Flattened
}

// isOrdered reports whether a field has the facets of numbers and dates.
func isOrdered(f core.CatalogueField) bool { return Countable(f) && fieldtype.Of(f.Type).Ordered() }

// isLeaf reports whether a field has values that a table can show.
func isLeaf(fieldType string) bool {
	t := fieldtype.Of(fieldType)
	return t.Searchable() && t.Group != fieldtype.Flattened || t.Texts && !t.Unindexed
}
