package consumers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tutti/consumers"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
	protocol "tutti/internal/upstream"
	"tutti/internal/upstream/exclusion"
)

// exclude sets the rules of the processes that boot from now on, by their lists: records, organizations, and revisions, which are
// within a record's body.
func (w *world) exclude(ids map[string][]string) {
	w.rules = exclusion.New([]protocol.Exclusion{
		protocol.ByRecord("records", ""), protocol.ByOrganization(""), {List: "revisions", Path: "rev"},
	}, ids)
}

// documents counts the documents of a record, of an organization, or of all.
func (w *world) documents(prefix string) int {
	n := 0
	for id := range w.engine.live() {
		if strings.HasPrefix(id, prefix) {
			n++
		}
	}
	return n
}

// ids returns the ids of n records of an organization.
func ids(org string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%04d", org, i)
	}
	return all
}

// eachShape runs test in a world with one document for each record, and in one with three.
func eachShape(t *testing.T, test func(t *testing.T, w *world, each int)) {
	t.Helper()
	t.Parallel()
	t.Run("one document", func(t *testing.T) { in(t, func(t *testing.T, w *world) { test(t, w, 1) }) })
	t.Run("three documents", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.split = threeLess
			test(t, w, 3)
		})
	})
}

// TestExclusionRules: the run after rules were added removes the documents of all records that they exclude, however many, and the
// run after they were deleted indexes them.
func TestExclusionRules(t *testing.T) {
	eachShape(t, func(t *testing.T, w *world, each int) {
		w.upstream.fill("A", 50)
		w.upstream.fill("B", 30)
		w.upstream.fill("C", 3)
		all := w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		_ = all.stop(t, time.Minute)

		w.exclude(map[string][]string{"records": ids("A", 40), "organizations": {"B", "absent"}})
		some := w.boot(-1)
		job := w.job(w.run("", false))
		w.ended(job, core.JobSucceeded, "")
		want := core.Totals{Expected: 53, Fetched: 53, Indexed: int64(13 * each), Excluded: 40, Removed: int64(30 * each)}
		if job.Totals != want {
			t.Errorf("totals %+v, want %+v", job.Totals, want)
		}
		if got := w.documents(""); got != 13*each || w.documents("B") != 0 || w.documents("A-0039") != 0 {
			t.Errorf("%d documents, want %d", got, 13*each)
		}
		job = w.job(w.run("", false)) // again, with nothing left to remove
		w.ended(job, core.JobSucceeded, "")
		if want.Removed = 0; job.Totals != want {
			t.Errorf("totals %+v, want %+v", job.Totals, want)
		}
		_ = some.stop(t, time.Minute)

		w.exclude(nil)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		if got := w.documents(""); got != 83*each {
			t.Errorf("%d documents, want %d", got, 83*each)
		}
	})
}

// TestExcludedOrganizationsRun: a run of an excluded organization reads its list, and removes its documents without the guard, also
// those of records that the list no longer has.
func TestExcludedOrganizationsRun(t *testing.T) {
	eachShape(t, func(t *testing.T, w *world, each int) {
		w.upstream.fill("A", 50)
		p := w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		_ = p.stop(t, time.Minute)
		w.exclude(map[string][]string{"organizations": {"A"}})
		w.boot(-1)
		w.upstream.drop("A", 0, 20)
		job := w.job(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		want := core.Totals{Expected: 30, Fetched: 30, Excluded: 30, Removed: int64(20 * each)}
		if job.Totals != want || w.documents("") != 0 {
			t.Errorf("%d documents, totals %+v, want %+v", w.documents(""), job.Totals, want)
		}
	})
}

// TestExcludedRecordRequests: a trigger or notification of an excluded record, alone or among others, removes its documents and its
// dead letter, and counts it; one of a record that a rule began or ceased to apply to follows the rule.
func TestExcludedRecordRequests(t *testing.T) {
	eachShape(t, func(t *testing.T, w *world, each int) {
		registry := prometheus.NewRegistry()
		w.cfg.Metrics = consumers.NewMetrics(registry)
		w.upstream.fill("A", 4)
		p := w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		_ = p.stop(t, time.Minute)
		if err := w.store.Put(core.DeadLetter{Repository: "song", Organization: "A", RecordID: "A-0000", Reason: core.ReasonRejected}); err != nil {
			t.Fatal(err)
		}
		w.exclude(map[string][]string{"records": {"A-0000", "A-0001"}, "revisions": {"1"}})
		w.boot(-1)
		w.index("A", "A-0000")
		w.indexAll("A-0001", "A-0002", "A-0003")
		w.idle()
		if got := w.documents(""); got != 2*each || w.documents("A-0000")+w.documents("A-0001") != 0 {
			t.Errorf("%d documents, want those of the other two records", got)
		}
		if dead := w.store.dead(); len(dead) != 0 {
			t.Errorf("dead letters %v", dead)
		}
		w.upstream.edit("A", "A-0002", func(r *record) { r.rev = 1 })
		w.index("A", "A-0002")
		w.idle()
		if w.documents("A-0002") != 0 {
			t.Error("a record remained when it got an excluded revision")
		}
		counted := func() int {
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					for _, l := range m.GetLabel() {
						if l.GetValue() == "excluded" {
							return int(m.GetCounter().GetValue())
						}
					}
				}
			}
			return 0
		}
		if n := counted(); n != 3 {
			t.Errorf("%d records counted as excluded, want 3", n)
		}
		w.upstream.edit("A", "A-0002", func(r *record) { r.rev = 2 })
		w.index("A", "A-0002")
		w.idle()
		if w.documents("A-0002") == 0 {
			t.Error("the record is missing after it lost the excluded revision")
		}
	})
}

// TestExcludedLetterOfARun: a run clears the dead letters of the records that are excluded since.
func TestExcludedLetterOfARun(t *testing.T) {
	eachShape(t, func(t *testing.T, w *world, _ int) {
		w.upstream.fill("A", 30)
		w.engine.rejecting(func(id string) bool { return strings.HasPrefix(id, "A-0007") })
		p := w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobPartial, core.JobErrorRecordsRejected)
		if len(w.store.dead()) == 0 {
			t.Fatal("no dead letter")
		}
		_ = p.stop(t, time.Minute)
		w.exclude(map[string][]string{"records": {"A-0007"}})
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		if dead := w.store.dead(); len(dead) != 0 {
			t.Errorf("dead letters %v", dead)
		}
	})
}

// TestExcludedIDs: the excluded ids of a list have that outcome, and lose their documents and dead letters.
func TestExcludedIDs(t *testing.T) {
	eachShape(t, func(t *testing.T, w *world, each int) {
		w.upstream.fill("A", 4)
		w.upstream.fill("B", 2)
		p := w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		_ = p.stop(t, time.Minute)
		if err := w.store.Put(core.DeadLetter{Repository: "song", Organization: "A", RecordID: "A-0000", Reason: core.ReasonRejected}); err != nil {
			t.Fatal(err)
		}
		w.exclude(map[string][]string{"records": {"A-0000"}, "revisions": {"7"}, "organizations": {"B"}})
		w.upstream.edit("A", "A-0001", func(r *record) { r.rev = 7 })
		w.boot(-1)
		job := w.indexList(idlist.List{Organization: "A", IDs: ids("A", 3)}, idlist.List{Organization: "B", IDs: ids("B", 1)})
		ended := w.job(job)
		w.ended(ended, core.JobSucceeded, "")
		if want := (core.Totals{Expected: 4, Fetched: 4, Indexed: 1, Excluded: 3}); ended.Totals != want {
			t.Errorf("totals %+v, want %+v", ended.Totals, want)
		}
		want := map[string]idlist.Outcome{"A-0000": idlist.Excluded, "A-0001": idlist.Excluded, "A-0002": idlist.Indexed}
		if diff := cmp.Diff(want, w.outcomes(job, "A")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]idlist.Outcome{"B-0000": idlist.Excluded}, w.outcomes(job, "B")); diff != "" {
			t.Error(diff)
		}
		for record, documents := range map[string]int{"A-0000": 0, "A-0001": 0, "A-0002": each, "A-0003": each, "B-0000": 0, "B-0001": each} {
			if got := w.documents(record); got != documents {
				t.Errorf("%s has %d documents, want %d", record, got, documents)
			}
		}
		if dead := w.store.dead(); len(dead) != 0 {
			t.Errorf("dead letters %v", dead)
		}
	})
}

// TestExcludedDifference: a run of the difference, as reconcile starts it, removes the documents of the records and organizations that
// are excluded since, without the guard, and writes no others.
func TestExcludedDifference(t *testing.T) {
	eachShape(t, func(t *testing.T, w *world, each int) {
		w.upstream.fill("A", 20)
		w.upstream.fill("B", 5)
		p := w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		_ = p.stop(t, time.Minute)
		w.exclude(map[string][]string{"records": ids("A", 15), "organizations": {"B"}})
		w.difference = true
		w.boot(-1)
		for range 2 { // the second one has nothing to remove
			job := w.job(w.run("", false))
			w.ended(job, core.JobSucceeded, "")
			if job.Totals.Expected != 20 || job.Totals.Excluded != 15 {
				t.Errorf("totals %+v", job.Totals)
			}
			if each == 1 && (job.Totals.Indexed != 0 || job.Totals.Drift.Unchanged != 5) { // documents of records with several are all written
				t.Errorf("totals %+v", job.Totals)
			}
			if got := w.documents(""); got != 5*each || w.documents("B") != 0 || w.documents("A-0014") != 0 {
				t.Errorf("%d documents, want %d", got, 5*each)
			}
		}
	})
}

// TestExcludedSweep: a sweep removes the documents of an excluded record that the list of its organization does not have.
func TestExcludedSweep(t *testing.T) {
	eachShape(t, func(t *testing.T, w *world, each int) {
		w.upstream.fill("A", 30)
		p := w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		_ = p.stop(t, time.Minute)
		w.exclude(map[string][]string{"records": {"A-0007"}})
		w.upstream.drop("A", 7, 8)
		w.upstream.unlisted = "A-0007"
		w.boot(-1)
		job := w.job(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		if w.documents("A-0007") != 0 || w.documents("") != 29*each || w.upstream.requestsFor("A-0007") == 0 {
			t.Errorf("%d documents, %d of the excluded record, which was read %d times", w.documents(""), w.documents("A-0007"), w.upstream.requestsFor("A-0007"))
		}
	})
}

// TestExcludedLargeRecord: a record over the size limit that is excluded by its id is no dead letter.
func TestExcludedLargeRecord(t *testing.T) {
	eachShape(t, func(t *testing.T, w *world, each int) {
		w.upstream.fill("A", 3)
		w.upstream.limit = 1000
		w.upstream.edit("A", "A-0001", func(r *record) { r.pad = 2000 })
		w.exclude(map[string][]string{"records": {"A-0001"}})
		w.boot(-1)
		w.index("A", "A-0001")
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		if got := w.documents(""); got != 2*each || len(w.store.dead()) != 0 {
			t.Errorf("%d documents, dead letters %v", got, w.store.dead())
		}
	})
}
