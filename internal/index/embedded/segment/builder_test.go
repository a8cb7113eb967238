package segment_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/mapping"
)

// TestValues builds documents with one value of a field each, and compares the values read.
func TestValues(t *testing.T) {
	long := strings.Repeat("x", 32766)
	tests := map[string]struct {
		field  string
		values []string
		want   string
	}{
		"keyword":             {`{"type":"keyword"}`, []string{`"b"`, `"a"`, `"b"`, `""`}, "b a b "},
		"keyword of scalars":  {`{"type":"keyword"}`, []string{`1`, `1.0`, `true`, `-1e5`}, "1 1.0 true -1e5"},
		"keyword, escapes":    {`{"type":"keyword"}`, []string{`"\u00e9\n\"\ud83d\ude00"`, `"é"`}, "é\n\"😀 é"},
		"keyword, no value":   {`{"type":"keyword"}`, []string{`"a"`, `null`, `[]`, `[null]`, `{"x":1}`, `[[]]`}, "a - - - - -"},
		"keyword, a set":      {`{"type":"keyword"}`, []string{`["b","a","b"]`, `[["c"],"a"]`, `"a"`}, "a,b a,c a"},
		"keyword, single set": {`{"type":"keyword"}`, []string{`["b","b"]`, `"a"`}, "b a"},
		"keyword, none":       {`{"type":"keyword"}`, []string{`null`, `[]`}, "none"},
		"ignore_above": {
			`{"type":"keyword","ignore_above":3}`,
			[]string{`"abc"`, `"abcd"`, `"äöü"`, `"äöüß"`, `"a😀"`, `"ab😀"`, `["abcd","x"]`},
			"abc - äöü - a😀 - x",
		},
		"too long for a term": {`{"type":"keyword"}`, []string{`"` + long + `"`, `"` + long + `y"`, `"z"`}, long + " - z"},
		"lower case":          {`{"type":"keyword","normalizer":"lowercase"}`, []string{`["A","a"]`, `"ÄB"`, `"a"`}, "a äb a"},
		"other normalizer":    {`{"type":"keyword","normalizer":"folding"}`, []string{`"A"`}, "A"},
		"null_value":          {`{"type":"keyword","null_value":"NULL"}`, []string{`null`, `["a",null]`, `[]`, `"NULL"`}, "NULL NULL,a - NULL"},
		"wildcard":            {`{"type":"wildcard"}`, []string{`"A b"`, `1`}, "A b 1"},
		"constant_keyword":    {`{"type":"constant_keyword"}`, []string{`"a"`, `null`}, "a -"},
		"constant everywhere": {`{"type":"constant_keyword","value":"c"}`, []string{`"c"`, `null`}, "c c"},
		"long":                {`{"type":"long"}`, []string{`7`, `-7`, `"8"`, `9.9`, `9223372036854775807`, `""`, `"x"`, `true`, `1e30`}, "7 -7 8 9 9223372036854775807 - - - -"},
		"long, doubles":       {`{"type":"long"}`, []string{`[3,1,3]`, `[2,"2"]`, `1`}, "1,3,3 2,2 1"},
		"long, null_value":    {`{"type":"long","null_value":5}`, []string{`null`, `""`, `6`}, "5 5 6"},
		"byte":                {`{"type":"byte"}`, []string{`127`, `128`, `" 5 "`}, "127 - 5"},
		"unsigned_long":       {`{"type":"unsigned_long"}`, []string{`18446744073709551615`, `0`, `-1`}, "18446744073709551615 0 -"},
		"double":              {`{"type":"double"}`, []string{`0.5`, `"-1e3"`, `1`, `"2.5d"`, `"0x1p4"`, `"NaN"`}, "0.5 -1000 1 2.5 - -"},
		"float":               {`{"type":"float"}`, []string{`0.1`}, "0.10000000149011612"},
		"scaled_float":        {`{"type":"scaled_float","scaling_factor":100}`, []string{`1.239`}, "1.24"},
		"boolean":             {`{"type":"boolean"}`, []string{`true`, `"false"`, `""`, `"true"`, `0`, `"yes"`, `[true,true,false]`}, "true false false true - - false,true,true"},
		"date": {
			`{"type":"date"}`,
			[]string{`"1970-01-01"`, `"1970-01-01T00:00:00.001Z"`, `86400000`, `"1970-01-02"`, `"soon"`, `""`},
			"0 1 86400000 86400000 - -",
		},
		"date_nanos": {`{"type":"date_nanos"}`, []string{`"1970-01-01T00:00:00.000002Z"`, `"1970-01-01T00:00:00.001Z"`}, "0 1"},
		"ip":         {`{"type":"ip"}`, []string{`"10.0.0.1"`, `"::ffff:10.0.0.1"`, `"2001:DB8:0::1"`, `"fe80::1%eth0"`, `"x"`, `7`}, "10.0.0.1 10.0.0.1 2001:db8::1 - - -"},
		"text":       {`{"type":"text"}`, []string{`"The quick-brown FOX, the 2nd"`, `["é́a","A"]`, `"--"`, `null`}, "2nd,brown,fox,quick,the a,é́a - -"},
		"long term":  {`{"type":"text"}`, []string{`"` + long[:256] + `"`}, "x," + long[:255]},
		"flattened": {
			`{"type":"flattened","ignore_above":4}`,
			[]string{`{"b":"x","a":{"c":["x",2,true,null,"long!"]}}`, `"x"`, `[{"a":1},{"a":2}]`, `{}`},
			"2,true,x - 1,2 -",
		},
		"flattened, null_value": {`{"type":"flattened","null_value":"N"}`, []string{`{"a":null}`}, "N"},
		"opaque":                {`{"type":"geo_point"}`, []string{`"1,2"`, `3`, `{"lat":1}`, `true`, `null`, `[]`}, "    - -"},
		"an opaque null":        {`{"type":"geo_point","null_value":"1,2"}`, []string{`null`, `[]`}, " -"},
		"binary":                {`{"type":"binary"}`, []string{`"AAAA"`}, "none"},
		"index false":           {`{"type":"keyword","index":false}`, []string{`"a"`}, "a"},
		"doc_values false":      {`{"type":"keyword","doc_values":false}`, []string{`"a"`}, "a"},
		"neither":               {`{"type":"keyword","index":false,"doc_values":false}`, []string{`"a"`}, "none"},
		"text, index false":     {`{"type":"text","index":false}`, []string{`"a"`}, "none"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := parse(t, `{"properties":{"f":`+test.field+`}}`)
			var docs []string
			for _, v := range test.values {
				docs = append(docs, `{"f":`+v+`}`)
			}
			if got := numbersOf(t, build(t, tree, docs...), tree, "f"); got != test.want {
				t.Errorf("the values are %.200q, want %.200q", got, test.want)
			}
		})
	}
}

// numbersOf returns the values of a field by row, numbers as texts.
func numbersOf(tb testing.TB, s *segment.Segment, tree *mapping.Field, path string) string {
	tb.Helper()
	field := query.Field{Path: path}
	if f := tree.Lookup(path); f != nil {
		field.Type = string(f.Type)
		field.Scale, _ = strconv.ParseFloat(string(f.Params["scaling_factor"]), 64)
	}
	if c := s.Column(path); c != nil {
		checkConsistent(tb, path, c)
	}
	return render(s, path, func(key uint64) string { return query.Text(field, key) })
}

// TestFields compares the values of several fields of the same documents.
func TestFields(t *testing.T) {
	tests := map[string]struct {
		mapping string
		docs    []string
		want    map[string]string
	}{
		"multi-fields": {
			`{"properties":{"f":{"type":"text","fields":{"raw":{"type":"keyword"},"n":{"type":"long"}}}}}`,
			[]string{`{"f":"A b"}`, `{"f":7}`},
			map[string]string{"f": "a,b 7", "f.raw": "A b 7", "f.n": "- 7"},
		},
		"object": {
			`{"properties":{"o":{"properties":{"a":{"type":"keyword"},"b":{"type":"keyword"}}}}}`,
			[]string{`{"o":[{"a":"1","b":"x"},{"a":"2"},null]}`, `{"o.a":"3"}`, `{"o":7}`, `{"o":{"a":"1","z":"unknown"}}`},
			map[string]string{"o.a": "1,2 3 - 1", "o.b": "x - - -", "o": "none", "o.z": "none"},
		},
		"disabled": {
			`{"properties":{"o":{"enabled":false,"properties":{"a":{"type":"keyword"}}},"a":{"type":"keyword"}}}`,
			[]string{`{"o":{"a":"1"},"o.a":"2","a":"3"}`},
			map[string]string{"o.a": "none", "a": "3"},
		},
		"disabled root": {
			`{"enabled":false,"properties":{"a":{"type":"keyword"}}}`, []string{`{"a":"3"}`}, map[string]string{"a": "none", "_id": "d0"},
		},
		"copies": {
			`{"properties":{"a":{"type":"keyword","copy_to":"all"},"b":{"type":"long","copy_to":["all","more","nothing"]},
				"all":{"type":"keyword","copy_to":"more","fields":{"t":{"type":"text"}}},"more":{"type":"keyword"},
				"n":{"type":"nested","properties":{"c":{"type":"keyword","copy_to":["all","m.d"]}}},
				"m":{"type":"nested","properties":{"d":{"type":"keyword"}}}}}`,
			[]string{`{"a":"X","b":2,"n":[{"c":"Y"},{"c":"Z"}]}`, `{"m":{"d":"q"}}`},
			map[string]string{"a": "X -", "b": "2 -", "all": "2,X,Y,Z -", "all.t": "2,x,y,z -", "more": "2 -", "n.c": "Y Z", "m.d": "q"},
		},
		"keys of a flattened field": {
			`{"properties":{"i":{"type":"flattened"},"n":{"type":"nested","properties":{"i":{"type":"flattened"}}}}}`,
			[]string{`{"i":{"a":{"b":["y","x"]},"a.b":"z","c":1},"n":[{"i":{"k":"v"}},{}]}`, `{"i":{"c":2,"a":"w"}}`, `{}`},
			map[string]string{
				"i": "1,x,y,z 2,w -", "i.a.b": "x,y,z - -", "i.a": "- w -", "i.c": "1 2 -", "i.b": "none", "i.a.b.c": "none", "n.i.k": "v -",
			},
		},
		"nested": {
			`{"properties":{"n":{"type":"nested","properties":{"a":{"type":"keyword"},"m":{"type":"nested","properties":{"b":{"type":"long"}}}}}}}`,
			[]string{`{"n":[{"a":"1","m":[{"b":1},{"b":[2,3]}]},null,{}]}`, `{}`, `{"n":{"m":{"b":4},"a":["2","3"]}}`, `{"n.a":"4"}`, `{"n":5}`},
			map[string]string{"n.a": "1 - 2,3 4", "n.m.b": "1 2,3 4"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree := parse(t, test.mapping)
			s := build(t, tree, test.docs...)
			for path, want := range test.want {
				if got := numbersOf(t, s, tree, path); got != want {
					t.Errorf("the values of %s are %q, want %q", path, got, want)
				}
			}
		})
	}
}

func TestRows(t *testing.T) {
	tree := parse(t, `{"properties":{"n":{"type":"nested","properties":{"m":{"type":"nested"}}},
		"o":{"properties":{"p":{"type":"nested"}}},"q":{"type":"nested"}}}`)
	s := build(t, tree, `{"n":[{"m":[{},{}]},{},{"m":{}}],"o":[{"p":[{},{}]},{"p":{}}]}`, `{}`, `{"n":{"m":[{}]},"o":{"p":[]}}`)
	tests := map[string]struct {
		rows          int
		span, parents []uint32
	}{
		"":     {3, nil, nil},
		"n":    {4, []uint32{0, 3, 3, 4}, []uint32{0, 0, 0, 2}},
		"n.m":  {4, []uint32{0, 3, 3, 4}, []uint32{0, 0, 2, 3}},
		"o.p":  {3, []uint32{0, 3, 3, 3}, []uint32{0, 0, 0}},
		"q":    {},
		"none": {},
	}
	for path, test := range tests {
		got := fmt.Sprint(s.Rows(path), s.Span(path), s.Parents(path))
		if want := fmt.Sprint(test.rows, test.span, test.parents); got != want {
			t.Errorf("the rows of %q are %s, want %s", path, got, want)
		}
	}
	if got := fmt.Sprintln(s.Documents(), s.Numbers(), s.ID(0), s.ID(2)); got != "3 [0 10 20] d0 d2\n" {
		t.Error("the documents are", got)
	}
}

func TestEmpty(t *testing.T) {
	s := segment.NewBuilder(mapping.Song()).Segment()
	for name, s := range map[string]*segment.Segment{"built": s, "merged": segment.Merge(nil, nil), "read": reread(t, s)} {
		t.Run(name, func(t *testing.T) {
			if s.Documents() != 0 || len(s.Numbers()) != 0 || s.Column("_id") != nil || s.Column("files.objectId") != nil || s.Rows("files") != 0 {
				t.Error("there is something in it")
			}
		})
	}
}

func TestAddErrors(t *testing.T) {
	tests := map[string]struct {
		number  uint64
		doc     string
		code    core.Code
		message string
	}{
		"number again": {7, `{}`, core.CodeInternal, "document 7 must not follow document 7"},
		"number below": {6, `{}`, core.CodeInternal, "document 6 must not follow document 7"},
		"no object":    {8, `[]`, core.CodeInvalid, "the document is not valid JSON: not an object at byte 0"},
		"cut":          {8, `{"a":`, core.CodeInvalid, "the document is not valid JSON: invalid number at byte 5"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := segment.NewBuilder(mapping.Song())
			if err := b.Add(7, "a", []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
			err := b.Add(test.number, "b", []byte(test.doc))
			if core.CodeOf(err) != test.code || core.MessageOf(err) != test.message {
				t.Errorf("the error is %s %q, want %s %q", core.CodeOf(err), core.MessageOf(err), test.code, test.message)
			}
		})
	}
}

// TestSharedField builds by a tree in which one node is at two paths.
func TestSharedField(t *testing.T) {
	shared := &mapping.Field{Type: mapping.Keyword}
	tree := &mapping.Field{Type: mapping.Object, Properties: map[string]*mapping.Field{"a": shared, "b": shared}}
	s := build(t, tree, `{"a":"1","b":"2"}`)
	if got := values(s, "a") + " " + values(s, "b"); got != "1 2" {
		t.Errorf("the values are %q", got)
	}
}

// TestKeysAtOnce reads concurrently more keys of a flattened field than a segment caches.
func TestKeysAtOnce(t *testing.T) {
	info := map[string]string{}
	for i := range 100 {
		info[fmt.Sprint("k", i)] = fmt.Sprint("v", i)
	}
	doc, err := json.Marshal(map[string]any{"i": info})
	if err != nil {
		t.Fatal(err)
	}
	s := build(t, parse(t, `{"properties":{"i":{"type":"flattened"}}}`), string(doc), `{}`)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for i := range 100 {
				if got, want := values(s, fmt.Sprint("i.k", i)), fmt.Sprintf("v%d -", i); got != want {
					t.Errorf("the values are %q, want %q", got, want)
				}
			}
			if offsets, ordinals := s.Column("i").Multi(); fmt.Sprint(offsets) != "[0 100 100]" || len(ordinals) != 100 {
				t.Errorf("the values of all keys are %d at %v", len(ordinals), offsets)
			}
		})
	}
	work.Wait()
}

func ExampleBuilder() {
	tree, err := mapping.Parse([]byte(`{"properties":{"study":{"type":"keyword"},"file":{"type":"nested","properties":{"size":{"type":"long"}}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	b := segment.NewBuilder(tree)
	for i, doc := range []string{`{"study":"A","file":[{"size":1},{"size":2}]}`, `{"study":"B"}`} {
		if err := b.Add(uint64(i), fmt.Sprint("id", i), []byte(doc)); err != nil {
			fmt.Println(err)
			return
		}
	}
	s := b.Segment()
	study := s.Column("study")
	for d, ordinal := range study.Single() {
		fmt.Printf("%s: study %s, files in rows %v\n", s.ID(uint32(d)), study.Text(ordinal-1), s.Span("file")[d:d+2])
	}
	// Output:
	// id0: study A, files in rows [0 2]
	// id1: study B, files in rows [2 2]
}
