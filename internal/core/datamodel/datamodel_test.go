package datamodel_test

import (
	"encoding/json"
	"testing"

	"tutti/internal/core/datamodel"
)

func TestValid(t *testing.T) {
	for state, want := range map[datamodel.AnalysisState]bool{"UNPUBLISHED": true, "PUBLISHED": true, "SUPPRESSED": true, "published": false, "": false} {
		if got := state.Valid(); got != want {
			t.Errorf("%q is valid: %t", state, got)
		}
	}
}

// TestOptionsJSON: a list that was never set differs from one that was cleared, also after a trip through JSON.
func TestOptionsJSON(t *testing.T) {
	raw, err := json.Marshal(datamodel.AnalysisOptions{
		FileTypes: []string{}, ExternalValidations: []datamodel.ExternalValidation{{URL: "u", JSONPath: "p"}},
	})
	if want := `{"fileTypes":[],"externalValidations":[{"url":"u","jsonPath":"p"}]}`; err != nil || string(raw) != want {
		t.Errorf("the options are %s, want %s (%v)", raw, want, err)
	}
	var options datamodel.AnalysisOptions
	if err := json.Unmarshal([]byte(`{"fileTypes":[]}`), &options); err != nil || options.FileTypes == nil || options.ExternalValidations != nil {
		t.Errorf("they are read as %#v (%v)", options, err)
	}
}
