package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tutti/internal/app"
	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/testkit"
)

// externalQueue starts a NATS server that listens on TCP, as an external one, and returns its URL, for a user with only the documented rights.
func externalQueue(t *testing.T) string {
	t.Helper()
	url, _ := queuetest.Limited(t)
	return url
}

// pair is a world with a second tutti on the same queue and index.
type pair struct {
	*world
	second *app.App
}

func startPair(t *testing.T, set settings) pair {
	t.Helper()
	set.queueURL, set.faulty = externalQueue(t), true
	p := pair{world: startWorld(t, set)}
	p.second = p.secondProcess().newApp()
	if err := p.second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.second.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("stopping the second app: %v", err)
		}
	})
	return p
}

// wrote counts the documents that one of the two apps wrote.
func (p pair) wrote(a *app.App) int {
	p.t.Helper()
	own := *p.world
	own.app = a
	return own.outcomes(core.OutcomeIndexed)
}

// TestExternalQueue: everything works with an external queue.
func TestExternalQueue(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{queueURL: externalQueue(t)})
	ids := w.fill("S1", 250)
	w.run("", "", core.JobSucceeded)
	w.wantConverged()
	w.song.SetState(ids[0], "UNPUBLISHED")
	w.trigger("S1", ids[0])
	w.awaitConverged(wait)
	w.stop()
	w.put("S1", ids[1], "")
	w.start()
	w.trigger("S1", ids[1])
	w.awaitConverged(wait)
}

// TestTwoShare: two processes on one queue and one index share the work; one of them is stopped without time to end
// what it has in flight, and everything is indexed.
func TestTwoShare(t *testing.T) {
	t.Parallel()
	p := startPair(t, settings{pageSize: 20})
	for i := range 8 {
		p.fill(fmt.Sprintf("S%d", i), 250)
	}
	job := p.startRun("", "")
	for i := range 8 {
		for _, a := range p.song.Analyses(fmt.Sprintf("S%d", i))[:10] {
			p.trigger(a.Study, a.ID)
		}
	}
	p.eventually(wait, func() (bool, string) {
		one, two := p.wrote(p.app), p.wrote(p.second)
		return one > 0 && two > 0, fmt.Sprintf("one wrote %d, the other %d", one, two)
	})
	none, cancel := context.WithCancel(t.Context())
	cancel()
	_ = p.second.Stop(none) // says that there was no time
	if j := p.awaitJob(job); j.Get("state").String() != string(core.JobSucceeded) {
		t.Errorf("job %s", j.Raw)
	}
	p.awaitConverged(wait)
	t.Logf("one wrote %d, the other %d", p.wrote(p.app), p.wrote(p.second))
	if letters := p.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// TestLateWrite: the late write of a process with an older answer of the upstream, or an older Request, changes nothing after another
// process has done a newer Request of the record.
func TestLateWrite(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		before func(w *world, id string) // the request to the slow process
		change func(w *world, id string)
	}{
		{
			"an older body after a newer one", (*world).triggerS1,
			func(w *world, id string) {
				w.put("S1", id, fmt.Sprintf(`"experiment":{"number":%d}`, rand.Uint32()))
				w.trigger("S1", id)
			},
		},
		{
			"a body after a removal on request", (*world).triggerS1,
			func(w *world, id string) {
				w.song.Delete(id) // so that the end is known: without the upstream's record
				w.removal("S1", id)
			},
		},
		{
			"a body after the record was unpublished", (*world).triggerS1,
			func(w *world, id string) {
				w.song.SetState(id, "UNPUBLISHED")
				w.trigger("S1", id)
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := startPair(t, settings{})
			q, err := queue.Connect(t.Context(), queue.Config{URL: p.set.queueURL})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = q.Close(context.WithoutCancel(t.Context())) })
			filler := `"info":{"text":"` + strings.Repeat("x", 4000) + `"}`
			late := 0
			for round := 0; late < 3; round++ {
				if round == 60 {
					t.Fatalf("in %d rounds the other process was first only %d times", round, late)
				}
				id := fmt.Sprintf("late-%d", round)
				p.put("S1", id, filler)
				release := make(chan struct{})
				p.song.ClearFaults()
				p.song.Fail(testkit.Fault{Times: 1, StallAfter: 2000, Release: release})
				tc.before(p.world, id)
				p.eventually(wait, func() (bool, string) { return p.song.RecordRequests(id) > 0, "the record is not requested" })
				done := p.settled()
				tc.change(p.world, id)
				if p.firstIsOther(done) {
					late++
				}
				close(release)
				p.awaitConverged(wait)
				p.eventually(wait, func() (bool, string) {
					n := p.pending(q, "S1")
					return n == 0, fmt.Sprintf("%d requests are left", n)
				})
				p.wantConverged()
			}
		})
	}
}

func (w *world) triggerS1(id string) { w.trigger("S1", id) }

// settled counts the documents that were written or removed by either process.
func (p pair) settled() int {
	p.t.Helper()
	n := 0
	for _, a := range []*app.App{p.app, p.second} {
		own := *p.world
		own.app = a
		n += own.outcomes(core.OutcomeIndexed) + own.outcomes(core.OutcomeRemoved)
	}
	return n
}

// firstIsOther returns the newer Request a moment to be done while the older one is held up; false is where both came to
// the same process, which does them in order.
func (p pair) firstIsOther(before int) bool {
	p.t.Helper()
	end := time.NewTimer(150 * time.Millisecond)
	defer end.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for p.settled() == before {
		select {
		case <-look.C:
		case <-end.C:
			return false
		}
	}
	return true
}

// pending counts the Requests for records of a study that are in the queue, those in flight included.
func (p pair) pending(q *queue.Queue, study string) int {
	p.t.Helper()
	ids, err := q.PendingRecords(p.t.Context(), code, study)
	if err != nil {
		p.t.Fatal(err)
	}
	return len(ids)
}

// TestRepeatedTriggers: many triggers of the same records at once, while the records change, end with the newest.
func TestRepeatedTriggers(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 10)
	for round := range 20 {
		for i, id := range ids {
			switch rand.IntN(4) {
			case 0:
				w.song.SetState(id, "UNPUBLISHED")
			default:
				w.put("S1", id, fmt.Sprintf(`"experiment":{"number":%d}`, round*100+i))
			}
			w.trigger("S1", id)
			if rand.IntN(3) == 0 {
				w.trigger("S1", id)
			}
		}
	}
	w.awaitConverged(wait)
	fetched := slices.Max([]int{w.song.Requests(testkit.RouteRecord), 1})
	t.Logf("%d triggers, %d calls", int(w.metric("tutti_requests_received_total")), fetched)
	if a := w.mustRequest(http.MethodGet, "/ready", http.StatusOK); a.get("status").String() != "healthy" {
		t.Errorf("ready: %s", a.raw)
	}
}
