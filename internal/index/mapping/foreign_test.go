package mapping_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// TestParseForeign checks that fields below a value, or below an unknown type, are found by Lookup.
func TestParseForeign(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
		unnamed  []string
	}{
		{"nothing", `{}`, nil, nil},
		{"wrapped", `{"mappings":{"properties":{"k":{"type":"ip"}}}}`, []string{"k ip"}, nil},
		{
			"below a value", `{"subobjects":false,"properties":{"a":{"type":"long"},"a-b":{"type":"long"},"a.b.c":{"type":"ip"},"a.b":{"type":"text","fields":{"raw":{"type":"keyword"}}}}}`,
			[]string{"a long", "a.b text", "a.b.c ip", "a.b.raw keyword", "a-b long"},
			nil,
		},
		{
			"below an opaque type", `{"properties":{"p":{"type":"passthrough","properties":{"k":{"type":"ip"}}}}}`,
			[]string{"p passthrough", "p.k ip"},
			nil,
		},
		{
			"named in two ways", `{"properties":{"a.b":{"properties":{"x":{"type":"ip"}}},"a":{"properties":{"b":{"properties":{"y":{"type":"ip"}}}}}}}`,
			[]string{"a object", "a.b object", "a.b.x ip", "a.b.y ip"},
			nil,
		},
		{
			"nameless", `{"properties":{"o":{"subobjects":false,"properties":{"a.":{"type":"long"},".":{"type":"long"},"":{"type":"long"},"k":{"type":"long"}}}}}`,
			[]string{"o object", "o.k long"},
			[]string{"o.", "o..", "o.a."},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree, unnamed, err := mapping.ParseForeign([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for path, f := range tree.All() {
				got = append(got, fmt.Sprintf("%s %s", path, f.Type))
				if tree.Lookup(path) != f {
					t.Errorf("%q leads elsewhere", path)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.unnamed, unnamed); diff != "" {
				t.Errorf("unnamed (-want +got):\n%s", diff)
			}
			sameAgain(t, tree)
		})
	}
}

// sameAgain checks that a tree is unchanged by rendering and parsing it, as for several indices that are searched as one.
func sameAgain(t *testing.T, tree *mapping.Field, but ...cmp.Option) {
	t.Helper()
	raw, err := tree.Render()
	if err != nil {
		t.Fatal(err)
	}
	again, unnamed, err := mapping.ParseForeign(raw)
	if err != nil || len(unnamed) > 0 {
		t.Fatalf("%s: %v, %v", raw, unnamed, err)
	}
	if diff := cmp.Diff(tree, again, append(but, cmpopts.EquateEmpty())...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", raw, diff)
	}
}

func TestParseForeignRejects(t *testing.T) {
	for in, message := range map[string]string{
		`[]`:                                 `the mapping is not a JSON object`,
		`null`:                               `the mapping is not a JSON object`,
		`{"mappings":5}`:                     `the mapping is not a JSON object`,
		`{"type":"keyword"}`:                 `the mapping's root must be an object without a type`,
		`{"properties":[]}`:                  `the mapping is not a JSON object`,
		`{"properties":null}`:                `the mapping is not a JSON object`,
		`{"properties":{"a":5}}`:             `the mapping's field "a" is not a JSON object`,
		`{"properties":{"a":{"type":5}}}`:    `the mapping's field "a" has a type that is not a name`,
		`{"properties":{"a":{"fields":[]}}}`: `the mapping's field "a" is not a JSON object`,
		`{"properties":{"a.b":{"type":"ip"},"a":{"properties":{"b":{"type":"long"}}}}}`: `the mapping's field "a.b" is defined twice`,
	} {
		tree, _, err := mapping.ParseForeign([]byte(in))
		if tree != nil || core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != message {
			t.Errorf("%s: %v, %v, want %q", in, tree, err, message)
		}
	}
}

// FuzzParseForeign checks that ParseForeign accepts all that Parse accepts, with the same result.
func FuzzParseForeign(f *testing.F) {
	for _, in := range []string{
		`{"dynamic":"strict","properties":{"a.b":{"type":"text","fields":{"raw":{"type":"keyword"}}},"a":{"properties":{"c":{"type":"nested"}}}}}`,
		`{"subobjects":false,"properties":{"a":{"type":"long"},"a.b":{"type":"long"}}}`,
		`{"properties":{"a":{"type":"passthrough","properties":{"b.":{"type":"long"}}}}}`,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		strict, rejected := mapping.Parse(in)
		tree, unnamed, err := mapping.ParseForeign(in)
		if (tree == nil) != (err != nil) {
			t.Fatalf("got %v, %v", tree, err)
		}
		if rejected == nil && (err != nil || len(unnamed) > 0) {
			t.Fatalf("%v, %v of what Parse takes", unnamed, err)
		}
		if rejected == nil {
			if diff := cmp.Diff(strict, tree, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-strict +foreign):\n%s", diff)
			}
		}
		if err == nil {
			// Parameters are kept as written, which may differ from their rendering.
			sameAgain(t, tree, cmpopts.IgnoreFields(mapping.Field{}, "Dynamic", "Params"))
		}
	})
}
