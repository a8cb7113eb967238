package view_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/view"
)

// counter is an engine that counts as its facets say, and rejects requests with some paths.
type counter struct {
	facets   map[string]index.FacetResult
	rejected map[string]bool
	err      error
	reqs     [][]index.SearchRequest
}

func (c *counter) Search(_ context.Context, _ string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	c.reqs = append(c.reqs, reqs)
	results := make([]index.SearchResult, len(reqs))
	for i, req := range reqs {
		for _, f := range req.Facets {
			if c.rejected[f.Field.Path] {
				return nil, core.NewError(core.CodeInvalid, "a field cannot be counted")
			}
			results[i].Facets = append(results[i].Facets, c.facets[f.Field.Path])
		}
	}
	return results, c.err
}

func (c *counter) Stream(context.Context, string, index.StreamRequest, func([]index.Hit) error) error {
	return c.err
}

// modelOf builds the Model of a catalogue without configuration.
func modelOf(t *testing.T, mapping string) *catalogue.Model {
	t.Helper()
	m, problem := catalogue.Load(t.Context(), definition.Definition{ID: "a", DocumentType: "a", Index: "a"}, source(mapping))
	if problem != nil {
		t.Fatal(problem)
	}
	return m
}

const valueMapping = `{"properties":{"k":{"type":"keyword"},"b":{"type":"boolean"},"n":{"type":"long"},"empty":{"type":"double"},"d":{"type":"date"},
	"big":{"type":"float"},"off":{"type":"keyword","doc_values":false},"t":{"type":"text","fields":{"raw":{"type":"keyword"}}},"ip":{"type":"ip"},"c":{"type":"constant_keyword","value":"v"},
	"o":{"type":"nested","properties":{"k":{"type":"keyword"}}},"any":{"type":"flattened"}}}`

// TestValues: one search counts the values of all fields that have any, with the access filter of the caller.
func TestValues(t *testing.T) {
	e := &counter{facets: map[string]index.FacetResult{
		"k":     {Buckets: []index.Bucket{{Key: "x", Count: 3}, {Key: strings.Repeat("y", 1001), Count: 2}, {Key: "", Count: 1}}},
		"b":     {Buckets: []index.Bucket{{Key: "true", Count: 2}, {Key: "false", Count: 1}}},
		"n":     {Stats: index.Stats{Min: -1, Max: 7, Count: 2}},
		"d":     {Stats: index.Stats{Min: 0, Max: 1709634030123, Count: 2}},
		"big":   {Stats: index.Stats{Min: math.Inf(-1), Max: 1, Count: 2}},
		"o.k":   {Buckets: []index.Bucket{{Key: "z", Count: 1}}},
		"t.raw": {},
	}}
	got, err := view.New(e, view.Config{}).View(modelOf(t, valueMapping), core.Principal{}).Values(t.Context(), nil, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]core.FieldValues{
		"k":     {Values: []core.FieldValue{{Value: "x", Count: 3}, {Value: "", Count: 1}}, Note: "values longer than 1000 bytes are left out: 1"},
		"b":     {Values: []core.FieldValue{{Value: true, Count: 2}, {Value: false, Count: 1}}},
		"n":     {Min: -1.0, Max: 7.0},
		"empty": {},
		"d":     {Min: "1970-01-01T00:00:00.000Z", Max: "2024-03-05T10:20:30.123Z"},
		"big":   {},
		"off":   {Note: "not counted: the index does not have its values by document (doc_values is false)"},
		"o.k":   {Values: []core.FieldValue{{Value: "z", Count: 1}}},
		"t.raw": {Values: []core.FieldValue{}},
		"c":     {Values: []core.FieldValue{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(e.reqs) != 1 || len(e.reqs[0]) != 1 {
		t.Fatalf("%d searches", len(e.reqs))
	}
	for _, f := range e.reqs[0][0].Facets {
		if f.Buckets != nil && (f.Buckets.Max != 3 || f.Missing) || f.Buckets == nil && !f.Stats {
			t.Errorf("facet %+v", f)
		}
		if (f.Field.Path == "c") != (f.Field.Constant == "v") { // the engine may not return it
			t.Errorf("the constant of %s is %q", f.Field.Path, f.Field.Constant)
		}
	}

	who := core.Principal{ID: "key:1", Scopes: []string{"S1.READ"}}
	m := model(t, base, `{"field":"studyId","scope":"{value}.READ"}`)
	for name, c := range map[string]struct {
		who  core.Principal
		want *query.Node
	}{"a reader": {who, exactly("studyId", "S1")}, "nobody": {core.Principal{}, &query.Node{Op: query.Nothing}}, "the system": {core.Principal{System: true}, nil}} {
		e := &counter{}
		if _, err := view.New(e, view.Config{}).View(m, c.who).Values(t.Context(), nil, 1); err != nil {
			t.Fatal(err)
		}
		for _, req := range e.reqs[0] {
			if diff := cmp.Diff(c.want, req.Filter); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", name, diff)
			}
		}
	}
}

// TestValuesOfRejectedFields: fields that the engine rejects have a note, the others their values; the number of searches is bounded.
func TestValuesOfRejectedFields(t *testing.T) {
	e := &counter{rejected: map[string]bool{"n": true}, facets: map[string]index.FacetResult{"k": {Buckets: []index.Bucket{{Key: "x", Count: 1}}}}}
	got, err := view.New(e, view.Config{}).View(modelOf(t, valueMapping), core.Principal{}).Values(t.Context(), nil, 3)
	if err != nil || got["n"].Note != "not counted: a field cannot be counted" || len(got["k"].Values) != 1 || got["o.k"].Note != "" {
		t.Errorf("got %v, %v", got, err)
	}

	var properties []string
	e = &counter{rejected: map[string]bool{}}
	for i := range 210 {
		name := fmt.Sprintf("f%03d", i)
		properties = append(properties, fmt.Sprintf(`%q:{"type":"keyword"}`, name))
		e.rejected[name] = true
	}
	many := modelOf(t, `{"properties":{`+strings.Join(properties, ",")+`}}`)
	got, err = view.New(e, view.Config{}).View(many, core.Principal{}).Values(t.Context(), nil, 3)
	if err != nil || len(got) != 210 || len(e.reqs) != 16 {
		t.Fatalf("%d fields after %d searches, %v", len(got), len(e.reqs), err)
	}
	for name, of := range got {
		if of.Note == "" || of.Values != nil {
			t.Errorf("%s: %+v", name, of)
		}
	}
	if len(e.reqs[0][0].Facets) != 200 || !strings.Contains(got["f200"].Note, "the first 200 fields") {
		t.Errorf("%d facets, %s", len(e.reqs[0][0].Facets), got["f200"].Note)
	}

	e = &counter{facets: map[string]index.FacetResult{"f205": {Buckets: []index.Bucket{{Key: "x", Count: 1}}}}}
	got, err = view.New(e, view.Config{}).View(many, core.Principal{}).Values(t.Context(), []string{"f205", "none"}, 3)
	if err != nil || len(got) != 1 || len(got["f205"].Values) != 1 || len(e.reqs[0][0].Facets) != 1 {
		t.Errorf("of one field: %v, %v", got, err)
	}

	e = &counter{err: core.NewError(core.CodeUnavailable, "the engine does not answer")}
	if _, err := view.New(e, view.Config{}).View(many, core.Principal{}).Values(t.Context(), nil, 3); core.CodeOf(err) != core.CodeUnavailable || len(e.reqs) != 1 {
		t.Errorf("%v after %d searches", err, len(e.reqs))
	}
}

// TestSortKeyOfTypes: a sort by a type whose values no engine sorts is refused by its name, and one that engines sort is not.
func TestSortKeyOfTypes(t *testing.T) {
	names := fieldtype.Names(func(*fieldtype.Type) bool { return true })
	names = append(slices.DeleteFunc(names, func(name string) bool { return fieldtype.Of(name).Group == fieldtype.Container }), "unheard_of")
	var properties []string
	for _, name := range names {
		properties = append(properties, fmt.Sprintf(`"a_%s":{"type":%[1]q}`, name))
	}
	v := view.New(&counter{}, view.Config{}).View(modelOf(t, `{"properties":{`+strings.Join(properties, ",")+`}}`), core.Principal{System: true})
	for _, name := range names {
		key, err := v.SortKey("a_"+name, index.Sort{})
		want := "type " + name + `, the type of "a_` + name + `", is not sortable`
		switch sorts := query.Countable(name); {
		case sorts && (err != nil || key.Field.Type != name):
			t.Errorf("%s: %v, %v", name, key, err)
		case !sorts && (core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != want):
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for _, name := range []string{"version", "flat_object", "counted_keyword", "histogram", "unheard_of"} {
		if query.Countable(name) {
			t.Errorf("%s sorts", name)
		}
	}
}
