package counts

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"tutti/internal/core"
)

// TestChangedFields: a field counts as gone or new if many records had or have it, and none of the others; what is below it is not named.
func TestChangedFields(t *testing.T) {
	t.Parallel()
	kinds := func(records int64, of map[string]int64) core.Kinds {
		return core.NewKinds(records, records, func(yield func(string, core.PathKinds) bool) {
			for _, path := range slices.Sorted(maps.Keys(of)) {
				if !yield(path, core.PathKinds{Texts: of[path]}) {
					return
				}
			}
		}, core.MaxKindsBytes)
	}
	many := make(map[string]int64)
	for i := range 7 {
		many[fmt.Sprint("f", i)] = 10
	}
	before := map[string]int64{"data": 10, "data.id": 10, "data.specimen": 10, "data.specimen.id": 9, "data.specimen-note": 2, "data.rare": 1}
	for name, tt := range map[string]struct {
		before, now core.Kinds
		want        string
	}{
		"unchanged": {kinds(10, before), kinds(10, before), ""},
		"renamed": {
			kinds(10, before), kinds(10, map[string]int64{"data": 10, "data.id": 10, "data.specimens": 10, "data.specimens.id": 10, "data.specimen-note": 1}),
			"no record has data.specimen any more (new: data.specimens)",
		},
		"gone": {
			kinds(10, before), kinds(10, map[string]int64{"data": 10, "data.id": 10}),
			"no record has data.specimen, data.specimen-note any more",
		},
		"only new":     {kinds(10, map[string]int64{"data": 10}), kinds(10, before), ""},
		"many":         {kinds(10, many), kinds(10, before), "no record has f0, f1, f2, f3, f4 and 2 more any more (new: data)"},
		"first run":    {nil, kinds(10, before), ""},
		"no records":   {kinds(10, before), kinds(0, nil), ""},
		"not counted":  {kinds(10, before), core.OverflownKinds(), ""},
		"not counted2": {core.OverflownKinds(), kinds(10, before), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := changedFields(tt.before, tt.now); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
