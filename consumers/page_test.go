package consumers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tutti/consumers"
	"tutti/internal/core"
)

func TestRunReadsEveryPageOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 500)
		w.boot(-1)
		job := w.job(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		w.verify()
		if got := len(w.upstream.pageCalls()); got != 6 { // they overlap by a row
			t.Errorf("%d pages were read", got)
		}
		if want := (core.Totals{Expected: 500, Fetched: 500, Indexed: 500}); job.Totals != want {
			t.Errorf("totals %+v", job.Totals)
		}
		if job.StartedAt == nil || job.Scope != core.ScopeOrganization || job.Cause != core.CauseREST || job.IndexName != "analyses" {
			t.Errorf("job %+v", job)
		}
		if n := w.upstream.requestsFor(""); n != 0 {
			t.Errorf("%d records were asked for by themselves", n)
		}
	})
}

func TestSmallLists(t *testing.T) {
	for _, n := range []int{0, 1, 2, 99, 100, 101, 199, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", n)
				w.boot(-1)
				job := w.job(w.run("A", false))
				w.ended(job, core.JobSucceeded, "")
				w.verify()
				if job.Totals.Indexed != int64(n) || job.Totals.Expected != int64(n) {
					t.Errorf("totals %+v", job.Totals)
				}
			})
		})
	}
}

func TestPageFails(t *testing.T) {
	failing := func(times int, err error) func(context.Context, pageCall) error {
		return func(_ context.Context, c pageCall) error {
			if c.offset == 297 && times > 0 {
				times--
				return err
			}
			return nil
		}
	}
	refused := core.NewError(core.CodeUpstream, "the repository answered 400")
	tests := []struct {
		name  string
		times int
		err   error
		state core.JobState
		code  string
		pages int
	}{
		{"once", 1, unavailable("the repository answered 500"), core.JobSucceeded, "", 7},
		{"four times", 4, unavailable("the repository answered 500"), core.JobSucceeded, "", 25},
		{"always", 1000, unavailable("the repository answered 500"), core.JobFailed, "unavailable", 15},
		{"for good", 1000, refused, core.JobFailed, "upstream_error", 4},
		{"a foreign 404 once", 1, errForeignNotFound, core.JobSucceeded, "", 7},
		{"a foreign 404 always", 1000, errForeignNotFound, core.JobFailed, "upstream_error", 8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 500)
				w.seed("A", 1)
				w.upstream.onPage = failing(tt.times, tt.err)
				w.boot(-1)
				job := w.job(w.run("A", false))
				w.ended(job, tt.state, tt.code)
				if got := len(w.upstream.pageCalls()); got != tt.pages {
					t.Errorf("%d pages were asked for, want %d", got, tt.pages)
				}
				if tt.state == core.JobSucceeded {
					w.verify()
					return
				}
				if !has(job.Error.Message, "page 3", "297", core.MessageOf(tt.err)) {
					t.Errorf("message %q", job.Error.Message)
				}
				if _, kept := w.engine.live()["A-old-0000"]; !kept || job.Totals.Removed != 0 || w.upstream.requestsFor("") != 0 {
					t.Error("a run that could not be read has swept")
				}
			})
		})
	}
}

func TestCutPageIsReread(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 250)
		w.upstream.cut = func(c pageCall) int {
			if c.n == 2 {
				return 30
			}
			return -1
		}
		w.boot(-1)
		job := w.job(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		w.verify()
		if job.Totals.Indexed != 250 || job.Totals.Fetched != 250 {
			t.Errorf("totals %+v", job.Totals)
		}
	})
}

func TestRetryAfterIsKept(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 10)
		var at []time.Time
		w.upstream.onPage = func(context.Context, pageCall) error {
			if at = append(at, time.Now()); len(at) == 1 {
				return &core.Error{Code: core.CodeOverloaded, Message: "slow down", RetryAfter: 7 * time.Second}
			}
			return nil
		}
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		if waited := at[1].Sub(at[0]); waited < 7*time.Second || waited > 8*time.Second {
			t.Errorf("waited %s", waited)
		}
	})
}

// TestListShifts removes and adds rows while the list is read: whatever is in the list all the time must be indexed.
func TestListShifts(t *testing.T) {
	insert := func(n int) func(*upstream) {
		return func(u *upstream) {
			u.change("A", func(l []record) []record {
				for i := range n {
					l = slices.Insert(l, 0, record{id: fmt.Sprintf("new-%d", i), org: "A", state: published})
				}
				return l
			})
		}
	}
	drop := func(from, to int) func(*upstream) { return func(u *upstream) { u.drop("A", from, to) } }
	tests := []struct {
		name   string
		before int // the page call before which the list changes
		change func(*upstream)
	}{
		{"1 row gone above", 3, drop(0, 1)},
		{"1 row gone above the last page", 6, drop(0, 1)},
		{"30 rows gone above", 4, drop(5, 35)},
		{"64 rows gone above", 4, drop(5, 69)},
		{"99 rows gone above", 4, drop(0, 99)},
		{"100 rows gone above", 4, drop(0, 100)},
		{"250 rows gone above", 4, drop(0, 250)},
		{"296 rows gone above", 5, drop(0, 296)},
		{"all that was read gone", 4, drop(0, 298)},
		{"the overlapping row gone", 2, drop(99, 100)},
		{"the rows around the cursor gone", 3, drop(150, 250)},
		{"rows gone below", 2, drop(300, 400)},
		{"the rest gone", 3, drop(150, 500)},
		{"all gone", 3, drop(0, 500)},
		{"1 row added above", 3, insert(1)},
		{"70 rows added above", 3, insert(70)},
		{"300 rows added above", 3, insert(300)},
		{"as many added as gone", 4, func(u *upstream) { drop(50, 80)(u); insert(30)(u) }},
		{"more gone than added", 4, func(u *upstream) { drop(50, 80)(u); insert(3)(u) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 500)
				w.upstream.onPage = func(_ context.Context, c pageCall) error {
					if c.n == tt.before {
						tt.change(w.upstream)
					}
					return nil
				}
				w.boot(-1)
				job := w.job(w.run("A", false))
				w.ended(job, core.JobSucceeded, "")
				got := w.engine.live()
				for id := range w.upstream.model() {
					if _, ok := got[id]; !ok && !strings.HasPrefix(id, "new") {
						t.Errorf("%s is missing", id)
					}
				}
				if n := len(w.upstream.pageCalls()); n > 14 {
					t.Errorf("%d pages were read", n)
				}
			})
		})
	}
}

func TestListThatShiftsForEver(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.pageSize = 10
		w.upstream.fill("A", 1200)
		w.seed("A", 1)
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.offset > 0 { // what was at the cursor has gone whenever one looks
				w.upstream.drop("A", 0, min(c.offset, 8))
				w.upstream.change("A", func(l []record) []record {
					for i := range 8 {
						l = append(l, record{id: fmt.Sprintf("%d-%d", c.n, i), org: "A", state: published})
					}
					return l
				})
			}
			return nil
		}
		w.boot(-1)
		job := w.job(w.run("A", false))
		w.ended(job, core.JobPartial, core.JobErrorListShifted)
		if _, kept := w.engine.live()["A-old-0000"]; !kept || w.upstream.requestsFor("") != 0 {
			t.Error("a list that shifted was swept")
		}
	})
}

func TestRejectedDocuments(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 500)
		bad := func(id string) bool { return strings.HasSuffix(id, "50") }
		w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) {
			return core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception", Reason: "no such number", Hint: "write a number"}, bad(id)
		}
		w.boot(-1)
		job := w.job(w.run("A", false))
		w.ended(job, core.JobPartial, core.JobErrorRecordsRejected)
		if want := (core.Totals{Expected: 500, Fetched: 500, Indexed: 495, Rejected: 5}); job.Totals != want {
			t.Errorf("totals %+v", job.Totals)
		}
		want := w.upstream.model()
		letters := w.store.dead()
		for id := range want {
			if !bad(id) {
				continue
			}
			d, ok := letters[id]
			if !ok || d.Reason != core.ReasonRejected || d.EngineType != "document_parsing_exception" ||
				d.EngineReason != "no such number" || string(d.Document) != want[id] || d.JobID != job.ID ||
				d.Request == nil || d.Request.Scope != core.ScopeRecord || d.Request.RecordID != id || d.Hint != "write a number" || d.FirstAt.IsZero() {
				t.Errorf("dead letter of %s: %+v", id, d)
			}
			delete(want, id)
		}
		if len(letters) != 5 {
			t.Errorf("%d dead letters", len(letters))
		}
		w.same(want)

		w.engine.item = nil // fixed: the next run clears them
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.verify()
		if n := len(w.store.dead()); n != 0 {
			t.Errorf("%d dead letters are left", n)
		}
	})
}

func TestBadIDsOnAPage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 150)
		bad := []string{"", strings.Repeat("x", 513), "a\xffb", ""}
		w.upstream.change("A", func(l []record) []record {
			for i, id := range bad {
				l[i*40+1] = record{id: id, org: "A", state: published, rev: i}
			}
			return l
		})
		// The page is reread because the index refuses one of its documents for a while: nothing counts twice.
		refused := 0
		w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) {
			if id == "A-0003" && refused < 2 {
				refused++
				return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeUnavailable}, true
			}
			return core.Result{}, false
		}
		w.boot(-1)
		job := w.job(w.run("A", false))
		w.ended(job, core.JobPartial, core.JobErrorRecordsRejected)
		w.verify()
		if job.Totals.Rejected != 4 || job.Totals.Indexed != 146 || job.Totals.Fetched != 150 {
			t.Errorf("totals %+v", job.Totals)
		}
		if n := len(w.broker.published(core.ScopePage)); n != 2 {
			t.Errorf("%d pages were published", n)
		}
		letters := w.store.dead()
		if len(letters) != 4 {
			t.Errorf("%d dead letters", len(letters))
		}
		for id, d := range letters {
			if d.Reason != core.ReasonInvalidID || len(d.Document) == 0 || !strings.HasSuffix(d.Hint, "; fix the record's id at its repository") || id == "" {
				t.Errorf("%.20q: %+v", id, d)
			}
		}
		w.upstream.change("A", func(l []record) []record { // as the hints advise
			for i := range bad {
				l[i*40+1].id = fmt.Sprintf("fixed-%d", i)
			}
			return l
		})
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.verify()
	})
}

func TestRecordOfAnotherOrganizationOnAPage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 30)
		w.upstream.change("A", func(l []record) []record {
			l[7].org = "B"
			return l
		})
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		if _, written := w.engine.live()["A-0007"]; written {
			t.Error("a record of B was written under A")
		}
		w.verify()

		// A document that was written while the record was A's does not stay.
		w.upstream.fill("B", 0)
		w.upstream.change("B", func([]record) []record { return []record{{id: "A-0008", org: "B", state: "UNPUBLISHED"}} })
		w.upstream.change("A", func(l []record) []record {
			l[8].org = "B"
			return l
		})
		w.upstream.onRecord = func(context.Context, string, string) error { // until then the page shows it
			w.upstream.change("A", func(l []record) []record {
				return slices.DeleteFunc(l, func(r record) bool { return r.id == "A-0008" })
			})
			return nil
		}
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.verify()
	})
}

// TestIDThatLeavesThePage: an index does not take a document, and its row is not on the page any more when that is reread:
// it must be requested by itself.
func TestIDThatLeavesThePage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		refused := false
		w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) {
			if id == "A-0007" && !refused {
				refused = true
				w.upstream.edit("A", id, func(r *record) { r.state = "UNPUBLISHED" })
				return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeUnavailable}, true
			}
			return core.Result{}, false
		}
		w.engine.put("A-0007", 1, record{id: "A-0007", org: "A"}.document())
		w.boot(-1)
		job := w.job(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		w.verify()
		if n := len(w.upstream.pageCalls()); n != 2 {
			t.Errorf("the page was read %d times", n)
		}
		if n := w.upstream.requestsFor("A-0007"); n < 1 {
			t.Error("the record was not asked for by itself")
		}
		if n := w.upstream.requestsFor(""); n > 2 {
			t.Errorf("%d records were asked for", n)
		}
		if job.Totals.Retried != 1 {
			t.Errorf("totals %+v", job.Totals)
		}
	})
}

// TestPageThatCannotBeReread: its rows are known and were read, so they are requested one by one.
func TestPageThatCannotBeReread(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		w.engine.setDown(nil)
		refused := map[string]bool{}
		w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) {
			if id < "A-0003" && !refused[id] {
				refused[id] = true
				return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeUnavailable}, true
			}
			return core.Result{}, false
		}
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.n > 1 {
				return unavailable("the repository answered 500")
			}
			return nil
		}
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.verify()
		if n := w.upstream.requestsFor(""); n != 3 {
			t.Errorf("%d records were asked for", n)
		}
	})
}

// TestStubbornDocument: an engine returns an unknown error for one document forever. It must neither make the page be reread
// in a hot loop nor keep the job from ending.
func TestStubbornDocument(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.cfg = consumers.Config{RetryBase: time.Second, RetryMax: time.Minute}
		w.upstream.fill("A", 50)
		var mended atomic.Bool
		w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) {
			return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeUnavailable, Type: "some_new_exception"}, !mended.Load() && id == "A-0007"
		}
		w.boot(-1)
		began := time.Now()
		id := w.run("A", false)
		eventually(t, "the end of the job", func() bool {
			job, err := w.store.job(id)
			return err == nil && job.State.Final()
		})
		if n, took := len(w.upstream.pageCalls()), time.Since(began); n > 10 || took < time.Duration(n-1)*time.Second {
			t.Errorf("the page was read %d times in %s", n, took)
		}
		want := w.upstream.model()
		delete(want, "A-0007")
		w.same(want)
		if w.broker.size() != 1 {
			t.Errorf("on the queue: %s", w.broker)
		}
		mended.Store(true)
		w.idle()
		w.verify()
	})
}
