package consumers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
)

func TestRecordConverges(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 3)
		w.boot(-1)
		for _, change := range []func(*record){
			func(*record) {},
			func(r *record) { r.rev++ },
			func(r *record) { r.state = "UNPUBLISHED" },
			func(r *record) { r.state = published },
			func(r *record) { r.state = "SUPPRESSED" },
		} {
			w.upstream.edit("A", "A-0001", change)
			w.index("A", "A-0001")
			w.idle()
			want := w.upstream.model()
			delete(want, "A-0000")
			delete(want, "A-0002")
			w.same(want)
		}
		w.index("A", "A-0000")
		w.index("A", "never-was")
		w.idle()
		w.upstream.drop("A", 0, 1)
		w.index("A", "A-0000")
		w.idle()
		w.same(map[string]string{})
		if n := len(w.store.dead()); n != 0 {
			t.Errorf("%d dead letters", n)
		}
	})
}

func TestMismatch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		w.upstream.fill("B", 1)
		// A's route returns a record of B.
		w.upstream.change("A", func(l []record) []record { return append(l, record{id: "B-0000", org: "B", state: published, rev: 9}) })
		w.boot(-1)
		w.index("B", "B-0000")
		w.idle()
		want := w.engine.live()
		before := w.engine.count(core.OutcomeRemoved) + w.engine.count(core.OutcomeIndexed)
		if len(want) != 1 {
			t.Fatalf("index holds %v", want)
		}
		w.index("A", "B-0000") // fetched: it is B's
		w.idle()
		w.remove("A", "B-0000") // stored: it is B's
		w.idle()
		w.upstream.drop("A", 1, 2)
		w.index("A", "B-0000") // A has no such record, but the document is B's
		w.idle()
		w.same(want)
		if after := w.engine.count(core.OutcomeRemoved) + w.engine.count(core.OutcomeIndexed); after != before {
			t.Errorf("the engine got %d writes", after-before)
		}
		w.remove("B", "B-0000")
		w.idle()
		w.same(map[string]string{})
	})
}

// TestUpstreamReturnsAnotherRecord must not write a record under an id that was not requested.
func TestUpstreamReturnsAnotherRecord(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		w.boot(-1)
		w.upstream.change("A", func(l []record) []record { return append(l, record{id: "x", org: "A", state: published}) })
		w.upstream.answer = func(r record) record {
			r.id = "A-0000"
			return r
		}
		w.index("A", "x")
		w.idle()
		w.same(map[string]string{})
		if d := w.store.dead()["x"]; d.Reason != core.ReasonUpstream {
			t.Errorf("dead letter %+v", d)
		}
	})
}

// TestRemovalThenLateWrite: one process fetches a record and loses time, while another removes it.
func TestRemovalThenLateWrite(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		fetched, write := make(chan struct{}), make(chan struct{})
		first := true
		w.upstream.afterRecord = func(context.Context, string, string) {
			if first {
				first = false
				close(fetched)
				<-write
			}
		}
		slow := w.boot(-1)
		w.index("A", "A-0000")
		<-fetched
		reconnect := slow.cutOff()
		w.boot(-1)
		w.remove("A", "A-0000")
		w.idle()
		close(write)
		eventually(t, "the late write", func() bool { return w.engine.count(core.OutcomeStale) == 1 })
		reconnect()
		w.same(map[string]string{})
	})
}

// TestOutOfOrder: an old fetch is written after a newer one of another process.
func TestOutOfOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		fetched, write := make(chan struct{}), make(chan struct{})
		first := true
		w.upstream.afterRecord = func(context.Context, string, string) {
			if first {
				first = false
				close(fetched)
				<-write
			}
		}
		slow := w.boot(-1)
		w.index("A", "A-0000")
		<-fetched
		reconnect := slow.cutOff()
		w.boot(-1)
		w.upstream.edit("A", "A-0000", func(r *record) { r.rev++ })
		w.index("A", "A-0000")
		w.idle()
		close(write)
		eventually(t, "the late write", func() bool { return w.engine.count(core.OutcomeStale) == 1 })
		reconnect()
		w.verify()
	})
}

func TestRedelivery(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		w.boot(-1)
		var n atomic.Int64
		w.upstream.afterRecord = func(context.Context, string, string) {
			if n.Add(1)%3 == 0 {
				w.broker.redeliver(core.ClassRecords)
			}
		}
		for range 5 {
			for id := range w.upstream.model() {
				w.upstream.edit("A", id, func(r *record) { r.rev++ })
				w.index("A", id)
			}
		}
		w.idle()
		w.verify()
	})
}

// TestNewestOfParkedWins: while a record is in flight, newer messages wait, unfetched; only the newest of them counts.
func TestNewestOfParkedWins(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		release := make(chan struct{})
		atOnce, most := 0, 0
		w.upstream.onRecord = func(context.Context, string, string) error {
			w.upstream.mu.Lock()
			atOnce++
			most = max(most, atOnce)
			first := w.upstream.requested["A-0000"] == 1
			w.upstream.mu.Unlock()
			if first {
				<-release
			}
			return nil
		}
		w.upstream.afterRecord = func(context.Context, string, string) {
			w.upstream.mu.Lock()
			atOnce--
			w.upstream.mu.Unlock()
		}
		w.boot(-1)
		for range 10 {
			w.index("A", "A-0000")
			synctest.Wait()
		}
		if _, given := w.broker.counts(); given != 10 {
			t.Fatalf("%d messages were delivered", given)
		}
		if n := w.upstream.requestsFor("A-0000"); n != 1 {
			t.Errorf("%d fetches while the first is under way", n)
		}
		w.upstream.edit("A", "A-0000", func(r *record) { r.rev = 7 })
		close(release)
		w.idle()
		w.verify()
		if n := w.upstream.requestsFor("A-0000"); n != 2 || most != 1 {
			t.Errorf("%d fetches, %d at once", n, most)
		}
	})
}

// TestParkedOfTwoOrganizations: a message that parks behind another organization's record of the same id has its own
// subject. A newer one does not replace it in the queue, so it must not wait for the ack wait to end.
func TestParkedOfTwoOrganizations(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		w.upstream.fill("B", 1)
		release := make(chan struct{})
		w.upstream.onRecord = func(context.Context, string, string) error {
			<-release
			return nil
		}
		w.boot(-1)
		for _, org := range []string{"A", "B", "A", "B", "A"} {
			w.index(org, "A-0000")
			synctest.Wait()
		}
		began := time.Now()
		close(release)
		w.idle()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestUpstreamRefusal(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 2)
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.upstream.onRecord = func(context.Context, string, string) error {
			return core.NewError(core.CodeUpstream, "the repository answered 400 with a page of HTML")
		}
		w.index("A", "A-0000")
		w.idle()
		w.verify()
		d := w.store.dead()["A-0000"]
		if d.Reason != core.ReasonUpstream || d.Hint != "the repository answered 400 with a page of HTML; fix that, then retry" || d.Request == nil || d.Attempts < 1 {
			t.Errorf("dead letter %+v", d)
		}
		w.upstream.onRecord = nil
		w.index("A", "A-0000")
		w.idle()
		if n := len(w.store.dead()); n != 0 {
			t.Error("a later success did not clear the dead letter")
		}
	})
}

func TestUpstreamDown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 2)
		w.boot(-1)
		var at []time.Time
		w.upstream.onRecord = func(context.Context, string, string) error {
			at = append(at, time.Now())
			if len(at) <= 25 {
				return unavailable("the repository answered 500")
			}
			return nil
		}
		w.index("A", "A-0000")
		w.idle()
		if len(w.engine.live()) != 1 || len(w.store.dead()) != 0 || len(at) != 26 {
			t.Errorf("%d documents, %d dead letters, %d calls", len(w.engine.live()), len(w.store.dead()), len(at))
		}
		// A message that was delivered ten times is republished, so that it never reaches its last delivery.
		requests := w.broker.published(core.ScopeRecord)
		if len(requests) != 3 || requests[2].Attempts != 20 || requests[2].ID != requests[0].ID {
			t.Errorf("published %+v", requests)
		}
		slow := 0
		for i := 1; i < len(at); i++ {
			if at[i].Sub(at[i-1]) >= 50*time.Millisecond {
				slow++
			}
		}
		if slow < 12 {
			t.Errorf("the delay did not grow: %d", slow)
		}
	})
}

// TestOrganizationAbsent: Song's study.id.does.not.exist counts only if its list omits the study too.
func TestOrganizationAbsent(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 3)
		w.upstream.fill("B", 1)
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		want := w.engine.live()

		w.upstream.vanish("A")
		w.upstream.mu.Lock()
		w.upstream.orgs = append(w.upstream.orgs, "A") // still listed
		w.upstream.mu.Unlock()
		w.index("A", "A-0000")
		w.ended(w.await(w.run("A", false)), core.JobFailed, "unavailable")
		w.same(want)
		if len(w.store.dead()) != 0 {
			t.Error("a contradiction made a dead letter")
		}

		w.upstream.vanish("A")
		w.idle()
		delete(want, "A-0000")
		w.same(want)
		w.ended(w.job(w.run("A", false)), core.JobFailed, "absent")
		w.same(want) // a run that could not be read sweeps nothing
	})
}

func TestRejectedRecord(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 2)
		typ := "mapper_parsing_exception"
		w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) {
			return core.Result{Outcome: core.OutcomeRejected, Type: typ, Reason: "why"}, id == "A-0000"
		}
		w.boot(-1)
		w.index("A", "A-0000")
		w.index("A", "A-0001")
		w.idle()
		d := w.store.dead()["A-0000"]
		if d.Reason != core.ReasonRejected || d.EngineType != typ || d.EngineReason != "why" || len(d.Document) == 0 || d.Size == 0 || d.SHA256 == "" ||
			d.Hint != "fix the record or the index mapping, then retry" {
			t.Errorf("dead letter %+v", d)
		}
		typ = "request_entity_too_large"
		w.index("A", "A-0000")
		w.idle()
		if d := w.store.dead()["A-0000"]; d.Reason != core.ReasonTooLarge || d.Hint != "the document is larger than the index accepts in one request" {
			t.Errorf("dead letter %+v", d)
		}
		w.engine.item = nil // the record, or the mapping, is fixed
		w.publish(w.store.dead()["A-0000"].RecordRequest())
		w.idle()
		if n := len(w.store.dead()); n != 0 || !w.engine.has("A-0000") {
			t.Errorf("%d dead letters after the retry", n)
		}
		w.engine.item = func(string, core.WriteOp, []byte) (core.Result, bool) {
			return core.Result{Outcome: core.OutcomeRejected, Type: typ}, true
		}
		w.index("A", "A-0000")
		w.idle()
		w.engine.item = nil
		w.remove("A", "A-0000")
		w.idle()
		if n := len(w.store.dead()); n != 0 {
			t.Error("a removal did not clear the dead letter")
		}
	})
}

// TestDeadLetterBeforeAck: while a dead letter cannot be stored, its message stays in the queue.
func TestDeadLetterBeforeAck(t *testing.T) {
	for _, scope := range []core.Scope{core.ScopeRecord, core.ScopePage} {
		t.Run(string(scope), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 3)
				var refused atomic.Int64
				w.store.put = func(core.DeadLetter) error {
					if refused.Add(1) <= 30 {
						return unavailable("the queue does not answer")
					}
					return nil
				}
				w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) {
					if refused.Load() <= 30 && w.broker.size() == 0 {
						t.Error("the message was acknowledged before its dead letter was stored")
					}
					return core.Result{Outcome: core.OutcomeRejected, Type: "x"}, id == "A-0000"
				}
				w.boot(-1)
				if scope == core.ScopeRecord {
					w.index("A", "A-0000")
				} else {
					w.run("A", false)
				}
				eventually(t, "many attempts", func() bool { return refused.Load() == 20 })
				if w.broker.size() == 0 {
					t.Error("nothing is left on the queue")
				}
				w.idle()
				if _, ok := w.store.dead()["A-0000"]; !ok {
					t.Error("no dead letter")
				}
			})
		})
	}
}

func TestUpstreamRefusalIsStoredBeforeAck(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		w.upstream.onRecord = func(context.Context, string, string) error { return core.NewError(core.CodeUpstream, "no") }
		refused := 0
		w.store.put = func(core.DeadLetter) error {
			if refused++; refused <= 15 {
				return unavailable("the queue does not answer")
			}
			return nil
		}
		w.boot(-1)
		w.index("A", "A-0000")
		w.idle()
		if _, ok := w.store.dead()["A-0000"]; !ok {
			t.Error("the message ended without a dead letter")
		}
	})
}

func TestManyRecords(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, org := range []string{"A", "B", "C"} {
			w.upstream.fill(org, 400)
		}
		w.cfg.RecordsInFlight = 10
		w.upstream.latency = 0
		w.boot(-1)
		atOnce, most := 0, 0
		w.upstream.onRecord = func(context.Context, string, string) error {
			w.upstream.mu.Lock()
			atOnce++
			most = max(most, atOnce)
			w.upstream.mu.Unlock()
			time.Sleep(time.Millisecond)
			w.upstream.mu.Lock()
			atOnce--
			w.upstream.mu.Unlock()
			return nil
		}
		for id := range w.upstream.model() {
			w.index(strings.Split(id, "-")[0], id)
		}
		w.idle()
		w.verify()
		if most > 4 {
			t.Errorf("%d calls to the upstream at once", most)
		}
	})
}

func TestBodyTooOldIsFetchedAgain(t *testing.T) {
	for _, scope := range []core.Scope{core.ScopeRecord, core.ScopeOrganization} {
		t.Run(string(scope), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 5)
				w.engine.hold = func(context.Context, core.Batch) error {
					if w.engine.busy.Add(-1) >= 0 {
						w.upstream.change("A", func(l []record) []record {
							l[0].rev++
							return l
						})
						return &core.Error{Code: core.CodeOverloaded, Message: "busy", RetryAfter: 6 * time.Second}
					}
					return nil
				}
				w.engine.busy.Store(2)
				w.boot(-1)
				if scope == core.ScopeRecord {
					w.index("A", "A-0000")
					w.idle()
				} else {
					w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
				}
				if got, want := w.engine.live()["A-0000"], w.upstream.model()["A-0000"]; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		})
	}
}

// TestRecordsOfUnknownOrganization: an organization that does not exist, such as a mistyped one, leaves no tombstone, which
// could keep the document of the id's real organization out.
func TestRecordsOfUnknownOrganization(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.boot(-1)
		for i := range 3 {
			w.index("nobody", fmt.Sprintf("ghost-%d", i))
		}
		w.idle()
		w.same(map[string]string{})
		if n := w.engine.count(core.OutcomeRemoved); n != 0 {
			t.Errorf("%d tombstones", n)
		}
	})
}
