package mapping_test

import (
	"encoding/json"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

func TestUniteNumbers(t *testing.T) {
	parse := func(kind string) *mapping.Field {
		t.Helper()
		tree, err := mapping.Parse(json.RawMessage(`{"properties":{"a":{"type":"nested","properties":{"n":{"type":"` + kind + `"}}},` +
			`"k":{"type":"keyword","fields":{"n":{"type":"` + kind + `"}}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	for _, tt := range []struct{ first, second, want string }{
		{"long", "integer", "long"},
		{"byte", "short", "short"},
		{"integer", "integer", "integer"},
		{"float", "half_float", "float"},
		{"double", "float", "double"},
		{"long", "float", "double"},
		{"scaled_float", "float", "double"},
		{"unsigned_long", "long", "double"},
		{"long", "keyword", ""},
		{"date", "long", ""},
		{"date", "date_nanos", ""},
	} {
		for _, pair := range [][2]string{{tt.first, tt.second}, {tt.second, tt.first}} {
			t.Run(pair[0]+" and "+pair[1], func(t *testing.T) {
				first, second := parse(pair[0]), parse(pair[1])
				united, err := mapping.Unite(first, second)
				if tt.want == "" {
					if core.CodeOf(err) != core.CodeConflict {
						t.Errorf("got %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range []string{"a.n", "k.n"} {
					if got := united.Lookup(path).Type; string(got) != tt.want {
						t.Errorf("%s is of type %s, want %s", path, got, tt.want)
					}
					if first.Lookup(path).Type != mapping.Type(pair[0]) || second.Lookup(path).Type != mapping.Type(pair[1]) {
						t.Error("a tree was changed")
					}
				}
			})
		}
	}
}
