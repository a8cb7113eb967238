package mappingplan_test

import (
	"encoding/json"
	"testing"

	"tutti/internal/index/mappingplan"
)

// TestJSON: a plan without a difference says so, and limits that are not known are null.
func TestJSON(t *testing.T) {
	raw, err := json.Marshal(mappingplan.Plan{
		Repository: "r", IndexName: "i", State: "alias", Summary: "s",
		Fields: []mappingplan.Field{{Field: "f", Live: "long", Change: mappingplan.Keep}},
	})
	want := `{"repository":"r","indexName":"i","state":"alias","summary":"s",` +
		`"fields":[{"field":"f","live":"long","change":"only in the index"}],"difference":false,"limits":null}`
	if err != nil || string(raw) != want {
		t.Errorf("the plan is\n%s, want\n%s (%v)", raw, want, err)
	}
}
