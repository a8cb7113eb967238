package external

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/schemas/jsontree"
)

// findAt returns the pointers to what a path selects.
func findAt(path, text string) ([]string, error) {
	p, err := parseJSONPath(path)
	if err != nil {
		return nil, err
	}
	v, err := jsontree.Parse(text)
	if err != nil {
		return nil, err
	}
	var pointers []string
	p.find(&v, func(l located) bool {
		pointers = append(pointers, l.pointer)
		return true
	})
	return pointers, nil
}

func TestJSONPath(t *testing.T) {
	const text = `{"a":{"b":[{"c":1},{"c":2},{"d":3}],"x y":4,"it's":5},"$":6}`
	for _, c := range []struct {
		path    string
		want    []string
		failure string
	}{
		{"a.b[*].c", []string{"/a/b/0/c", "/a/b/1/c"}, ""},
		{"$.a.b[2].d", []string{"/a/b/2/d"}, ""},
		{"$a", nil, ""},
		{"$['a']['x y']", []string{"/a/x y"}, ""},
		{`a["it's"]`, []string{"/a/it's"}, ""},
		{"['$']", []string{"/$"}, ""},
		{"a.b", []string{"/a/b"}, ""},
		{"a[0]", nil, ""},
		{"a.b[9]", nil, ""},
		{"", nil, "names nothing in the analysis"},
		{"$", nil, "names nothing in the analysis"},
		{"$.", nil, "has an empty step"},
		{"a..b", nil, "has an empty step"},
		{"a.", nil, "has an empty step"},
		{"a.*", nil, `has the character "*" in a name; write such a name as ['name']`},
		{"a[-1]", nil, `has "-1" in brackets, which is neither an index nor * nor a quoted name`},
		{"a[0", nil, "has a bracket that is not closed"},
		{"a['b]", nil, "has a name in brackets that is empty or has no closing quote"},
		{"a[?(@.b)]", nil, `has "?(@.b)" in brackets, which is neither an index nor * nor a quoted name`},
		{"a[0]b", nil, `needs a dot or a bracket before "b"`},
		{strings.Repeat("a.", 32) + "a", nil, "has more than 32 steps"},
	} {
		t.Run(c.path, func(t *testing.T) {
			got, err := findAt(c.path, text)
			failure := ""
			if err != nil {
				failure = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" || failure != c.failure {
				t.Errorf("%s %q, want %q", diff, failure, c.failure)
			}
		})
	}
}

func FuzzJSONPath(f *testing.F) {
	for _, seed := range []string{"a.b[0]", "$.a[*]['x y']", "$['$'][\"it's\"]", "$", "a..b", "a[-1]", "ä.ö"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		parsed, err := parseJSONPath(path)
		if err != nil {
			return
		}
		full := parsed.String()
		again, err := parseJSONPath(full)
		if err != nil || again.String() != full {
			t.Errorf("%q is %q, and that is %q, %v", path, full, again, err)
		}
	})
}
