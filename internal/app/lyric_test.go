package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// tabular makes the world's repository a Lyric of a category of valid records.
func tabular(set settings) settings {
	if set.lyric == nil {
		set.lyric = &testkit.LyricConfig{}
	}
	if !strings.Contains(set.repository, "lyric:") {
		set.repository = "lyric: {categoryId: \"1\"}\n" + set.repository
	}
	return set
}

// addRecords adds n generated records of an organization to the world's Lyric server, and returns their ids. Each member has a
// value: Elasticsearch does not receive a member without a value before a record has one.
func (w *world) addRecords(organization string, n int) []string {
	records := dataset.GenerateRecords(1, organization, n)
	ids := make([]string, n)
	for i := range records {
		records[i].Body = bytes.ReplaceAll(records[i].Body, []byte(`:null`), []byte(`:"None"`))
		ids[i] = records[i].SystemID
	}
	w.lyric.PutAll(records...)
	return ids
}

// lyricRecords returns the bodies of all records of the world's Lyric server that are valid, by id.
func (w *world) lyricRecords() map[string]string {
	want := map[string]string{}
	for _, organization := range w.lyric.Organizations() {
		for _, r := range w.lyric.Records(organization) {
			if r.IsValid {
				want[r.SystemID] = string(r.Body)
			}
		}
	}
	return want
}

// storedRecords returns every document of an alias by id, as the records' own bytes: the repositories, which must be only block, are
// removed.
func (w *world) storedRecords(alias string, block map[string]string) map[string]string {
	w.t.Helper()
	ctx, x := context.WithoutCancel(w.t.Context()), w.app.Index()
	if err := x.Refresh(ctx, alias); err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	if err := x.Scan(ctx, alias, core.IndexScope{}, 0, func(id string, _ core.Version) error {
		ids = append(ids, id)
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	own := make(map[string]string, len(ids))
	for _, id := range ids {
		stored, found, err := x.Get(ctx, alias, id)
		if err != nil {
			w.t.Fatal(err)
		}
		if !found { // removed since
			continue
		}
		rest, spliced := bytes.CutPrefix(stored.Source, []byte(spliced))
		decoder := json.NewDecoder(bytes.NewReader(rest))
		var got []map[string]string
		if err := decoder.Decode(&got); err != nil || !spliced {
			w.t.Fatalf("document %q does not begin with its repositories: %v: %.200s", id, err, stored.Source)
		}
		if diff := cmp.Diff([]map[string]string{block}, got); diff != "" {
			w.t.Fatalf("repositories of %q (-want +got):\n%s", id, diff)
		}
		own[id] = "{" + strings.TrimPrefix(string(rest[decoder.InputOffset():]), ",")
	}
	return own
}

// lyricDocuments returns every document of the world's tabular repository.
func (w *world) lyricDocuments() map[string]string {
	w.t.Helper()
	return w.storedRecords(w.alias, map[string]string{
		"code": code, "name": "Test repository", "organization": "Example Institute", "country": "CA",
		"url": w.lyric.URL(), "type": "lyric",
	})
}

// awaitLyricConverged waits until the index holds exactly the valid records of the Lyric server, byte for byte.
func (w *world) awaitLyricConverged() {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		fault := difference(w.lyricRecords(), w.lyricDocuments())
		return fault == "", fault
	})
}

// wantLyricConverged fails the test unless it does now.
func (w *world) wantLyricConverged() {
	w.t.Helper()
	if fault := difference(w.lyricRecords(), w.lyricDocuments()); fault != "" {
		w.t.Fatal(fault)
	}
}

// counted compares numbers of a job.
func counted(t *testing.T, job gjson.Result, want map[string]int64) {
	t.Helper()
	for path, n := range want {
		if got := job.Get(path).Int(); got != n {
			t.Errorf("%s is %d, want %d: %s", path, got, n, job.Raw)
		}
	}
}

// TestLyricBackfill: a run over several organizations, each of several pages, returns the upstream's valid records, or all
// of them where that is configured, in their envelopes.
func TestLyricBackfill(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]bool{"valid records only": false, "invalid records too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := settings{pageSize: 50}
			if all {
				set.repository = `lyric: {categoryId: "1", validOnly: false}`
			}
			w := startWorld(t, tabular(set))
			sizes := map[string]int{"O1": 220, "O2": 100, "Ö/3 %2F": 1}
			var invalid []string
			for organization, n := range sizes {
				for i, id := range w.addRecords(organization, n) {
					if i%7 == 3 {
						w.lyric.SetValid(id, false)
						invalid = append(invalid, id)
					}
				}
			}
			want := w.lyricRecords()
			for _, id := range invalid {
				if r, _ := w.lyric.Record(id); all {
					want[id] = string(r.Body)
				}
			}
			job := w.run("", "", core.JobSucceeded)
			counted(t, job, map[string]int64{
				"totals.expected": 321, "totals.fetched": 321, "totals.indexed": int64(len(want)), "totals.removed": 0,
				"totals.rejected": 0, "totals.stale": 0, "organizations.#": 3,
			})
			if fault := difference(want, w.lyricDocuments()); fault != "" {
				t.Error(fault)
			}
			calls := map[string]int{}
			for _, c := range w.lyric.PageCalls() {
				if c.PageSize == 1 && c.Page%50 == 0 { // the row that joins two pages
					continue
				}
				if calls[c.Organization]++; c.View != "compound" || c.PageSize != 50 {
					t.Errorf("a request for a page is %+v", c)
				}
			}
			if calls["O1"] != 5 || calls["O2"] < 2 || calls["O2"] > 3 || calls["Ö/3 %2F"] != 1 || len(calls) != 3 {
				t.Errorf("requests for pages: %v", calls)
			}
			if letters := w.deadLettersByRecord(); len(letters) != 0 {
				t.Errorf("dead letters: %+v", letters)
			}
		})
	}
}

// TestLyricRecord: a trigger of one record converges both ways, and touches no record of another organization.
func TestLyricRecord(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{}))
	ids := w.addRecords("O1", 20)
	w.run("O1", "", core.JobSucceeded)
	w.wantLyricConverged()

	without := 0
	for _, r := range dataset.GenerateRecords(1, "O1", 20) { // the same, with members that have no value
		without += bytes.Count(r.Body, []byte(":null"))
		w.lyric.PutAll(r)
	}
	w.run("O1", "", core.JobSucceeded)
	if w.wantLyricConverged(); without == 0 {
		t.Error("every member of the records has a value")
	}

	w.lyric.SetValid(ids[0], false)
	w.trigger("O1", ids[0])
	w.awaitOutcomes(core.OutcomeRemoved, 1)
	w.wantLyricConverged()
	w.lyric.SetValid(ids[0], true)
	w.trigger("O1", ids[0])
	w.awaitOutcomes(core.OutcomeIndexed, 41)
	w.wantLyricConverged()

	w.lyric.Remove(ids[1])
	w.trigger("O1", ids[1])
	w.awaitOutcomes(core.OutcomeRemoved, 2)
	w.wantLyricConverged()

	w.trigger("O2", ids[2])
	w.awaitOutcomes(core.OutcomeMismatch, 1)
	w.removal("O2", ids[2])
	w.awaitOutcomes(core.OutcomeMismatch, 2)
	w.wantLyricConverged()

	w.removal("O1", ids[2])
	w.awaitOutcomes(core.OutcomeRemoved, 3)
	if documents := w.lyricDocuments(); len(documents) != 18 || documents[ids[2]] != "" {
		t.Errorf("%d documents after a removal on request, want 18", len(documents))
	}
	w.run("", "", core.JobSucceeded)
	w.wantLyricConverged()
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// TestLyricSweep: what the upstream no longer has leaves the index at the end of a run, unless it is so much that the run
// must be forced.
func TestLyricSweep(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{pageSize: 25}))
	one := w.addRecords("O1", 80)
	w.addRecords("O2", 5)
	three := w.addRecords("O3", 40)
	w.run("", "", core.JobSucceeded)
	w.wantLyricConverged()

	for _, id := range one[:6] {
		w.lyric.Remove(id)
	}
	w.lyric.SetValid(one[6], false)
	counted(t, w.run("O1", "", core.JobSucceeded), map[string]int64{"totals.removed": 7, "totals.expected": 74})
	w.wantLyricConverged()

	w.lyric.DropOrganization("O2") // few enough documents of the whole repository
	counted(t, w.run("", "", core.JobSucceeded), map[string]int64{"totals.indexed": 113, "organizations.#": 2})
	w.wantLyricConverged()

	for _, id := range one[7:40] {
		w.lyric.Remove(id)
	}
	for _, id := range three { // an organization without data is one of no records
		w.lyric.Remove(id)
	}
	for _, scope := range []string{"O1", "O3", ""} {
		job := w.run(scope, "", core.JobPartial)
		counted(t, job, map[string]int64{"totals.removed": 0})
		if job.Get("error.code").String() != core.JobErrorPruneGuard ||
			!strings.Contains(job.Get("error.message").String(), "nothing was removed") {
			t.Errorf("the guard's word for %q: %s", scope, job.Get("error").Raw)
		}
		if n := len(w.lyricDocuments()); n != 73+40 {
			t.Errorf("%d documents after a guarded run of %q, want 113", n, scope)
		}
	}
	counted(t, w.run("O3", "?force=true", core.JobSucceeded), map[string]int64{
		"totals.removed": 40, "totals.expected": 0, "totals.fetched": 0,
	})
	counted(t, w.run("", "?force=true", core.JobSucceeded), map[string]int64{"totals.indexed": 40, "totals.expected": 41})
	w.wantLyricConverged()
}

// TestLyricListShifts: a list that moves while it is read is read once more; one that keeps moving makes the run partial,
// and nothing is removed.
func TestLyricListShifts(t *testing.T) {
	t.Parallel()
	var shift atomic.Pointer[func(s *testkit.LyricServer, page int)]
	w := startWorld(t, tabular(settings{pageSize: 20, lyric: &testkit.LyricConfig{
		BeforePage: func(s *testkit.LyricServer, _ int, call testkit.LyricPageCall) {
			if do := shift.Load(); do != nil {
				(*do)(s, call.Page)
			}
		},
	}}))
	ids := w.addRecords("O1", 100)
	w.run("O1", "", core.JobSucceeded)
	pages := func() int {
		return len(slices.DeleteFunc(w.lyric.PageCalls(), func(c testkit.LyricPageCall) bool { return c.PageSize != 20 }))
	}
	before := pages()

	// One is removed and another added: neither the total nor the number of ids changes.
	fresh := dataset.GenerateRecords(4, "O1", 1)
	once := func(s *testkit.LyricServer, page int) {
		if page == 3 && s.Remove(ids[0]) {
			s.PutAll(fresh...)
		}
	}
	shift.Store(&once)
	for _, r := range dataset.GenerateRecords(3, "O1", 30) {
		w.lyric.PutAll(r) // new ones, so that one that is not read is missing
	}
	job := w.run("O1", "", core.JobSucceeded)
	// The record that went had been read before: the next run removes it.
	if fault := difference(w.lyricRecords(), w.lyricDocuments(), ids[0]); fault != "" {
		t.Error(fault)
	}
	counted(t, job, map[string]int64{"totals.expected": 130, "totals.fetched": 130, "totals.indexed": 130})
	if n := pages() - before; n < 13 || n > 15 {
		t.Errorf("%d pages were read, want 7 twice", n)
	}
	shift.Store(nil)
	w.run("O1", "", core.JobSucceeded)
	w.wantLyricConverged()

	w.lyric.Remove(ids[1])
	joined, more := dataset.GenerateRecords(2, "O1", 100), atomic.Int64{}
	always := func(s *testkit.LyricServer, _ int) { s.PutAll(joined[more.Add(1)]) }
	shift.Store(&always)
	for _, query := range []string{"", "?force=true"} {
		job = w.run("O1", query, core.JobPartial)
		if job.Get("error.code").String() != core.JobErrorListShifted || job.Get("organizations.0.error.message").String() !=
			"the list moved or repeated rows while it was read, and again when it was reread" {
			t.Errorf("the run's error: %s", job.Raw)
		}
		counted(t, job, map[string]int64{"totals.removed": 0})
	}
	shift.Store(nil)
	if _, held := w.lyricDocuments()[ids[1]]; !held {
		t.Error("a run over a list that kept moving removed a document")
	}
	w.run("O1", "", core.JobSucceeded)
	w.wantLyricConverged()
}

// TestLyricRefuses: an error that is not Lyric's answer for no data ends the job as failed and removes nothing.
func TestLyricRefuses(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{pageSize: 20, repository: "upstream: {giveUpAfter: 1ms}"}))
	ids := w.addRecords("O1", 50)
	w.addRecords("O2", 30)
	w.run("", "", core.JobSucceeded)
	w.wantLyricConverged()
	full := w.lyricDocuments()
	w.lyric.Remove(ids[0])
	const html = "<html><body>404 page not found</body></html>"
	const words = `{"error":"Not Found","message":"Category '1' not found"}`
	for _, tc := range []struct {
		name, path, scope string
		status            int
		contentType, body string
		message           string
	}{
		{"no such category", "^/category/1$", "", 404, "application/json", words, "no such category"},
		{"a proxy's 404 for the category", "^/category/1$", "", 404, "text/html", html, "status 404"},
		{"no such category for a page", "/organization/", "", 404, "application/json", words, "no such category"},
		{"no such category for an organization", "/organization/O1", "O1", 404, "application/json", words, "no such category"},
		{"a proxy's 404 for a later page", "page=2&", "O1", 404, "text/html", html, "page 1 (rows from 20)"},
		{"forbidden", "/organization/", "", 403, "application/json", `{}`, "status 403"},
	} {
		w.lyric.Fail(testkit.Fault{
			Path: regexp.MustCompile(tc.path), Status: tc.status, ContentType: tc.contentType, Body: tc.body,
		})
		job := w.run(tc.scope, "?force=true", core.JobFailed)
		if text := job.Get("error.message").String(); !strings.Contains(text, tc.message) {
			t.Errorf("%s: the job does not say %q: %s", tc.name, tc.message, job.Raw)
		}
		counted(t, job, map[string]int64{"totals.removed": 0})
		w.lyric.ClearFaults()
		if fault := difference(full, w.lyricDocuments()); fault != "" {
			t.Errorf("%s: %s", tc.name, fault)
		}
	}

	// A single record: a dead letter, and the document stays. A proxy's 404 is retried before.
	w.lyric.Fail(testkit.Fault{
		Path: regexp.MustCompile("/id/"), Times: 2, Status: http.StatusNotFound, ContentType: "text/html", Body: html,
	})
	w.lyric.Fail(testkit.Fault{Path: regexp.MustCompile("/id/"), Status: http.StatusForbidden, Body: `{}`})
	w.trigger("O1", ids[0])
	w.eventually(wait, func() (bool, string) {
		letter := w.deadLettersByRecord()[ids[0]]
		return letter.Reason == core.ReasonUpstream && strings.Contains(letter.Hint, "status 403") && letter.Attempts >= 3,
			fmt.Sprintf("%+v", letter)
	})
	if fault := difference(full, w.lyricDocuments()); fault != "" {
		t.Error(fault)
	}
	w.lyric.ClearFaults()
	w.run("", "", core.JobSucceeded)
	w.wantLyricConverged()
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("the sweep's own question left the letter: %+v", letters)
	}
}

// TestLyricPageSizeCapped: the list of a server that caps its pages is read in smaller ones, each record once.
func TestLyricPageSizeCapped(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{pageSize: 30, lyric: &testkit.LyricConfig{MaxPageSize: 20}}))
	w.addRecords("O1", 370)
	job := w.run("", "", core.JobSucceeded)
	counted(t, job, map[string]int64{"totals.expected": 370, "totals.fetched": 370, "totals.indexed": 370})
	w.wantLyricConverged()
	if text := strings.Join(w.logs.all(), ""); !strings.Contains(text, "a page of 20 records instead of 30") {
		t.Errorf("the log does not contain the reason: %s", text)
	}
}

// TestLyricKilled: a process that is killed in the middle of a run over a tabular repository continues after its next start.
func TestLyricKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tabular(settings{pageSize: 20, batchBytes: 32 << 10, concurrency: 2}))
	ids := w.addRecords("O1", 300)
	w.addRecords("O2", 100)
	process := w.startChild()
	w.run("", "", core.JobSucceeded)
	for _, id := range ids[:5] {
		w.lyric.Remove(id)
	}
	w.lyric.SetValid(ids[5], false)
	read := w.lyric.Requests(testkit.LyricRoutePage)
	release := make(chan struct{})
	w.lyric.Fail(testkit.Fault{Path: regexp.MustCompile("O1.*page=9&"), Times: 1, Release: release})
	job := w.startRun("", "")
	w.eventually(wait, func() (bool, string) {
		n := w.lyric.Requests(testkit.LyricRoutePage) - read
		return n >= 9, fmt.Sprintf("%d pages read", n)
	})
	if !w.tryPost(recordPath("O1", ids[6])) {
		t.Error("the process did not take a trigger")
	}
	if state := w.job(job).Get("state").String(); state != string(core.JobRunning) {
		t.Fatalf("the job is %s, so nothing is in its middle", state)
	}
	process.kill()
	close(release)
	w.start()
	if j := w.awaitJob(job); j.Get("state").String() != string(core.JobSucceeded) {
		t.Errorf("the job ended %s", j.Raw)
	}
	w.awaitLyricConverged()
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// TestLyricTwoShare: two processes share the pages of a tabular repository; one of them is stopped in the middle, and
// everything arrives.
func TestLyricTwoShare(t *testing.T) {
	t.Parallel()
	p := startPair(t, tabular(settings{pageSize: 10}))
	for i := range 6 {
		p.addRecords(fmt.Sprintf("O%d", i), 120)
	}
	job := p.startRun("", "")
	for id := range maps.Keys(p.lyricRecords()) {
		r, _ := p.lyric.Record(id)
		p.trigger(r.Organization, id)
		if p.wrote(p.app) > 0 && p.wrote(p.second) > 0 {
			break
		}
	}
	p.eventually(wait, func() (bool, string) {
		one, two := p.wrote(p.app), p.wrote(p.second)
		return one > 0 && two > 0, fmt.Sprintf("one wrote %d, the other %d", one, two)
	})
	if err := p.second.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("stopping the second app: %v", err)
	}
	j := p.awaitJob(job)
	if j.Get("state").String() != string(core.JobSucceeded) {
		t.Errorf("job %s", j.Raw)
	}
	counted(t, j, map[string]int64{"totals.expected": 720, "organizations.#": 6})
	p.awaitLyricConverged()
	if letters := p.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
	var names []string
	for _, row := range j.Get("organizations").Array() {
		names = append(names, row.Get("organization").String())
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"O0", "O1", "O2", "O3", "O4", "O5"}, names); diff != "" {
		t.Errorf("organizations of the job (-want +got):\n%s", diff)
	}
}
