package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// wantGuarded checks the error of a job that the guard kept from removing documents: its code, parts of its message, and the first ten
// of ids.
func wantGuarded(t *testing.T, job gjson.Result, code string, ids []string, parts ...string) {
	t.Helper()
	ids = slices.Sorted(slices.Values(ids))
	parts = append(parts, "The first ids: "+strings.Join(ids[:10], ", "))
	message := job.Get("error.message").String()
	for _, part := range parts {
		if job.Get("error.code").String() != code || !strings.Contains(message, part) || strings.Contains(message, ids[10]) ||
			job.Get("totals.removed").Int() != 0 {
			t.Errorf("want %s, %q and ten ids: %s", code, part, job.Raw)
		}
	}
}

// TestLyricInvalidRecords: records that the list shows as invalid are removed without a request of their own, by every kind of run,
// unless they are too many together with those that the list lacks.
func TestLyricInvalidRecords(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"full": "", "difference": "?difference=true", "rebuild": "?rebuild=true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startWorld(t, tabular(settings{pageSize: 25}))
			w.dropAtEnd(core.NextAlias(w.alias))
			w.dropAtEnd(core.PreviousAlias(w.alias))
			one := w.addRecords("O1", 80)
			two := w.addRecords("O2", 40)
			w.run("", "", core.JobSucceeded)
			w.wantLyricConverged()
			scope, guarded, forced := "O1", core.JobPartial, query+"?force=true"
			if query != "" {
				forced = query + "&force=true"
			}
			if name == "rebuild" {
				scope, guarded = "", core.JobFailed
			}
			invalidate := func(valid bool, ids ...string) {
				for _, id := range ids {
					w.lyric.SetValid(id, valid)
				}
			}
			invalidate(false, append(one[:6:6], two[3])...)
			counted(t, w.run("", query, core.JobSucceeded), map[string]int64{"totals.removed": 7, "totals.expected": 120, "totals.indexed": map[string]int64{"": 113, "?rebuild=true": 113}[query]})
			w.wantLyricConverged()

			invalidate(false, one[6:40]...)
			before := w.lyricDocuments()
			job := w.run(scope, query, guarded)
			wantGuarded(t, job, core.JobErrorManyInvalid, one[6:40], "34 of ")
			if name == "difference" {
				counted(t, job, map[string]int64{"totals.drift.surplus": 34, "totals.drift.unchanged": 46})
			}
			w.lyric.Remove(one[40])
			wantGuarded(t, w.run("", query, guarded), core.JobErrorManyInvalid, one[6:41], "35 of 113 documents", " 34 ")
			for _, id := range one[41:75] {
				w.lyric.Remove(id)
			}
			wantGuarded(t, w.run("", query, guarded), core.JobErrorPruneGuard, one[6:75], "69 of 113 documents", " 34 ")
			if fault := difference(before, w.lyricDocuments()); fault != "" {
				t.Error(fault)
			}
			if n := w.lyric.Requests(testkit.LyricRouteRecord); n != 0 {
				t.Errorf("%d records were requested one by one", n)
			}
			next := w.next("O1", one[10])
			if want := "; its documents are removed with: tutti index "; !strings.Contains(next, want) || !strings.HasPrefix(next, "the record is not valid upstream") {
				t.Errorf("why: %s", next)
			}
			if !strings.Contains(next, "the guard of the last run kept its documents (prune_guard); ") {
				t.Errorf("why: %s", next)
			}
			w.trigger("O1", one[10]) // does what the record says
			w.eventually(wait, func() (bool, string) { return len(w.lyricDocuments()) == 112, fmt.Sprint(len(w.lyricDocuments())) })
			asked := w.lyric.Requests(testkit.LyricRouteRecord)
			counted(t, w.run("", forced, core.JobSucceeded), map[string]int64{"totals.removed": 68})
			w.wantLyricConverged()
			if n := w.lyric.Requests(testkit.LyricRouteRecord) - asked; n != 35 {
				t.Errorf("%d records were requested one by one, want the 35 that the list lacks", n)
			}
		})
	}
}

// TestSongInvalidRecords: a list that shows analyses in other states than the indexed ones, as of a gateway that drops the parameter, for
// each form of documents.
func TestSongInvalidRecords(t *testing.T) {
	t.Parallel()
	for _, documents := range []string{"analysis", "file", "file-v4"} {
		t.Run(documents, func(t *testing.T) {
			t.Parallel()
			w := startWorld(t, settings{repository: "documents: " + documents, pageSize: 7, song: testkit.SongConfig{AllStates: true}})
			w.dropAtEnd(core.NextAlias(w.alias))
			w.dropAtEnd(core.PreviousAlias(w.alias))
			w.song.AddStudy("S1")
			each := 2
			if documents == "analysis" {
				each = 1
			}
			var analyses, stored []string
			for i := range 30 {
				id := fmt.Sprintf("a%02d", i)
				analyses = append(analyses, id)
				w.putFiles(id, id+"-1", id+"-2")
				if stored = append(stored, id+"-1", id+"-2"); each == 1 {
					stored = append(stored[:len(stored)-2], id)
				}
			}
			w.run("", "", core.JobSucceeded)
			w.awaitDocuments(stored...)
			gone := 0
			unpublish := func(n int) {
				for _, id := range analyses[gone : gone+n] {
					w.song.SetState(id, "UNPUBLISHED")
				}
				gone += n
			}
			for _, run := range [][2]string{{"S1", ""}, {"", "?difference=true"}, {"", "?rebuild=true"}} {
				unpublish(1)
				counted(t, w.run(run[0], run[1], core.JobSucceeded), map[string]int64{"totals.removed": int64(each)})
				w.awaitDocuments(stored[each*gone:]...)
			}
			left := stored[each*gone:]
			unpublish(12)
			for _, run := range [][2]string{{"S1", ""}, {"", ""}, {"", "?difference=true"}} {
				wantGuarded(t, w.run(run[0], run[1], core.JobPartial), core.JobErrorManyInvalid, left, fmt.Sprintf("%d of %d documents", 12*each, 27*each))
			}
			wantGuarded(t, w.run("", "?rebuild=true", core.JobFailed), core.JobErrorManyInvalid, left,
				fmt.Sprintf("the new index lacks %d of %d documents", 12*each, 27*each))
			w.awaitDocuments(left...)
			counted(t, w.run("S1", "?force=true", core.JobSucceeded), map[string]int64{"totals.removed": int64(12 * each)})
			w.awaitDocuments(stored[each*gone:]...)
			if n := w.song.Requests(testkit.RouteRecord); n != 0 {
				t.Errorf("%d analyses were requested one by one", n)
			}
			w.song.SetState(analyses[0], "PUBLISHED") // what was removed comes back
			w.trigger("S1", analyses[0])
			w.awaitDocuments(append(slices.Clone(stored[:each]), stored[each*gone:]...)...)
			if letters := w.mustRequest(http.MethodGet, "/dead-letters", http.StatusOK).get("deadLetters.#").Int(); letters != 0 {
				t.Errorf("%d dead letters", letters)
			}
		})
	}
}

// TestSharedInvalidRecords: in a shared index an invalid record leaves only its own block, and the other repository's record takes over.
func TestSharedInvalidRecords(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"full": "", "difference": "?difference=true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startSharingOf(t, settings{song: testkit.SongConfig{AllStates: true}})
			p.has("same", "2024-01-01", "f", 0, 1)
			p.has("conflict", "2024-02-01", "new", 0)
			p.has("conflict", "2024-01-01", "old", 1)
			p.has("kept", "2024-01-01", "f", 0)
			p.runOf(code, "")
			p.runOf(otherCode, "")
			p.wantConflicts(otherCode + " conflict")
			p.song.SetState("same", "UNPUBLISHED")
			p.song.SetState("conflict", "UNPUBLISHED")
			if job := p.runOf(code, query); job.Get("totals.removed").Int() != 2 {
				t.Errorf("%s", job.Raw)
			}
			p.awaitFound(map[string]string{"same": "f " + otherCode, "conflict": "old " + otherCode, "kept": "f " + code})
			p.wantConflicts()
			if n := p.song.Requests(testkit.RouteRecord); n != 0 {
				t.Errorf("%d analyses were requested one by one", n)
			}
		})
	}
}
