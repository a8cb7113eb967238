package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// shrink is a list of rows of which some go while it is read, named for it. The list is read in pages of 10.
type shrink struct {
	name     string
	rows     int
	page     int // the call for a page, from 1, before which rows go
	from, to int // the rows that go
}

// shrinks returns a list for each length around a page's end, each page of it, and each place of the rows that go.
func shrinks() map[string]shrink {
	all := make(map[string]shrink)
	for _, rows := range []int{10, 11, 20, 25} {
		for page := 1; page <= (rows+8)/9; page++ {
			for _, gone := range [][2]int{{0, 1}, {8, 11}, {rows - 3, rows}} {
				if gone[1] > rows {
					continue
				}
				name := fmt.Sprintf("L%d-%d-%d-%d", rows, page, gone[0], gone[1])
				all[name] = shrink{name, rows, page, gone[0], gone[1]}
			}
		}
	}
	return all
}

// calls counts the calls for pages of each list.
type calls struct {
	mu sync.Mutex
	of map[string]int
	// off ends the counting: next returns 0.
	off bool
}

func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
}

func (c *calls) next(list string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]int)
	}
	if c.off {
		return 0
	}
	c.of[list]++
	return c.of[list]
}

// wantAll fails the test if a document of want is missing, or one is there that is in neither want nor before.
func wantAll(t *testing.T, want, before, got map[string]string) {
	t.Helper()
	for id := range want {
		if _, is := got[id]; !is {
			t.Errorf("%s is not in the index", id)
		}
	}
	for id := range got {
		if _, was := before[id]; !was {
			t.Errorf("%s is in the index", id)
		}
	}
}

// TestSongListShrinks: analyses that are unpublished or deleted while Song's pages are read move those after them to earlier rows. All that
// remain are in the index, and nothing else is once the repository was run again.
func TestSongListShrinks(t *testing.T) {
	t.Parallel()
	lists, count := shrinks(), new(calls)
	w := startWorld(t, settings{pageSize: 10, song: testkit.SongConfig{
		BeforePage: func(s *testkit.SongServer, _ int, call testkit.PageCall) {
			l := lists[call.Study]
			if count.next(call.Study) != l.page {
				return
			}
			for i, a := range s.Analyses(call.Study)[l.from:l.to] {
				if i%2 == 0 {
					s.SetState(a.ID, "UNPUBLISHED")
				} else {
					s.Delete(a.ID)
				}
			}
		},
	}})
	for study, l := range lists {
		w.song.AddStudy(study)
		for i := range l.rows {
			w.put(study, fmt.Sprintf("%s-%02d", study, i), "")
		}
	}
	before := w.upstreamDocuments()
	w.run("", "", core.JobSucceeded)
	count.end()
	wantAll(t, w.upstreamDocuments(), before, w.documents())
	w.run("", "?force=true", core.JobSucceeded)
	w.awaitConverged(wait)
}

// TestLyricListShrinks is TestSongListShrinks for records that are deleted while Lyric's pages, which cannot overlap, are read; the list is
// read again. It counts after it has read a page.
func TestLyricListShrinks(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"before a page": false, "before its total": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lists, count := shrinks(), new(calls)
			remove := func(s *testkit.LyricServer, call testkit.LyricPageCall) {
				l := lists[call.Organization]
				if call.PageSize != 10 || count.next(call.Organization) != l.page {
					return
				}
				for _, r := range s.Records(call.Organization)[l.from:l.to] {
					s.Remove(r.SystemID)
				}
			}
			cfg := &testkit.LyricConfig{BeforePage: func(s *testkit.LyricServer, _ int, call testkit.LyricPageCall) { remove(s, call) }}
			if late {
				cfg = &testkit.LyricConfig{BeforeTotal: remove}
			}
			w := startWorld(t, tabular(settings{pageSize: 10, lyric: cfg}))
			for organization, l := range lists {
				for i := range l.rows {
					body := fmt.Sprintf(`{"entityName":"donor","data":{"n":%d},"organization":%q,"isValid":true,"systemId":"%s-%02d"}`,
						i, organization, organization, i)
					if err := w.lyric.Put(organization, []byte(body)); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := w.lyricRecords()
			w.run("", "", core.JobSucceeded)
			count.end()
			wantAll(t, w.lyricRecords(), before, w.lyricDocuments())
			w.run("", "?force=true", core.JobSucceeded)
			w.awaitLyricConverged()
		})
	}
}

// dated puts analyses that were changed on a day into a study.
func (w *world) dated(study string, ids []string, day int) {
	w.t.Helper()
	for _, id := range ids {
		w.put(study, id, fmt.Sprintf(`"updatedAt":"2026-05-%02dT10:00:00.123456","day":%d`, day, day))
	}
}

// awaitReasonOf waits until /ready has a reason with all of texts, or, without any, none about the repository.
func (w *world) awaitReasonOf(texts ...string) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		about := slices.DeleteFunc(a.get("reasons").Array(), func(r gjson.Result) bool { return !strings.Contains(r.String(), code) })
		if len(texts) == 0 {
			return len(about) == 0, string(a.raw)
		}
		return slices.ContainsFunc(about, func(r gjson.Result) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(r.String(), text) })
		}), string(a.raw)
	})
}

// TestRestoredSong: a Song that comes back from yesterday's backup has older states of some analyses, lacks some, and has some again that
// were unpublished. Every path takes what it returns; a comparison and /ready say that it went back. What it lacks stays, if that is
// much, until a run with force removes it, which /ready advises.
func TestRestoredSong(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.song.AddStudy("S1")
	names := func(prefix string, n int) []string {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf("%s-%02d", prefix, i)
		}
		return ids
	}
	same, changed, added, gone := names("same", 30), names("changed", 6), names("added", 20), names("gone", 2)
	w.dated("S1", same, 1)
	w.dated("S1", slices.Concat(changed, added, gone), 2)
	w.run("", "", core.JobSucceeded)
	for _, id := range gone {
		w.song.SetState(id, "UNPUBLISHED")
		w.trigger("S1", id)
	}
	w.awaitConverged(wait)
	w.dated("S1", slices.Concat(changed, gone), 1)
	for _, id := range added {
		w.song.Delete(id)
	}

	w.trigger("S1", changed[0]) // the index takes an older state, too
	w.eventually(wait, func() (bool, string) {
		doc := w.documents()[changed[0]]
		return gjson.Get(doc, "day").Int() == 1, doc
	})
	job := w.run("", "?difference=true", core.JobPartial)
	counted(t, job, map[string]int64{
		"totals.drift.different": 5, "totals.drift.older": 5, "totals.drift.missing": 2, "totals.drift.surplus": 20, "totals.removed": 0,
	})
	if job.Get("error.code").String() != core.JobErrorPruneGuard {
		t.Errorf("the job: %s", job.Raw)
	}
	w.awaitReasonOf("5 of the different records are older in the repository than they were in the index: it may have been restored from a backup")
	w.awaitReasonOf(job.Get("id").String(), "tutti index "+code+" --force")
	if fault := difference(w.upstreamDocuments(), w.documents(), added...); fault != "" {
		t.Error(fault)
	}

	w.run("", "", core.JobPartial) // still guarded
	w.awaitReasonOf("tutti index " + code + " --force")
	w.run("", "?force=true", core.JobSucceeded)
	w.awaitConverged(wait)
	w.awaitReasonOf()

	// A run that writes everything, and a rebuild, need no comparison before them.
	for _, query := range []string{"", "?rebuild=true"} {
		w.dated("S1", changed, 3)
		w.run("", "?difference=true", core.JobSucceeded)
		w.dated("S1", changed, 1)
		w.run("", query, core.JobSucceeded)
		w.awaitConverged(wait)
		w.awaitReasonOf()
	}
}

// TestRestoredOfTwo: one of the repositories that share an index goes back: what it shows counts, not what it once had.
func TestRestoredOfTwo(t *testing.T) {
	t.Parallel()
	p := startSharing(t, "")
	p.has("own", "2026-05-02", "new", 0)
	p.has("both", "2026-05-03", "new", 0)
	p.has("both", "2026-05-02", "new", 1)
	p.runOf(code, "")
	p.runOf(otherCode, "")
	p.awaitFound(map[string]string{"own": "new " + code, "both": "new " + code + " " + otherCode})
	p.has("own", "2026-05-01", "old", 0)
	p.has("both", "2026-05-01", "old", 0)
	counted(t, p.runOf(code, "?difference=true"), map[string]int64{"totals.drift.different": 2, "totals.drift.older": 2})
	p.awaitReasonOf("2 of the different records are older")
	p.awaitFound(map[string]string{"own": "old " + code, "both": "new " + code + " " + otherCode})
	p.wantConflicts(code + " both") // its record is the older one now
}

// TestRestoredLyric: Lyric returns no dates, so that a restore looks like other changes. The documents become what it returns.
func TestRestoredLyric(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{lyric: clinic()}))
	for n := range 40 {
		w.putDonor(n, 2)
	}
	w.run("", "", core.JobSucceeded)
	w.awaitCentral()
	for n := range 5 {
		w.putDonor(n, 1)
	}
	for n := 25; n < 40; n++ {
		w.lyric.Remove(fmt.Sprint("DO", n))
	}
	job := w.run("", "?difference=true", core.JobPartial)
	counted(t, job, map[string]int64{"totals.drift.different": 5, "totals.drift.older": 0, "totals.drift.surplus": 15, "totals.removed": 0})
	w.awaitReasonOf("5 different and 15 surplus")
	w.awaitReasonOf("tutti index " + code + " --force")
	w.run("", "?force=true", core.JobSucceeded)
	w.awaitCentral()
	w.awaitReasonOf()
}

// TestLyricRenamesCollection: an upgrade of Lyric returns the records that others contain under another name.
func TestLyricRenamesCollection(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{lyric: clinic()}))
	put := func(name string) {
		for n := range 40 {
			putEntity(t, w.lyric, "donor", fmt.Sprint("DO", n), fmt.Sprintf(
				`"donor_id":"D%d",%q:[{"specimen_id":"S%d","volume":%d}]`, n, name, n, n))
		}
	}
	put("specimen")
	w.run("", "", core.JobSucceeded)
	w.awaitCentral()
	put("specimens")
	w.run("", "?difference=true", core.JobSucceeded)
	w.awaitCentral()
	w.awaitReasonOf("found 0 documents missing, 40 different and 0 surplus")
	w.awaitReasonOf("no record has data.specimen any more (new: data.specimens); ", "tutti index "+code+" --rebuild")
	facet := func(field string, status int) int64 {
		t.Helper()
		return w.postBody("/"+w.alias+"/graphql", `{"query":"{record{aggregations{`+field+`{stats{count}}}}}"}`, status).
			get("data.record.aggregations." + field + ".stats.count").Int()
	}
	has := func(name string) bool {
		return w.mustRequest(http.MethodGet, "/index/repository/"+code+"/mapping", http.StatusOK).
			get("mapping.properties.data.properties." + name).Exists()
	}
	before, after := facet("data__specimen__volume", http.StatusOK), facet("data__specimens__volume", http.StatusOK)
	if before != 0 || after != 40 || !has("specimen") || !has("specimens") {
		t.Errorf("%d values under the name before, %d under the new one", before, after)
	}
	w.run("", "?rebuild=true", core.JobSucceeded)
	w.awaitCentral()
	w.awaitReasonOf()
	facet("data__specimen__volume", http.StatusBadRequest)
	if facet("data__specimens__volume", http.StatusOK) != 40 || has("specimen") || !has("specimens") {
		t.Error("the rebuilt index has the name before")
	}
}
