package page

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/internal/core"
)

// memory has the dead letters that were stored and cleared, and the Requests that were published.
type memory struct {
	outcome.DeadLetters
	core.Publisher
	loop.Requests
	stored    map[string]core.DeadLetter
	cleared   []string
	mu        sync.Mutex
	published []core.Request
}

func (m *memory) Put(_ context.Context, d core.DeadLetter) error {
	m.stored[d.RecordID] = d
	return nil
}

func (m *memory) Clear(_ context.Context, _, _, id string, at core.Version, _ func(core.DeadLetter) bool) error {
	if at > 0 {
		m.cleared = append(m.cleared, id)
	}
	return nil
}

func (m *memory) Has(string, string, string) bool { return false }

func (m *memory) PublishUnlessRemovalPending(_ context.Context, r core.Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.published = append(m.published, r)
	return nil
}

// message is the delivery of a page.
type message struct{ core.Message }

func (message) Version() core.Version { return 9 }

func newTestWork(m *memory) *work {
	log := slog.New(slog.DiscardHandler)
	l := loop.New(loop.NewProcess(time.Minute), m, nil, loop.Config{Logger: log, RetryBase: time.Second, RetryMax: time.Second})
	cfg := &Config{
		Repository: core.Repository{Code: "song", IndexName: "songs"}, Logger: log, Loop: l, Requests: m,
		Outcomes: outcome.New(m, l.Pause, outcome.Config{Repository: core.Repository{Code: "song"}, Logger: log}),
	}
	job := core.Job{ID: "j", Repository: "song", StartVersion: 7}
	return newWork(cfg, message{}, job, core.Page{Number: 2, Limit: 10}, core.OrganizationRun{Organization: "o"}, nil)
}

// TestSettle: a document that was written or is newer clears its dead letter and a rejected one stores one; a record counts if it is new to the
// chain; one without an outcome stays open for the next pass, but gets a Request with the version of the run if it came too late to be in time
// then, or an earlier pass had read it and this one has not.
func TestSettle(t *testing.T) {
	t.Parallel()
	m := &memory{stored: make(map[string]core.DeadLetter)}
	w := newTestWork(m)
	if w.version != 7 || w.index != "songs" {
		t.Errorf("the page writes version %d to %s", w.version, w.index)
	}
	w.ledger.unsettled = map[string]bool{"gone": false, "open": true}
	p := &pass{w: w, fresh: make(map[uint64]struct{}), overdue: map[string]struct{}{"late": {}}}
	p.aside = []asideRow{{hash: 1, letter: core.DeadLetter{RecordID: "aside", Reason: core.ReasonTooLarge}}}
	var results []core.Result
	for _, row := range []struct {
		id     string
		fresh  bool
		result core.Result
	}{
		{"indexed", true, core.Result{Outcome: core.OutcomeIndexed}},
		{"known", false, core.Result{Outcome: core.OutcomeIndexed}},
		{"stale", true, core.Result{Outcome: core.OutcomeStale, CurrentVersion: 8}},
		{"rejected", true, core.Result{Outcome: core.OutcomeRejected}},
		{"open", true, core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded}},
		{"late", true, core.Result{Outcome: core.OutcomeRetry}},
	} {
		p.ids, results = append(p.ids, row.id), append(results, row.result)
		if row.fresh {
			p.fresh[xxhash.Sum64String(row.id)] = struct{}{}
		}
	}
	p.fresh[1] = struct{}{}
	if err := w.settle(t.Context(), p, results, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(core.Totals{Indexed: 1, Stale: 1, Rejected: 2, Retried: 2}, w.ledger.totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"indexed", "known", "stale"}, m.cleared); diff != "" {
		t.Errorf("dead letters cleared (-want +got):\n%s", diff)
	}
	if r, a := m.stored["rejected"], m.stored["aside"]; len(m.stored) != 2 || r.Version != 9 || r.Request.RecordID != "rejected" || r.JobID != "j" || a.Reason != core.ReasonTooLarge {
		t.Errorf("dead letters stored: %+v", m.stored)
	}
	if diff := cmp.Diff(map[string]bool{"open": true}, w.ledger.unsettled); diff != "" {
		t.Errorf("left for the next pass (-want +got):\n%s", diff)
	}
	requested := make(map[string]core.Version)
	for _, r := range m.published {
		requested[r.RecordID] = r.AsOf
	}
	if diff := cmp.Diff(map[string]core.Version{"late": 7, "gone": 7}, requested); diff != "" {
		t.Errorf("requested one by one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"late"}, w.ledger.late); diff != "" {
		t.Errorf("that are new to the chain (-want +got):\n%s", diff)
	}
	for _, id := range []string{"indexed", "rejected", "aside", "late", "gone"} {
		if !w.ledger.isSettled(id) {
			t.Errorf("%s is not settled", id)
		}
	}
}

// TestSettleClock: a version ahead of the clock proves nothing: the record gets a Request of its own, at once.
func TestSettleClock(t *testing.T) {
	t.Parallel()
	ahead := core.Version(time.Now().Add(time.Hour).UnixNano())
	for name, result := range map[string]core.Result{
		"stale":                       {Outcome: core.OutcomeStale, CurrentVersion: ahead},
		"of the index that is filled": {Outcome: core.OutcomeIndexed, NextVersion: ahead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &memory{stored: make(map[string]core.DeadLetter)}
			w := newTestWork(m)
			p := &pass{w: w, ids: []string{"a"}, fresh: map[uint64]struct{}{xxhash.Sum64String("a"): {}}}
			if err := w.settle(t.Context(), p, []core.Result{result}, false); err != nil {
				t.Fatal(err)
			}
			if len(m.published) != 1 || len(m.cleared) != 0 || w.ledger.totals != (core.Totals{Retried: 1}) {
				t.Errorf("published %+v, cleared %v, totals %+v", m.published, m.cleared, w.ledger.totals)
			}
		})
	}
}

// TestSettleDocuments: of a record with several documents all count but its marker, and of an excluded one one. A record whose marker is stale
// beside an indexed document is requested by itself.
func TestSettleDocuments(t *testing.T) {
	t.Parallel()
	m := &memory{stored: make(map[string]core.DeadLetter)}
	w := newTestWork(m)
	p := &pass{
		w: w, ids: []string{"two", "excluded", "newer"}, ends: []int{3, 5, 7}, excluded: map[string]struct{}{"excluded": {}},
		documents: []string{"f1", "f2", "two", "f3", "excluded", "f4", "newer"}, fresh: make(map[uint64]struct{}),
	}
	for _, id := range p.ids {
		p.fresh[xxhash.Sum64String(id)] = struct{}{}
	}
	indexed, removed := core.Result{Outcome: core.OutcomeIndexed}, core.Result{Outcome: core.OutcomeRemoved}
	results := []core.Result{indexed, indexed, removed, removed, removed, indexed, {Outcome: core.OutcomeStale}}
	if err := w.settle(t.Context(), p, results, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(core.Totals{Indexed: 2, Excluded: 1, Retried: 1}, w.ledger.totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	if counted := p.counted("two", results[:3]); len(counted) != 2 {
		t.Errorf("%d results of two documents count", len(counted))
	}
	if len(m.published) != 1 || m.published[0].RecordID != "newer" {
		t.Errorf("published %+v", m.published)
	}
	if diff := cmp.Diff([]string{"f1", "f2", "two", "f3", "excluded", "f4", "newer"}, m.cleared); diff != "" {
		t.Errorf("dead letters cleared (-want +got):\n%s", diff)
	}
}
