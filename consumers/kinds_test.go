package consumers_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tutti/consumers"
	"tutti/internal/core"
	"tutti/internal/index/kinds"
)

// counting makes processes count the JSON kinds of records.
func (w *world) counting(most int) {
	w.kinds = func() consumers.KindCounter { return kinds.NewCounter(nil, most) }
}

// keptKinds returns what is kept for the next rebuild.
func (w *world) keptKinds() core.Kinds {
	w.t.Helper()
	c, ok := w.store.get(cellKey(consumers.KindsCell("", "song", "analyses")))
	fields := strings.Fields(string(c.value))
	if !ok || len(fields) < 2 {
		w.t.Fatalf("nothing is kept: %q", c.value)
	}
	if len(fields) == 2 {
		return nil
	}
	kept, err := base64.StdEncoding.DecodeString(fields[2])
	if err != nil {
		w.t.Fatal(err)
	}
	return kept
}

// wantCounted fails unless every record was counted once.
func (w *world) wantCounted(kept core.Kinds, records int64) {
	w.t.Helper()
	if !kept.Whole() || kept.Records() != records || kept.Documents() != records {
		w.t.Errorf("%d records with %d documents were counted, want %d; whole: %t", kept.Records(), kept.Documents(), records, kept.Whole())
	}
	var paths []string
	for path, p := range kept.All() {
		paths = append(paths, path)
		for _, n := range []*int64{&p.Lists, &p.Undated, &p.NoDate} { // of pages, of which there are any number
			*n = min(*n, 1)
		}
		want := core.PathKinds{Texts: records, Undated: 1, NoDate: 1}
		switch path {
		case "rev":
			want = core.PathKinds{Numbers: records}
		case "repositories":
			want = core.PathKinds{Objects: records, Lists: 1}
		}
		if p != want {
			w.t.Errorf("%s: %+v, want %+v", path, p, want)
		}
	}
	if want := []string{"analysisId", "analysisState", "repositories", "repositories.code", "rev", "studyId"}; !slices.Equal(paths, want) {
		w.t.Errorf("the paths are %v, want %v", paths, want)
	}
}

// TestKindsAreCountedOnce: wherever a process ends, and with several processes, every record of a run counts once, also of many organizations
// that are stored in groups. Nothing of it stays with the organizations.
func TestKindsAreCountedOnce(t *testing.T) {
	for _, processes := range []int{1, 3} {
		for _, steps := range []int64{-1, 5, 20, 40, 60, 90, 130, 200, 300} {
			for name, fill := range map[string]func(w *world) int64{
				"pages": func(w *world) int64 {
					w.pageSize = 7
					w.upstream.fill("A", 60)
					w.upstream.fill("B", 3)
					return 63
				},
				"groups": func(w *world) int64 { return fillMany(w, 70, 3, 40, 69) },
				"non-overlapping": func(w *world) int64 {
					w.pageSize, w.upstream.nonOverlapping = 7, true
					w.upstream.fill("A", 60)
					return 60
				},
			} {
				t.Run(fmt.Sprint(name, " ", processes, " ", steps), func(t *testing.T) {
					in(t, func(t *testing.T, w *world) {
						w.counting(core.MaxKindsBytes)
						w.broker.ackWait = 3 * time.Second
						records := fill(w)
						for range processes {
							w.boot(steps)
						}
						id := w.run("", false)
						if steps >= 0 {
							w.boot(-1)
						}
						w.ended(w.job(id), core.JobSucceeded, "")
						w.wantCounted(w.keptKinds(), records)
						runs, err := w.store.runs(id)
						if err != nil {
							t.Fatal(err)
						}
						for _, run := range runs {
							if len(run.Kinds)+len(run.AheadKinds) > 0 && !run.InGroup {
								t.Errorf("%s still has its kinds", run.Organization)
							}
						}
					})
				})
			}
		}
	}
}

// TestKindsOverflow: records with too many fields end no run, and a rebuild then reads them once more.
func TestKindsOverflow(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.counting(20)
		w.upstream.fill("A", 30)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		if w.keptKinds().Whole() {
			t.Error("the kinds of all fields are kept")
		}
	})
}

// countedRebuild is a filledRebuild that decides by the kinds of the records.
type countedRebuild struct {
	filledRebuild
	begun *core.Kinds
}

func (r countedRebuild) Begin(ctx context.Context, _ string, counts consumers.Counts) (err error) {
	*r.begun, err = counts(ctx, func(counts core.Kinds, gone int64) string { return kinds.Uncertain(counts, gone, kinds.Given{}) })
	return err
}

// TestRebuildReadsOnceMore: a rebuild decides from what the last run counted and from the records that have changed since. Without that, or if
// what they replace may decide, it reads all records before its first page, over failures of the repository, and the job says why.
func TestRebuildReadsOnceMore(t *testing.T) {
	const records = 40
	for name, c := range map[string]struct {
		before func(w *world)
		during func(w *world)
		note   string
		more   int64 // counted kinds of records beside those that the list has: what changed records were
	}{
		"no run": {before: func(*world) {}, note: "no run has counted the JSON kinds of its records"},
		"a run":  {before: func(w *world) { w.ended(w.job(w.run("", false)), core.JobSucceeded, "") }},
		"a run of the difference": {before: func(w *world) {
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			w.difference = true
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		}},
		"a run of an organization": {before: func(w *world) { w.ended(w.job(w.run("A", false)), core.JobSucceeded, "") }, note: "no run has counted"},
		"changed": {before: func(w *world) {
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			w.index("A", "A-0001")
			w.idle()
		}, more: 1},
		"added": {before: func(w *world) {
			w.upstream.drop("A", 0, 5)
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			w.upstream.change("A", func(l []record) []record {
				for i := range 5 {
					l = append(l, record{id: fmt.Sprintf("A-%04d", i), org: "A", state: published})
				}
				return l
			})
			w.indexAll("A-0000", "A-0001", "A-0002", "A-0003", "A-0004")
			w.idle()
		}},
		"many changed": {before: func(w *world) {
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			for i := range 35 {
				w.index("A", fmt.Sprintf("A-%04d", i))
			}
			w.idle()
		}, note: "records have changed since the last run: 35 are no longer as they were counted, which may decide the type of \"analysisId\""},
		"a request waits": {before: func(w *world) {
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			var read atomic.Int64
			pages := len(w.upstream.pageCalls())
			w.upstream.onRecord = func(context.Context, string, string) error {
				if read.Add(1) == 1 { // the rebuild reads the record by itself while its Request waits
					eventually(w.t, "the first page", func() bool { return len(w.upstream.pageCalls()) > pages })
				}
				return nil
			}
			w.index("A", "A-0001")
			eventually(w.t, "the request", func() bool { return w.upstream.requestsFor("A-0001") > 0 })
		}, more: 1},
		"rejected": {before: func(w *world) {
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			w.engine.item = func(string, core.WriteOp, []byte) (core.Result, bool) {
				return core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception"}, true
			}
			w.index("A", "A-0001")
			w.idle()
			w.engine.item = nil
		}, more: 1},
		"removed": {before: func(w *world) {
			w.upstream.fill("C", 1)
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			w.upstream.drop("C", 0, 1)
			w.remove("C", "C-0000")
			w.idle()
		}, more: 1},
		"swept": {before: func(w *world) {
			w.upstream.fill("C", 1)
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			w.upstream.drop("C", 0, 1)
			w.ended(w.job(w.run("C", true)), core.JobSucceeded, "")
		}, more: 1},
		"removed during the run": {before: func(w *world) {
			w.upstream.fill("C", 15)
			removed := false
			w.upstream.onPage = func(_ context.Context, call pageCall) error {
				if call.org == "C" && call.offset > 7 && !removed {
					removed = true
					w.upstream.drop("C", 0, 15)
					for i := range 15 {
						w.remove("C", fmt.Sprintf("C-%04d", i))
					}
					eventually(w.t, "the removals", func() bool { return !strings.Contains(fmt.Sprint(w.engine.live()), "C-") })
				}
				return nil
			}
			w.await(w.run("", false))
			w.idle()
			if !removed {
				w.t.Fatal("nothing was removed")
			}
		}, note: "records have changed since the last run: "},
		"documents that were not counted stay": {before: func(w *world) {
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			all := slices.Clone(w.upstream.lists["A"])
			w.upstream.drop("A", 0, 15)
			w.ended(w.job(w.run("", false)), core.JobPartial, core.JobErrorPruneGuard)
			w.upstream.change("A", func([]record) []record { return all })
		}, note: "the last run that counted the JSON kinds left documents that it had not counted"},
		"counted by a release with the encoding before": {before: func(w *world) {
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			key := cellKey(consumers.KindsCell("", "song", "analyses"))
			c, _ := w.store.get(key)
			fields := strings.Fields(string(c.value))
			fields[2] = base64.StdEncoding.EncodeToString([]byte("\x01\x28\x00\x03rev\x02\x28"))
			if err := w.store.set(key, c.revision, []byte(strings.Join(fields, " "))); err != nil {
				w.t.Fatal(err)
			}
		}, note: "the last run could not count the JSON kinds of all records"},
		"too many fields": {before: func(w *world) {
			w.counting(20)
			p := w.boot(-1)
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			_ = p
		}, note: "could not count"},
		"failures": {before: func(*world) {}, during: func(w *world) {
			w.upstream.cut = func(c pageCall) int {
				if c.n%3 == 0 {
					return 2
				}
				return -1
			}
		}, note: "no run has counted the JSON kinds of its records"},
		"pages that are too large": {before: func(*world) {}, during: func(w *world) {
			w.upstream.refusing(3, largePageErrors()["413"], nil)
		}, note: "no run has counted the JSON kinds of its records"},
		"large pages that are cut short": {before: func(*world) {}, during: func(w *world) {
			w.upstream.cut = func(c pageCall) int {
				if c.limit > 3 {
					return 2
				}
				return -1
			}
		}, note: "no run has counted the JSON kinds of its records"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.pageSize = 7
				w.upstream.fill("A", records-5)
				w.upstream.fill("B", 5)
				w.counting(core.MaxKindsBytes)
				w.engine.next = newEngine()
				finished, begun := false, core.Kinds(nil)
				w.rebuild = countedRebuild{filledRebuild{finished: &finished, check: func() {}}, &begun}
				if name != "too many fields" {
					w.boot(-1)
				}
				c.before(w)
				if name == "too many fields" {
					w.counting(core.MaxKindsBytes)
				}
				if c.during != nil {
					c.during(w)
				}
				job := w.job(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID)
				w.ended(job, core.JobSucceeded, "")
				if !strings.Contains(job.Note, c.note) || (job.Note == "") != (c.note == "") {
					t.Errorf("the note is %q, want %q", job.Note, c.note)
				}
				if name != "too many fields" { // whose counter is bounded for the reading as well
					w.wantCounted(begun, records+c.more)
					w.wantCounted(w.keptKinds(), records)
				} else if begun.Whole() {
					t.Error("too many fields were counted")
				}
				if !finished {
					t.Error("the index was not replaced")
				}
			})
		})
	}
}

// TestRebuildWithWaitingRequest: what a record was when it was counted does not decide while the Request for its change waits.
func TestRebuildWithWaitingRequest(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 40)
		w.upstream.edit("A", "A-0001", func(r *record) { r.v = "1" })
		w.counting(core.MaxKindsBytes)
		w.engine.next = newEngine()
		finished, begun := false, core.Kinds(nil)
		w.rebuild = countedRebuild{filledRebuild{finished: &finished, check: func() {}}, &begun}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.upstream.edit("A", "A-0001", func(r *record) { r.v, r.rev = `"x"`, r.rev+1 })
		var read atomic.Int64
		pages := len(w.upstream.pageCalls())
		w.upstream.onRecord = func(context.Context, string, string) error {
			if read.Add(1) == 1 { // the rebuild reads the record by itself while its Request waits
				eventually(w.t, "the first page", func() bool { return len(w.upstream.pageCalls()) > pages })
			}
			return nil
		}
		w.index("A", "A-0001")
		eventually(w.t, "the request", func() bool { return w.upstream.requestsFor("A-0001") > 0 })
		job := w.job(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID)
		w.ended(job, core.JobSucceeded, "")
		if !strings.Contains(job.Note, `1 are no longer as they were counted, which may decide the type of "v"`) {
			t.Errorf("the note is %q", job.Note)
		}
		for path, p := range begun.All() {
			if path == "v" && (p.Numbers != 0 || p.Texts != 1) {
				t.Errorf("%s: %+v", path, p)
			}
		}
	})
}

// TestRebuildReadsOnceMoreOverCrashes: a process that ends while it reads the records before a rebuild, or later, changes nothing of what is
// counted.
func TestRebuildReadsOnceMoreOverCrashes(t *testing.T) {
	for _, steps := range []int64{5, 10, 15, 20, 30, 40, 60, 90} {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.pageSize, w.broker.ackWait = 7, 3*time.Second
				w.upstream.fill("A", 40)
				w.counting(core.MaxKindsBytes)
				w.engine.next = newEngine()
				finished, begun := false, core.Kinds(nil)
				w.rebuild = countedRebuild{filledRebuild{finished: &finished, check: func() {}}, &begun}
				w.boot(steps)
				id := w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID
				w.boot(-1)
				w.ended(w.job(id), core.JobSucceeded, "")
				w.wantCounted(begun, 40)
				w.wantCounted(w.keptKinds(), 40)
			})
		})
	}
}
