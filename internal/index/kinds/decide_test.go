package kinds_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
)

// TestDecide: what is given wins over the counts; ties go to the object, then the number, then the boolean.
func TestDecide(t *testing.T) {
	t.Parallel()
	tree := func(types map[string]mapping.Type) *mapping.Field {
		root := mapping.NewRoot()
		for path, kind := range types {
			at := root
			for name := range strings.SplitSeq(path, ".") {
				if at.Properties == nil {
					at.Properties = map[string]*mapping.Field{}
				}
				if at.Properties[name] == nil {
					at.Properties[name] = &mapping.Field{Type: mapping.Object}
				}
				at = at.Properties[name]
			}
			at.Type = kind
		}
		return root
	}
	declared := func(path string, as ...mapping.JSONType) *mapping.Types {
		var b mapping.TypesBuilder
		for _, each := range as {
			b.Declare(path, each, "schema")
		}
		return b.Types()
	}
	for name, c := range map[string]struct {
		documents []string
		given     kinds.Given
		want      map[string]mapping.Type
	}{
		"nothing":             {},
		"most":                {documents: []string{`{"v":1}`, `{"v":"x"}`, `{"v":2}`}, want: map[string]mapping.Type{"v": mapping.Double}},
		"records, not values": {documents: []string{`{"v":[1,2,3]}`, `{"v":"x"}`, `{"v":"y"}`}, want: map[string]mapping.Type{"v": mapping.Keyword}},
		"object before number": {
			documents: []string{`{"v":1}`, `{"v":{"a":true}}`}, want: map[string]mapping.Type{"v": mapping.Object, "v.a": mapping.Boolean},
		},
		"number before boolean": {documents: []string{`{"v":true}`, `{"v":1}`}, want: map[string]mapping.Type{"v": mapping.Double}},
		"boolean before text":   {documents: []string{`{"v":"true"}`, `{"v":true}`}, want: map[string]mapping.Type{"v": mapping.Boolean}},
		"below a value":         {documents: []string{`{"v":{"a":1}}`, `{"v":1}`, `{"v":2}`}, want: map[string]mapping.Type{"v": mapping.Double}},
		"siblings in order": {
			documents: []string{`{"v":{"a":1},"v-":1,"v.b":2}`},
			want:      map[string]mapping.Type{"v": mapping.Object, "v.a": mapping.Double, "v.b": mapping.Double, "v-": mapping.Double},
		},
		"list":          {documents: []string{`{"v":{"a":1}}`, `{"v":[{"a":1}]}`}, want: map[string]mapping.Type{"v": mapping.Nested, "v.a": mapping.Double}},
		"dates":         {documents: []string{`{"v":"2020-01-01"}`, `{"v":["2021-02-03T04:05:06Z"]}`}, want: map[string]mapping.Type{"v": mapping.Date}},
		"a text":        {documents: []string{`{"v":"2020-01-01"}`, `{"v":"x"}`}, want: map[string]mapping.Type{"v": mapping.Keyword}},
		"years":         {documents: []string{`{"v":"2020"}`}, want: map[string]mapping.Type{"v": mapping.Keyword}},
		"nulls":         {documents: []string{`{"v":null}`, `{"v":[]}`}},
		"free form":     {documents: []string{`{"info":{"a":1}}`, `{"x":{"info":{"a":1}}}`}, want: map[string]mapping.Type{"info": mapping.Flattened, "x": mapping.Object, "x.info": mapping.Flattened}},
		"known":         {documents: []string{`{"v":{"a":"x"},"w":1}`}, given: kinds.Given{Fields: tree(map[string]mapping.Type{"v.a": mapping.Long})}, want: map[string]mapping.Type{"w": mapping.Double}},
		"below a known": {documents: []string{`{"v":{"a":"x"}}`}, given: kinds.Given{Fields: tree(map[string]mapping.Type{"v": mapping.Flattened})}},
		"blank names": {
			documents: []string{`{"v":true,"":{"v":[{"a":1}]}}`, `{"v":true,"":[{"v":"x"}]}`, `{"a.":1,".a":1," ":{"v":1}}`},
			want:      map[string]mapping.Type{"v": mapping.Boolean, "a": mapping.Object},
		},
		"declared": {documents: []string{`{"v":1}`}, given: kinds.Given{Declared: declared("v", mapping.JSONString)}},
		"below a declared value": {
			documents: []string{`{"v":{"a":1}}`}, given: kinds.Given{Declared: declared("v", mapping.JSONString)},
		},
		"below a declared object": {
			documents: []string{`{"v":{"a":1}}`}, given: kinds.Given{Declared: declared("v", mapping.JSONObject)}, want: map[string]mapping.Type{"v.a": mapping.Double},
		},
		"date of the index": {
			documents: []string{`{"v":"2020"}`, `{"v":"2020-01-01"}`, `{"w":"2020"}`},
			given:     kinds.Given{Declared: declared("v", mapping.JSONString), Live: tree(map[string]mapping.Type{"v": mapping.Date, "w": mapping.Date})},
			want:      map[string]mapping.Type{"v": mapping.Date, "w": mapping.Date},
		},
		"no date of the index": {
			documents: []string{`{"v":"unknown"}`, `{"v":"2020-01-01"}`, `{"w":1}`},
			given:     kinds.Given{Declared: declared("v", mapping.JSONString), Live: tree(map[string]mapping.Type{"v": mapping.Date, "w": mapping.Date})},
			want:      map[string]mapping.Type{"w": mapping.Double},
		},
		"other types of the index": {
			documents: []string{`{"v":1}`, `{"w":"x"}`},
			given:     kinds.Given{Live: tree(map[string]mapping.Type{"v": mapping.Keyword, "w": mapping.Long})},
			want:      map[string]mapping.Type{"v": mapping.Double, "w": mapping.Keyword},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counter := kinds.NewCounter(c.given.Fields, core.MaxKindsBytes)
			for _, d := range c.documents {
				counter.Record()
				counter.Add([]byte(d))
			}
			var got map[string]mapping.Type
			for path, d := range kinds.Decide(counter.Take(int64(len(c.documents))), c.given).All() {
				if got == nil {
					got = map[string]mapping.Type{}
				}
				got[path] = d.Type
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCounter: a record with several documents, or values, counts once; a Counter begins anew after Take, and its memory is bounded.
func TestCounter(t *testing.T) {
	t.Parallel()
	c := kinds.NewCounter(nil, 2000)
	c.Record()
	for range 3 {
		c.Add([]byte(`{"v":[1,2]}`))
	}
	for path, p := range c.Take(1).All() {
		if path != "v" || p != (core.PathKinds{Numbers: 1}) {
			t.Errorf("%s: %+v", path, p)
		}
	}
	c.Record()
	c.Add([]byte(`{"` + strings.Repeat("x", 40_000) + `":1}`))
	if c.Take(1).Whole() {
		t.Error("a path of 40,000 bytes was counted")
	}
	c.Record()
	c.Add([]byte(`{"w":1}`))
	kept := c.Take(1)
	for path := range kept.All() {
		if path != "w" {
			t.Errorf("%s is counted again", path)
		}
	}
	if !kept.Whole() || kept.Records() != 1 {
		t.Error("nothing is counted after an overflow")
	}
	c.Record()
	c.Add([]byte(`{"w":1`)) // what is not JSON is counted up to its end
	c.Add([]byte(`[]`))
	if !c.Take(1).Whole() {
		t.Error("a damaged document")
	}
}

// TestChecker: values of another kind are found, also where the field would take them, with the path and both kinds.
func TestChecker(t *testing.T) {
	t.Parallel()
	c := kinds.NewChecker(map[string]mapping.Type{
		"text": mapping.Keyword, "day": mapping.Date, "number": mapping.Double, "flag": mapping.Boolean, "object": mapping.Object, "list": mapping.Nested,
		"list.n": mapping.Double, "object.info": mapping.Flattened,
	})
	for document, want := range map[string]string{
		`{"text":"1","day":"x","number":1,"flag":true,"object":{},"list":[{"n":1},{"n":[2]}],"other":1,"object.info":{"a":1}}`: "",
		`{"text":null,"number":[],"object":[null]}`: "",
		`{"text":1}`:                   "[text] holds a number, where most records held a text when the index was made",
		`{"text":["a",[true]]}`:        "[text] holds a boolean, where most records held a text when the index was made",
		`{"day":1}`:                    "[day] holds a number, where most records held a text when the index was made",
		`{"number":"1"}`:               "[number] holds a text, where most records held a number when the index was made",
		`{"flag":"true"}`:              "[flag] holds a text, where most records held a boolean when the index was made",
		`{"flag":{}}`:                  "[flag] holds an object, where most records held a boolean when the index was made",
		`{"flag.a":1}`:                 "[flag] holds an object, where most records held a boolean when the index was made",
		`{"object":1}`:                 "[object] holds a number, where most records held an object when the index was made",
		`{"object":{"info":"x"}}`:      "[object.info] holds a text, where most records held an object when the index was made",
		`{"list":[{"n":1},{"n":"x"}]}`: "[list.n] holds a text, where most records held a number when the index was made",
		`not JSON`:                     "",
	} {
		got := ""
		if err := c.Check([]byte(document)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", document, got, want)
		}
	}
	if kinds.NewChecker(nil) != nil {
		t.Error("a Checker of nothing")
	}
}
