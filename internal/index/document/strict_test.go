package document_test

import (
	"strings"
	"testing"

	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// TestCheckAllNames: with AllNames a name without a value is rejected where it is once the mapping has its object, and only there.
func TestCheckAllNames(t *testing.T) {
	known := mapping.Song()
	for doc, path := range map[string]string{
		`{"x":{"":null}}`: "x.", `{"x":{"a.":[]}}`: "x.a.", `{"x":{"y":[{"z":{" ":{}}}]}}`: "x.y.z. ", `{"x":{"a..b":null}}`: "x.a..b", `{"x":{".":null}}`: "x..",
		`{"x..y":null}`: "x..y", `{"x":{"info":{"":null}}}`: "", `{"info":{"":1}}`: "", `{"x":{"info":[{"":null}]}}`: "",
		`{"x":{"y":{"a":1},"z":[{}]},"u":{"info":{"":1},"w":null}}`: "",
	} {
		c := document.Checker{AllNames: true}
		_, err := c.Check(known, []byte(doc), nil)
		switch {
		case path == "" && err != nil:
			t.Errorf("%s: %v", doc, err)
		case path != "" && (err == nil || !strings.HasPrefix(err.Error(), "["+path+"] field name")):
			t.Errorf("%s: %v, want it for [%s]", doc, err, path)
		}
		if path == "" {
			continue
		}
		if _, err := new(document.Checker).Check(known, []byte(doc), nil); err != nil && doc != `{"x..y":null}` {
			t.Errorf("%s: %v", doc, err)
		}
		grown, _, err := document.Grow(known, nil, []byte(`{"x":{"y":[{"z":{"q":1}}],"info":[{"q":1}],"a":{"b":{"q":1}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := new(document.Checker).Check(grown, []byte(doc), nil); err == nil {
			t.Errorf("%s is accepted where the mapping has the object", doc)
		}
	}
	ignores := mapping.Song()
	ignores.Dynamic = mapping.DynamicFalse
	c := document.Checker{AllNames: true}
	if _, err := c.Check(ignores, []byte(`{"x":{"":null}}`), nil); err != nil {
		t.Errorf("fields that are not added: %v", err)
	}
}

// TestCheckAllTerms: with AllTerms the path counts with the name of its object, and values over ignore_above count.
func TestCheckAllTerms(t *testing.T) {
	known, err := mapping.Parse([]byte(`{"properties":{"o":{"properties":{"f":{"type":"flattened","ignore_above":8191}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	sized := func(name, value int) []byte {
		return []byte(`{"o":{"f":{"` + strings.Repeat("n", name) + `":"` + strings.Repeat("é", value/2) + `"}}}`)
	}
	for _, c := range []struct {
		name, value  int
		fits, always bool
	}{
		{1, 32_760, true, true},
		{1, 32_762, false, true},
		{1, 40_000, false, true},
		{27_761, 5_000, true, true},
		{27_762, 5_000, false, true},
		{27_765, 5_000, false, true},
		{27_766, 5_000, false, false},
		{40_000, 2, false, false},
	} {
		for all, fits := range map[bool]bool{true: c.fits, false: c.always} {
			checker := document.Checker{AllTerms: all}
			if _, err := checker.Check(known, sized(c.name, c.value), nil); (err == nil) != fits || !fits && document.RejectionHint(err.Error()) == "" {
				t.Errorf("a name of %d and a value of %d bytes, AllTerms %t: %v", c.name, c.value, all, err)
			}
		}
	}
}
