//go:build services

package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tutti/internal/core"
	"tutti/internal/tools/testkit/dataset"
)

// exported returns a folder with exports of a Song repository, {"analyses":[…]} each: the one that
// TUTTI_TEST_SONG_RECORDS names, else one with generated records in the same form, pretty-printed.
func exported(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("TUTTI_TEST_SONG_RECORDS"); dir != "" {
		return dir
	}
	dir := t.TempDir()
	for _, study := range dataset.GenerateStudies(3) {
		var page struct {
			Analyses []json.RawMessage `json:"analyses"`
		}
		for _, a := range dataset.GenerateAnalyses(3, study, 400) {
			page.Analyses = append(page.Analyses, a.Body)
		}
		content, err := json.MarshalIndent(page, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, study+".json"), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRealRecords serves exported records, indexes them by a trigger, and reads them back byte for byte.
func TestRealRecords(t *testing.T) {
	t.Parallel()
	records, err := dataset.LoadRecords(exported(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(records) == 0 {
		t.Fatal("there are no records")
	}
	w := startWorld(t, settings{})
	w.song.PutAll(records...)
	job := w.run("", "", core.JobSucceeded)
	t.Logf("%d records in %d studies: %s", len(records), len(w.song.Studies()), job.Get("totals").Raw)
	for _, l := range w.deadLettersByRecord() {
		t.Errorf("dead letter %s: %s: %s", l.RecordID, l.EngineType, l.EngineReason)
	}
	w.wantConverged()
	for _, a := range records[:min(len(records), 20)] {
		w.trigger(a.Study, a.ID)
	}
	w.awaitConverged(wait)
}

// TestTwoShareKilled: two processes share the work, one of them is killed, and everything arrives.
func TestTwoShareKilled(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{queueURL: externalQueue(t), pageSize: 20})
	other := w.secondProcess().startChild()
	for i := range 8 {
		w.fill(fmt.Sprintf("S%d", i), 250)
	}
	job := w.startRun("", "")
	w.eventually(wait, func() (bool, string) {
		mine, all := w.outcomes(core.OutcomeIndexed), int(w.job(job).Get("totals.indexed").Int())
		return mine > 0 && all > mine+100, fmt.Sprintf("%d of %d documents are this process's", mine, all)
	})
	other.kill()
	if j := w.awaitJob(job); j.Get("state").String() != string(core.JobSucceeded) {
		t.Errorf("job %s", j.Raw)
	}
	w.awaitConverged(wait)
	t.Logf("this process wrote %d of 2000", w.outcomes(core.OutcomeIndexed))
}
