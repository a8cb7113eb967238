package consumers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
)

// rejecting makes an engine reject the documents that bad names, as a wrong mapping does.
func (e *engine) rejecting(bad func(id string) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.item = func(id string, op core.WriteOp, _ []byte) (core.Result, bool) {
		return core.Result{
			Outcome: core.OutcomeRejected, Type: "document_parsing_exception",
			Reason: "[1:214] failed to parse field [donor.age] of type [long] in document with id 'x'",
		}, op == core.OpIndex && bad(id)
	}
}

func all(string) bool { return true }

// wantPause waits for the pause of the one repository, and checks that its reason says what is wrong.
func wantPause(t *testing.T, p *process) {
	t.Helper()
	eventually(t, "the pause", func() bool {
		paused := p.c.Paused()
		return len(paused) == 1 && !paused[0].Index && has(paused[0].Reason, "document_parsing_exception", `"donor.age"`, "fix the index mapping")
	})
}

// TestNearlyAllRejectedPauses: a mapping that fits no document does not fill the disk. The repository pauses and says why, a
// few documents are tried from time to time, and once they are accepted all others are processed.
func TestNearlyAllRejectedPauses(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 2500)
		w.engine.rejecting(all)
		p := w.boot(-1)
		id := w.run("A", false)
		wantPause(t, p)
		if n := len(w.store.dead()); n >= 1000 {
			t.Errorf("%d dead letters before the pause", n)
		}
		before := len(w.store.dead())
		time.Sleep(50 * time.Second)
		if n := len(w.store.dead()); n != before || len(p.c.Paused()) != 1 {
			t.Errorf("%d dead letters were written while paused", n-before)
		}
		time.Sleep(time.Hour) // trials after 1, 2, 4 and 8 minutes, then every 10
		if n := len(w.store.dead()) - before; n == 0 || n > 8*20 {
			t.Errorf("trials of an hour left %d dead letters", n)
		}
		if job, err := w.store.job(id); err != nil || job.State != core.JobRunning {
			t.Fatalf("job %+v, %v", job, err)
		}
		w.engine.rejecting(func(string) bool { return false })
		kept := len(w.store.dead())
		within(t, time.Hour, "the end of the job", func() bool {
			job, err := w.store.job(id)
			return err == nil && job.State.Final()
		})
		w.idle()
		if len(p.c.Paused()) != 0 {
			t.Errorf("still paused: %v", p.c.Paused())
		}
		if got := len(w.engine.live()); got != 2500-kept {
			t.Errorf("%d documents and %d dead letters of 2500", got, kept)
		}
		if n := len(w.broker.published(core.ScopeRecord)); n != 0 {
			t.Errorf("%d records were asked for one by one", n)
		}
	})
}

// TestCancelEndsPausedPages: a job that is cancelled while its repository is paused writes no further document. Its pages
// end with the pause.
func TestCancelEndsPausedPages(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 2500)
		w.engine.rejecting(all)
		p := w.boot(-1)
		id := w.run("A", false)
		wantPause(t, p)
		if _, err := p.c.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		before := len(w.store.dead())
		time.Sleep(3 * time.Hour)
		if n := len(w.store.dead()) - before; n != 0 {
			t.Errorf("%d dead letters of a job that was cancelled", n)
		}
		if n := w.broker.size(); n != 0 || len(p.c.Paused()) != 0 {
			t.Errorf("%d messages wait, paused: %v", n, p.c.Paused())
		}
		job, err := w.store.job(id)
		if err != nil {
			t.Fatal(err)
		}
		w.ended(job, core.JobCancelled, core.JobErrorCancelled)
	})
}

// TestNearlyAllRecordsRejectedPauses: requests for single records and for batches of them wait in the queue as well.
func TestNearlyAllRecordsRejectedPauses(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 3000)
		w.engine.rejecting(all)
		p := w.boot(-1)
		for i := 0; i < 3000; i += 100 {
			ids := make([]string, 50)
			for j := range ids {
				ids[j] = fmt.Sprintf("A-%04d", i+j)
				w.index("A", fmt.Sprintf("A-%04d", i+50+j))
			}
			w.indexAll(ids...)
		}
		wantPause(t, p)
		time.Sleep(50 * time.Second)
		if n := len(w.store.dead()); n >= 1000 || w.broker.size() == 0 {
			t.Errorf("%d dead letters, %d messages wait", n, w.broker.size())
		}
		w.engine.rejecting(func(string) bool { return false })
		w.idle()
		if n := len(w.engine.live()) + len(w.store.dead()); n != 3000 {
			t.Errorf("%d documents and dead letters of 3000", n)
		}
	})
}

// TestManyRejectedDoNotPause: where some of the documents are accepted, the others become dead letters and block nothing.
func TestManyRejectedDoNotPause(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 3000)
		w.engine.rejecting(func(id string) bool { return !strings.HasSuffix(id, "0") })
		p := w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobPartial, core.JobErrorRecordsRejected)
		if n := len(w.store.dead()); n != 2700 || len(p.c.Paused()) != 0 {
			t.Errorf("%d dead letters, paused %v", n, p.c.Paused())
		}
	})
}

// TestRejectedAgainDoNotPause: retrying many dead letters in vain makes no new ones, and must not block other records.
func TestRejectedAgainDoNotPause(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1500)
		for id := range w.upstream.model() {
			if err := w.store.Put(core.DeadLetter{Repository: "song", Organization: "A", RecordID: id}); err != nil {
				t.Fatal(err)
			}
		}
		w.engine.rejecting(all)
		p := w.boot(-1)
		for id := range w.upstream.model() {
			w.index("A", id)
		}
		w.idle()
		if n := len(w.store.dead()); n != 1500 || len(p.c.Paused()) != 0 {
			t.Errorf("%d dead letters, paused %v", n, p.c.Paused())
		}
	})
}
