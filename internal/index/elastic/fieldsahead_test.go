package elastic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index"
)

// TestLearn: the first batches after Ensure bring their fields before they are sent, so that nothing is sent twice. A
// document that contradicts the mapping adds nothing, and from the third batch without anything new on, documents are
// sent unread.
func TestLearn(t *testing.T) {
	const none = `{"a-1":{"mappings":{"_meta":{"tutti":{"types":"declared"}},"dynamic":"strict"}}}`
	x, s := play(t,
		answer{404, `{"error":{"type":"aliases_not_found_exception"},"status":404}`}, answer{200, done}, // Ensure makes it
		answer{200, none}, answer{200, done}, items(indexedItem), // a batch with two new fields
		items(indexedItem), items(indexedItem), // two with none
		items(strictItem), answer{200, none}, answer{200, done}, items(indexedItem), // the next is sent unread, and turned away
	)
	if err := x.Ensure(t.Context(), index.Spec{Alias: "a"}); err != nil {
		t.Fatal(err)
	}
	for i, doc := range []string{
		`{"tool":"x","experiment":{"lanes":3}}`, `{"tool":"y"}`, `{"experiment":{"lanes":4}}`, `{"late":true}`,
	} {
		results, err := x.Write(t.Context(), batch(x, "a", put("1", core.Version(i+1), doc)))
		if err != nil || len(results) != 1 || results[0].Outcome != core.OutcomeIndexed {
			t.Errorf("%s: got %+v, %v", doc, results, err)
		}
	}
	var puts []string
	for _, asked := range s.asked {
		if strings.HasPrefix(asked, "PUT /a-1/_mapping") {
			puts = append(puts, asked)
		}
	}
	want := []string{
		`PUT /a-1/_mapping {"properties":{"experiment":{"properties":{"lanes":{"meta":{"tutti_kind":"number"},"type":"double"}}},"tool":{"ignore_above":8191,"type":"keyword"}}}`,
		`PUT /a-1/_mapping {"properties":{"late":{"type":"boolean"}}}`,
	}
	if diff := cmp.Diff(want, puts); diff != "" {
		t.Error(diff)
	}
}
