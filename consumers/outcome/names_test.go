package outcome

import (
	"testing"

	"tutti/internal/core"
)

// TestNamesWithoutDocument: the hint for an invalid name says what is wrong also if the document was not stored with the rejection.
func TestNamesWithoutDocument(t *testing.T) {
	const rename = "rename it in the record, then retry"
	for _, reason := range blankReasons {
		if got, want := nameHint(core.Result{Reason: "x " + reason + " y"}), "the name of a field is empty, or has nothing before, between or after its dots: "+rename; got != want {
			t.Errorf("%s: got %q, want %q", reason, got, want)
		}
	}
}
