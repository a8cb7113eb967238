package dataset_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/tools/testkit/dataset"
)

func TestGenerateRecords(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	size, count, treatments, samples := 0, 0, 0, 0
	for _, organization := range dataset.GenerateStudies(3) {
		for _, r := range dataset.GenerateRecords(7, organization, 300) {
			parsed, err := dataset.ParseLyricRecord(r.Body)
			if err != nil {
				t.Fatalf("%v in %s", err, r.Body)
			}
			if d := cmp.Diff(r, parsed, cmp.Comparer(bytes.Equal)); d != "" || !r.IsValid || r.Organization != organization || r.EntityName != "donor" {
				t.Fatalf("(-want +got):\n%s", d)
			}
			var doc struct {
				Data struct {
					PrimaryDiagnoses []struct{ Treatments []json.RawMessage } `json:"primary_diagnoses"`
					Specimens        []struct{ Samples []json.RawMessage }
				}
			}
			if err := json.Unmarshal(r.Body, &doc); err != nil {
				t.Fatal(err)
			}
			for _, d := range doc.Data.PrimaryDiagnoses {
				treatments += len(d.Treatments)
			}
			for _, s := range doc.Data.Specimens {
				samples += len(s.Samples)
			}
			seen[r.SystemID] = true
			size += len(r.Body)
			count++
		}
	}
	if mean := size / count; len(seen) != count || mean < 1000 || mean > 2000 || treatments < count/2 || samples < count {
		t.Errorf("%d ids of %d, %d bytes each, %d treatments, %d samples", len(seen), count, mean, treatments, samples)
	}
	if d := cmp.Diff(dataset.GenerateRecords(7, "O", 20), dataset.GenerateRecords(7, "O", 20), cmp.Comparer(bytes.Equal)); d != "" {
		t.Errorf("not the same twice:\n%s", d)
	}
	if dataset.GenerateRecords(7, "O", 1)[0].SystemID == dataset.GenerateRecords(8, "O", 1)[0].SystemID {
		t.Error("two seeds give one id")
	}
}
