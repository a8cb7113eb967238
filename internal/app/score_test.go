package app_test

import (
	"net/http"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// TestScore: with tokens on, Score's requests without a token see a submitted file and the state of its analysis; a change of the file
// of a published analysis reaches the index.
func TestScore(t *testing.T) {
	t.Parallel()
	b := newBuiltIn(t, plan{more: tokens})
	_, b.token = b.firstKey("tutti.WRITE")
	b.startReady()
	b.prepareStudies("S1")
	_, writer := b.key(`["S1.WRITE"]`)
	id := b.submit("S1")

	page := b.mustSendAs("", http.MethodGet, "/entities?gnosId="+id+"&projectCode=S1&size=2000&page=0", "", http.StatusOK)
	object := page.get("content.0.id").String()
	if object == "" || !page.get("last").Bool() || page.get("content.0.projectCode").String() != "S1" {
		t.Fatalf("entities: %s", page.raw)
	}
	if e := b.mustSendAs("", http.MethodGet, "/entities/"+object, "", http.StatusOK); e.get("gnosId").String() != id {
		t.Errorf("entity: %s", e.raw)
	}
	state := func(want datamodel.AnalysisState) {
		t.Helper()
		a := b.mustSendAs("", http.MethodGet, analysisPath("S1", id), "", http.StatusOK)
		if a.get("analysisState").String() != string(want) || a.get("files").Exists() {
			t.Errorf("state without a token: %s", a.raw)
		}
	}
	state(datamodel.StateUnpublished)
	b.publish("S1", id)
	state(datamodel.StatePublished)
	b.awaitConverged()

	file := "/studies/S1/files/" + object
	b.wantRefused("", http.MethodPut, file, `{"dataType":"changed"}`, http.StatusUnauthorized, "a token is required")
	changed := b.mustSendAs(writer, http.MethodPut, file, `{"dataType":"changed"}`, http.StatusOK)
	if changed.get("fileUpdateType").String() != "METADATA_UPDATE" || changed.get("originalFile.dataType").String() == "changed" {
		t.Errorf("changed: %s", changed.raw)
	}
	b.awaitOutcomes(core.OutcomeIndexed, 2)
	b.awaitConverged()

	exported := b.mustSendAs(writer, http.MethodGet, "/export/analysis/"+id, "", http.StatusOK)
	payload := exported.get("0.payloads.0").Raw
	if !strings.Contains(payload, `"dataType":"changed"`) || strings.Contains(payload, object) {
		t.Errorf("exported: %s", exported.raw)
	}
	b.mustSendAs(writer, http.MethodPost, "/submit/S1?allowDuplicates=true", payload, http.StatusOK)
}
