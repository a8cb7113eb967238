package app_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// fileIn returns a file of an analysis, whose size is JSON.
func fileIn(id, size string) string {
	return fmt.Sprintf(`{"objectId":%q,"fileName":"%s.bam","fileType":"BAM","fileSize":%s,"fileMd5sum":"m","fileAccess":"open","dataType":"reads"}`, id, id, size)
}

// putFiles puts an analysis of study S1 with files of size 1.
func (w *world) putFiles(id string, files ...string) {
	w.t.Helper()
	list := make([]string, len(files))
	for i, f := range files {
		list[i] = fileIn(f, "1")
	}
	w.put("S1", id, `"files":[`+strings.Join(list, ",")+`]`)
}

// awaitDocuments waits until the index holds exactly the documents with these ids.
func (w *world) awaitDocuments(ids ...string) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		got := slices.Sorted(maps.Keys(w.engine.documents(w)))
		return slices.Equal(got, ids), cmp.Diff(ids, got)
	})
}

// TestFileDocuments: one document of each file follows its analysis: filled by a run, removed when the file or its analysis
// vanishes, by a request for the record and by the sweep of a run.
func TestFileDocuments(t *testing.T) {
	t.Parallel()
	for documents, recordID := range map[string]string{"file": "analysis.analysisId", "file-v4": "analysis.analysis_id"} {
		t.Run(documents, func(t *testing.T) {
			t.Parallel()
			w := startWorld(t, settings{repository: "documents: " + documents, pageSize: 2})
			w.song.AddStudy("S1")
			w.putFiles("a", "a1", "a2")
			w.putFiles("b", "b1", "b2", "b3")
			for i := range 12 { // more than the sweep's guard counts
				w.putFiles(fmt.Sprintf("c%02d", i), fmt.Sprintf("c%02d", i)+"-1", fmt.Sprintf("c%02d", i)+"-2")
			}
			w.putFiles("empty")
			job := w.run("S1", "", core.JobSucceeded)
			if got := job.Get("totals.indexed").Int(); got != 29 {
				t.Errorf("%d documents were indexed, want 29: %s", got, job.Raw)
			}
			if n := w.outcomes(core.OutcomeRemoved); n != 0 {
				t.Errorf("%v documents were removed, want none", n)
			}
			all := []string{"a1", "a2", "b1", "b2", "b3"}
			for i := range 12 {
				all = append(all, fmt.Sprintf("c%02d-1", i), fmt.Sprintf("c%02d-2", i))
			}
			w.awaitDocuments(all...)
			if doc := w.engine.documents(w)["a1"]; gjson.GetBytes(doc, recordID).String() != "a" || gjson.GetBytes(doc, "study_id").String() != "S1" ||
				gjson.GetBytes(doc, "repositories.0.code").String() != code {
				t.Errorf("document %s", doc)
			}

			without := func(ids ...string) {
				all = slices.DeleteFunc(all, func(id string) bool { return slices.Contains(ids, id) })
				w.awaitDocuments(all...)
			}
			w.putFiles("a", "a2")
			w.trigger("S1", "a")
			without("a1")
			w.song.SetState("a", "UNPUBLISHED")
			w.trigger("S1", "a")
			without("a2")

			w.putFiles("b", "b1", "b3")
			w.song.Delete("c03")
			job = w.run("S1", "", core.JobSucceeded)
			if got := job.Get("totals.removed").Int(); got != 3 {
				t.Errorf("%d documents were removed, want 3: %s", got, job.Raw)
			}
			without("b2", "c03-1", "c03-2")

			w.removal("S1", "b")
			without("b1", "b3")
			w.putFiles("c00", "c00-2", "new")
			w.trigger("S1", "c00")
			all = append(all, "new")
			without("c00-1")
		})
	}
}

// TestFileDeadLetters: a file that the index rejects is a dead letter of its own, the others are indexed. Its retry fetches the
// analysis, and removes the dead letter also when the file has vanished.
func TestFileDeadLetters(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{repository: "documents: file"})
	w.song.AddStudy("S1")
	put := func(size string, more ...string) {
		w.put("S1", "a", `"files":[`+strings.Join(append(more, fileIn("a1", "1"), fileIn("a2", size)), ",")+`]`)
	}
	put(`"large"`, fileIn("a3", `"larger"`))
	job := w.run("S1", "", core.JobPartial)
	if job.Get("totals.indexed").Int() != 1 || job.Get("totals.rejected").Int() != 2 {
		t.Errorf("totals: %s", job.Get("totals").Raw)
	}
	w.awaitDocuments("a1")
	letters := w.deadLettersByRecord()
	if l := letters["a2"]; len(letters) != 2 || l.Request == nil || l.Request.RecordID != "a" || !strings.Contains(l.Hint, "a document of record a: ") {
		t.Fatalf("dead letters: %+v", letters)
	}
	retry := func(id string) {
		w.mustRequest(http.MethodPost, "/dead-letters/"+letters[id].ID+"/retry", http.StatusAccepted)
	}
	put("2")
	retry("a2")
	w.awaitDocuments("a1", "a2")
	retry("a3")
	w.eventually(wait, func() (bool, string) {
		n := len(w.deadLettersByRecord())
		return n == 0, fmt.Sprint(n, " dead letters")
	})

	// A record that cannot be documents is a dead letter itself, and changes no document.
	w.put("S1", "a", `"files":[{"fileName":"no id"}]`)
	w.trigger("S1", "a")
	w.eventually(wait, func() (bool, string) {
		l := w.deadLettersByRecord()
		return len(l) == 1 && l["a"].EngineReason == "file 1: objectId is empty", fmt.Sprintf("%+v", l)
	})
	w.run("S1", "", core.JobPartial)
	w.awaitDocuments("a1", "a2")
	w.putFiles("a", "a1")
	w.trigger("S1", "a")
	w.awaitDocuments("a1")
	// The dead letter is removed after the write.
	w.eventually(wait, func() (bool, string) {
		l := w.deadLettersByRecord()
		return len(l) == 0, fmt.Sprintf("%+v", l)
	})
}

// TestAnalysisDocuments: documents with the record below analysis follow their records.
func TestAnalysisDocuments(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{repository: "documents: analysis"})
	w.fill("S1", 12)
	w.put("S1", "a", `"files":[]`)
	w.run("S1", "", core.JobSucceeded)
	doc := gjson.ParseBytes(w.engine.documents(w)["a"])
	if doc.Get("analysis").Raw != `{"analysisId":"a","studyId":"S1","analysisState":"PUBLISHED","files":[]}` ||
		doc.Get("state").String() != "PUBLISHED" || doc.Get("studyId").String() != "S1" {
		t.Errorf("document %s", doc.Raw)
	}
	w.song.Delete("a")
	w.run("S1", "", core.JobSucceeded)
	if docs := w.engine.documents(w); len(docs) != 12 || docs["a"] != nil {
		t.Errorf("%d documents, want 12 without a", len(docs))
	}
}
