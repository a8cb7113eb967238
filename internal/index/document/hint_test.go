package document_test

import (
	"strings"
	"testing"

	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// TestNestedParentsHint: the limit of Elasticsearch 9.3 on lists of objects with lists in them is explained like that on all of them.
func TestNestedParentsHint(t *testing.T) {
	hint := document.RejectionHint("Limit of nested parents [50] has been exceeded")
	for _, part := range []string{"at most 50 lists", "raise index.limits.nestedFields", mapping.SettingNestedParents} {
		if !strings.Contains(hint, part) {
			t.Errorf("%q lacks %q", hint, part)
		}
	}
}

// TestArrayObjectsHint: the limit of Elasticsearch 9.5 on all lists of objects is explained like that on nested ones.
func TestArrayObjectsHint(t *testing.T) {
	hint := document.RejectionHint("[1:500007] The total number of objects across all arrays in the document has exceeded the allowed limit of [50000]. " +
		"This limit can be set by changing the [index.mapping.array_objects.limit] index level setting.")
	for _, part := range []string{"at most 50000 objects", "raise index.limits.nestedObjects", mapping.SettingArrayObjects} {
		if !strings.Contains(hint, part) {
			t.Errorf("%q lacks %q", hint, part)
		}
	}
}
