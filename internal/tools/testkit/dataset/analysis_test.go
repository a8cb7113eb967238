package dataset_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/tools/testkit/dataset"
)

func TestGenerateAnalyses(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	kinds := map[string]int{}
	size, count := 0, 0
	for _, study := range dataset.GenerateStudies(3) {
		for _, a := range dataset.GenerateAnalyses(7, study, 300) {
			parsed, err := dataset.ParseAnalysis(a.Body)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(a, parsed, cmp.Comparer(bytes.Equal)); d != "" || a.State != "PUBLISHED" || a.Study != study {
				t.Fatalf("(-want +got):\n%s", d)
			}
			var doc struct {
				AnalysisType struct{ Name string }
				Files        []struct{ FileMd5sum string }
			}
			if err := json.Unmarshal(a.Body, &doc); err != nil || len(doc.Files) == 0 || len(doc.Files[0].FileMd5sum) != 32 {
				t.Fatalf("%v in %s", err, a.Body)
			}
			kinds[doc.AnalysisType.Name]++
			seen[a.ID] = true
			size += len(a.Body)
			count++
		}
	}
	if mean := size / count; len(seen) != count || len(kinds) != 3 || mean < 1700 || mean > 2600 {
		t.Errorf("%d ids of %d, kinds %v, %d bytes each", len(seen), count, kinds, mean)
	}
	if d := cmp.Diff(dataset.GenerateAnalyses(7, "S", 20), dataset.GenerateAnalyses(7, "S", 20), cmp.Comparer(bytes.Equal)); d != "" {
		t.Errorf("not the same twice:\n%s", d)
	}
	if dataset.GenerateAnalyses(7, "S", 1)[0].ID == dataset.GenerateAnalyses(8, "S", 1)[0].ID {
		t.Error("two seeds give one id")
	}
	names := map[string]bool{}
	for _, study := range dataset.GenerateStudies(250) {
		names[study] = true
	}
	if len(names) != 250 {
		t.Errorf("%d distinct studies of 250", len(names))
	}
}

func TestLoadRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const suppressed = `{"analysisId":"b","studyId":"T","analysisState":"SUPPRESSED"}`
	pretty := "{\n  \"analysisId\": \"a\",\n  \"studyId\": \"S\",\n  \"analysisState\": \"PUBLISHED\"\n}"
	write("b.json", `{"totalAnalyses":1,"analyses":[`+suppressed+`]}`)
	write("a.json", "{\n\"analyses\": [\n"+pretty+"\n]}")
	write("notes.txt", "no JSON")
	got, err := dataset.LoadRecords(dir)
	want := []dataset.Analysis{
		{ID: "a", Study: "S", State: "PUBLISHED", Body: []byte(pretty)},
		{ID: "b", Study: "T", State: "SUPPRESSED", Body: []byte(suppressed)},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	write("c.json", `{"analyses":[{"analysisId":"c"}]}`)
	if _, err := dataset.LoadRecords(dir); !errors.Is(err, dataset.ErrNoAnalysis) {
		t.Errorf("no analysis: %v", err)
	}
}
