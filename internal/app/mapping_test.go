package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tutti/internal/core"
)

// TestWrongMappingPauses: a mapping file that rejects every record pauses its repository; the job and /ready name the field. The pause
// comes before most records become dead letters.
func TestWrongMappingPauses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	if err := os.WriteFile(file, []byte(`{"properties":{"donor":{"properties":{"age":{"type":"long"}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWorld(t, settings{repository: fmt.Sprintf("mappingFile: %q", file), pageSize: 500})
	w.song.AddStudy("S1")
	for i := range 1500 {
		w.put("S1", fmt.Sprintf("A%04d", i), `"donor":{"age":"unknown"}`)
	}
	id := w.startRun("S1", "")
	said := func(why string) bool {
		return strings.Contains(why, "_exception") && strings.Contains(why, `field "donor.age"`)
	}
	w.eventually(wait, func() (bool, string) {
		job := w.job(id)
		return said(job.Get("paused").String()), job.Raw
	})
	if a := w.ready(); !said(a.get("paused.0.reason").String()) {
		t.Errorf("/ready says %s", a.raw)
	}
	if n := w.metric("tutti_repository_paused", "repository", code); n != 1 {
		t.Errorf("tutti_repository_paused is %f", n)
	}
	if job := w.job(id); job.Get("state").String() != string(core.JobRunning) {
		t.Errorf("job %s", job.Raw)
	}
	if n := len(w.deadLettersByRecord()); n == 0 || n >= 1000 {
		t.Errorf("%d dead letters", n)
	}
}
