package analysis_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/metadata/analysis"
)

// TestMergePatch: the examples of RFC 7396, appendix A, and values whose notation is kept.
func TestMergePatch(t *testing.T) {
	tests := []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a":1.50e1,"b":12345678901234567890}`, `{"c":0.10}`, `{"a":1.50e1,"b":12345678901234567890,"c":0.10}`},
		{`{"\u0061":1,"b":2}`, `{"a":{"x":null,"y":1}}`, `{"\u0061":{"y":1},"b":2}`},
		{`{"a":1}`, `{}`, `{"a":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.target+" "+tt.patch, func(t *testing.T) { wantEqual(t, analysis.Merged(tt.target, tt.patch), tt.want) })
	}
}

// mergePatch is the algorithm of RFC 7396 on decoded values.
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	result, ok := target.(map[string]any)
	if !ok {
		result = map[string]any{}
	}
	for name, value := range changes {
		if value == nil {
			delete(result, name)
		} else {
			result[name] = mergePatch(result[name], value)
		}
	}
	return result
}

func decode(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	return v
}

// FuzzMerge: merging equals RFC 7396's algorithm.
func FuzzMerge(f *testing.F) {
	f.Add(`{"a":{"b":[1,{}],"":1e3}}`, `{"a":{"b":null,"c":{"d":null,"e":"\u00e9"}},"x":{"y":{}}}`)
	f.Add(`{}`, `{"a":[null]}`)
	f.Add(`{"a\"b":"}","\\":"\\\""}`, `{"a\u0022b":null,"\\":{"{":"["}}`)
	f.Fuzz(func(t *testing.T, target, patch string) {
		one, err := analysis.ParseObject([]byte(target))
		if err != nil {
			t.Skip()
		}
		two, err := analysis.ParseObject([]byte(patch))
		if err != nil {
			t.Skip()
		}
		got := analysis.Merged(one, two)
		if strings.Contains(strings.ToLower(one+two), `\ud`) {
			t.Skip() // lone surrogates are one name when decoded
		}
		if want := mergePatch(decode(t, one), decode(t, two)); !reflect.DeepEqual(decode(t, got), want) {
			t.Errorf("merging %q into %q returned %q", two, one, got)
		}
	})
}

// FuzzParseObject: accepted input becomes one line of equivalent JSON without duplicate members; rejected input has an error code.
func FuzzParseObject(f *testing.F) {
	for _, seed := range []string{
		payload("a", "b"), `{}`, ` { "a" : [ 1 , {} , [] , "\"" , -0.1e+5 , true , null ] } `, `{"a":{"b":1,"b":2}}`, `{"a":1,"\u0061":2}`,
		`{"\\":1,"\\\\":[{"a":1},{"a":1}]}`, strings.Repeat(`{"a":`, 300) + `1` + strings.Repeat(`}`, 300), "{\"a\":\"\xff\"}", `[]`,
		`{"1":1,"2":1,"3":1,"4":1,"5":1,"6":1,"7":1,"8":1,"9":1,"10":1,"11":1,"12":1,"13":1,"14":1,"15":1,"16":1,"17":1,"1":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := analysis.ParseObject(body)
		if err != nil {
			if core.CodeOf(err) != core.CodeInvalid || doc != "" {
				t.Errorf("%v %q", err, doc)
			}
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, body); err != nil || doc[0] != '{' || doc != compact.String() {
			t.Errorf("%q became %q: %v", body, doc, err)
		}
		if !reflect.DeepEqual(decode(t, doc), decode(t, string(body))) {
			t.Errorf("%q became %q", body, doc)
		}
		if members := countMembers(t, doc); members >= 0 && members != sizeOf(decode(t, doc)) {
			t.Errorf("a member of %q appears twice", doc)
		}
	})
}

// countMembers counts the members of all objects as written, -1 where decoding merges two names.
func countMembers(t *testing.T, doc string) int {
	t.Helper()
	if strings.Contains(strings.ToLower(doc), `\ud`) {
		return -1
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(doc), "", "\t"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(indented.String()) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, `"`) {
			continue
		}
		d := json.NewDecoder(strings.NewReader(line))
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line[d.InputOffset():], ":") {
			n++
		}
	}
	return n
}

func sizeOf(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, value := range v {
			n += sizeOf(value)
		}
	case []any:
		for _, value := range v {
			n += sizeOf(value)
		}
	}
	return n
}
