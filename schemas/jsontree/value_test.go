package jsontree_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tutti/schemas/jsontree"
)

func decoded(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestEquals: each value equals itself in another notation, and no other value.
func TestEquals(t *testing.T) {
	values := []struct{ text, other string }{
		{`null`, `null`},
		{`true`, `true`},
		{`false`, `false`},
		{`1`, `1.0`},
		{`1e2`, `100`},
		{`0.1`, `1e-1`},
		{`0`, `-0`},
		{`"1"`, `"\u0031"`},
		{`""`, `""`},
		{`[]`, `[ ]`},
		{`[1,"a"]`, `[1.0,"a"]`},
		{`["a",1]`, `["a",1]`},
		{`{}`, `{ }`},
		{`{"a":1,"b":[{}]}`, `{"b":[{}],"a":1.0}`},
		{`{"a":1}`, `{"a":1}`},
		{`{"a":2}`, `{"a":2}`},
		{`{"a":null}`, `{"a":null}`},
		{`{"c":1}`, `{"c":1}`},
	}
	for i, a := range values {
		tree, err := jsontree.Parse(a.text)
		if err != nil {
			t.Fatal(err)
		}
		for j, b := range values {
			if got := tree.Equals(decoded(t, b.other)); got != (i == j) {
				t.Errorf("%s equals %s: %t", a.text, b.other, got)
			}
		}
	}
}

func TestFormat(t *testing.T) {
	for text, want := range map[string]string{
		`"a\"b"`: `"a\"b"`, `1.50`: `1.50`, `{"b":[1,"<"],"a":null}`: `{"a":null,"b":[1,"<"]}`,
		`"` + strings.Repeat("x", 100) + `"`:   `"` + strings.Repeat("x", 80) + `…"`,
		`[` + strings.Repeat("1,", 100) + `1]`: `[` + strings.Repeat("1,", 39) + `1…`,
	} {
		if got := jsontree.Format(decoded(t, text)); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
