package consumers_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// mutate changes the upstream at random places, and publishes a Request for each change as notifications do: one by one or
// several at once.
func (w *world) mutate(r *rand.Rand, orgs []string, n int) {
	var together []string
	for range n {
		org := orgs[r.IntN(len(orgs))]
		var id string
		w.upstream.change(org, func(l []record) []record {
			if len(l) == 0 {
				return l
			}
			i := r.IntN(len(l))
			id = l[i].id
			switch r.IntN(6) {
			case 0, 1:
				return slices.Delete(l, i, i+1)
			case 2:
				w.fresh++
				id = fmt.Sprintf("%s-new-%d", org, w.fresh)
				return slices.Insert(l, i, record{id: id, org: org, state: published})
			case 3:
				l[i].state = "UNPUBLISHED"
			case 4:
				l[i].state = published
			default:
				l[i].rev++
			}
			return l
		})
		switch {
		case id == "":
		case n%2 == 0:
			together = append(together, id)
		default:
			w.index(org, id)
		}
	}
	if len(together) > 0 {
		w.indexAll(together...)
	}
}

// TestCrash crashes processes between any two of their steps while the list changes. Nothing is requested afterwards: the
// run and the notifications must suffice to make the index equal to the upstream.
func TestCrash(t *testing.T) {
	for seed := range uint64(testkit.Cases(40)) {
		disjoint := seed%2 == 1
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				r := rand.New(rand.NewPCG(seed, 1))
				w.broker.ackWait = 3 * time.Second
				w.upstream.nonOverlapping = disjoint
				orgs := []string{"A", "B", "C"}
				for _, org := range orgs {
					w.upstream.fill(org, 100+r.IntN(300))
				}
				w.seed("A", 3)
				w.difference = seed%3 == 0
				total := len(w.upstream.model())
				w.pageSize = 20 + r.IntN(80)
				calm := seed%4 == 0
				job := w.run("", false)
				crashes := 0
				for range 8 {
					if p := w.boot(r.Int64N(600)); w.outlives(p, job) {
						break
					}
					crashes++
					if !calm {
						w.mutate(r, orgs, r.IntN(40))
					}
				}
				w.boot(-1)
				ended := w.job(job)
				if disjoint && ended.State == core.JobPartial { // the list moved in both readings: it is not swept
					w.ended(ended, core.JobPartial, core.JobErrorListShifted)
					w.ended(w.job(w.run("", true)), core.JobSucceeded, "")
				} else {
					w.ended(ended, core.JobSucceeded, "")
				}
				w.verify()
				sum := ended.Totals
				if done := sum.Indexed + sum.Stale + sum.Drift.Unchanged; calm && (sum.Expected != int64(total) || done < int64(total) || sum.Fetched < int64(total)) {
					t.Errorf("totals %+v of %d records after %d crashes", sum, total, crashes)
				}
				if limit := int64(total * (crashes + 2)); sum.Fetched > limit || sum.Indexed > limit || sum.Removed > int64(total) {
					t.Errorf("totals %+v of %d records after %d crashes", sum, total, crashes)
				}
			})
		})
	}
}

// TestLatePage: a page of an abandoned chain arrives late and replaces the new chain's page, which no process has seen yet.
// The list must still be read.
func TestLatePage(t *testing.T) {
	for _, number := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.broker.ackWait = 3 * time.Second
				w.upstream.fill("A", 500)
				var old core.Request
				var first *process
				lost := 0
				w.afterPublish = func(r core.Request) {
					switch {
					case r.Scope != core.ScopePage || r.Page.Number != number:
					case r.Page.Epoch == 0:
						old = r
						first.crash()
					case lost == 0:
						lost++
						if err := w.broker.Publish(old); err != nil {
							t.Error(err)
						}
					}
				}
				first = w.boot(-1)
				id := w.run("A", false)
				<-first.gone
				_ = first.stop(t, 0)
				w.boot(-1)
				w.ended(w.job(id), core.JobSucceeded, "")
				w.verify()
				if lost != 1 {
					t.Error("no page was lost")
				}
			})
		})
	}
}

// TestCrashAfterRestart: the page from which a chain is reread is in flight when that process crashes as well.
func TestCrashAfterRestart(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.broker.ackWait = 3 * time.Second
		w.upstream.fill("A", 500)
		id := w.run("A", false)
		for range 4 {
			p := w.make(-1)
			w.upstream.onPage = func(_ context.Context, c pageCall) error {
				if c.offset == 198 {
					for w.broker.size() > 1 { // the pages before it end first
						time.Sleep(time.Millisecond)
					}
					p.crash()
				}
				return nil
			}
			p.c.Start()
			<-p.gone
			_ = p.stop(t, 0)
		}
		w.upstream.onPage = nil
		w.boot(-1)
		w.ended(w.job(id), core.JobSucceeded, "")
		w.verify()
		for _, c := range w.upstream.pageCalls()[1:] {
			if c.offset == 0 {
				t.Error("the list was read from its start again")
			}
		}
	})
}

// TestPageInFlightTwice: two processes process a page of the same epoch, because the one that published it crashed before it
// had acknowledged the run. It counts once.
func TestPageInFlightTwice(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.broker.ackWait = 3 * time.Second
		w.upstream.fill("A", 150)
		var first *process
		w.onPublish = func(r core.Request) error {
			if r.Scope == core.ScopePage {
				first.full.Store(true) // no process has received the page yet
			}
			return nil
		}
		w.afterPublish = func(r core.Request) {
			if r.Scope == core.ScopePage {
				w.onPublish, w.afterPublish = nil, nil
				first.crash()
			}
		}
		first = w.boot(-1)
		id := w.run("A", false)
		<-first.gone
		_ = first.stop(t, 0)
		second, third := w.make(-1), w.make(-1)
		var hands atomic.Int64
		both := make(chan struct{})
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.offset == 0 {
				switch hands.Add(1) {
				case 1: // a redelivery goes to the other process
					second.full.Store(true)
					third.c.Start()
				case 2:
					second.full.Store(false)
					close(both)
				}
				<-both
			}
			return nil
		}
		second.c.Start()
		job := w.job(id)
		w.ended(job, core.JobSucceeded, "")
		w.verify()
		if sum := job.Totals; sum.Expected != 150 || sum.Fetched != 150 || sum.Indexed+sum.Stale != 150 {
			t.Errorf("totals %+v", job.Totals)
		}
	})
}

// TestProcessingLongerThanAckWait: a message in flight for longer than the ack wait is not redelivered, and a page that is
// redelivered all the same is not read twice at a time.
func TestProcessingLongerThanAckWait(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 10)
		w.upstream.latency = 5 * time.Minute
		w.bulk.MaxBodyAge = time.Hour
		w.boot(-1)
		id := w.run("A", false)
		w.index("A", "A-0003")
		time.Sleep(4 * time.Minute)
		if _, given := w.broker.counts(); given != 3 { // the run, its page and the record
			t.Errorf("%d messages were delivered", given)
		}
		w.broker.redeliver(core.ClassPages)
		time.Sleep(30 * time.Second)
		if n := len(w.upstream.pageCalls()); n != 1 {
			t.Errorf("the page was read %d times", n)
		}
		w.ended(w.awaitFor(id, time.Hour), core.JobSucceeded, "")
		w.idle()
		w.verify()
	})
}

// outlives waits for the crash of p and the end of its goroutines, and reports whether the job ended before.
func (w *world) outlives(p *process, job string) bool {
	w.t.Helper()
	read := w.store.watch(job)
	eventually(w.t, "a crash or the end", func() bool {
		j, err := read()
		return p.crashed() || err == nil && j.State.Final()
	})
	if !p.crashed() {
		return true
	}
	if err := p.stop(w.t, 0); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		w.t.Error(err)
	}
	return false
}

// TestDisconnectedProcess repeatedly disconnects one of three processes from the queue for longer than the ack wait: what it
// does after that is late.
func TestDisconnectedProcess(t *testing.T) {
	for seed := range uint64(testkit.Cases(20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				r := rand.New(rand.NewPCG(seed, 2))
				orgs := []string{"A", "B"}
				for _, org := range orgs {
					w.upstream.fill(org, 200+r.IntN(400))
				}
				w.pageSize = 20
				w.upstream.latency = 4 * time.Second
				w.bulk.MaxBodyAge = time.Minute
				processes := []*process{w.boot(-1), w.boot(-1), w.boot(-1)}
				job := w.run("", false)
				stop := make(chan struct{})
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for i := 0; ; i++ {
						reconnect := processes[i%3].cutOff()
						time.Sleep(time.Duration(20+r.IntN(40)) * time.Second)
						reconnect()
						select {
						case <-stop:
							return
						case <-time.After(time.Duration(r.IntN(20)) * time.Second):
						}
						w.mutate(r, orgs, r.IntN(4))
					}
				}()
				got := w.awaitFor(job, 3*time.Hour)
				close(stop)
				<-ended
				w.idle()
				w.ended(got, core.JobSucceeded, "")
				w.verify()
			})
		})
	}
}
