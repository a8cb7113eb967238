package mapping_test

import (
	"strings"
	"testing"

	"tutti/internal/index/mapping"
)

// TestExceeded: a mapping may have as many fields, lists of objects and levels as its limits say, and none more. An object and a second form of a
// field count as fields.
func TestExceeded(t *testing.T) {
	t.Parallel()
	tree, err := mapping.Parse([]byte(`{"properties":{"k":{"type":"keyword","fields":{"low":{"type":"keyword"}}},
		"n":{"type":"nested","properties":{"m":{"type":"nested","properties":{"l":{"type":"long"}}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	exact := mapping.Limits{Fields: 5, Nested: 2, Depth: 3}
	if got := exact.Exceeded(tree); got != "" {
		t.Errorf("at the limits: %q", got)
	}
	for want, lower := range map[string]mapping.Limits{
		"Limit of total fields [4] has been exceeded":  {Fields: 4, Nested: 2, Depth: 3},
		"Limit of nested fields [1] has been exceeded": {Fields: 5, Nested: 1, Depth: 3},
		"Limit of mapping depth [2] has been exceeded": {Fields: 5, Nested: 2, Depth: 2},
	} {
		if got := lower.Exceeded(tree); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	objects := mapping.Limits{Objects: 3}
	if got := objects.ExceededBy(3); got != "" {
		t.Errorf("3 objects: %q", got)
	}
	if got := objects.ExceededBy(4); !strings.Contains(mapping.LimitHint(got), "at most 3 objects in the lists of one document") {
		t.Errorf("4 objects: %q", got)
	}
}
