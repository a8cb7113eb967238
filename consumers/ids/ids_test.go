package ids_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tutti/consumers/ids"
	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/tools/fakes"
)

// memory holds a job, its lists and their pages, and the Requests that were published.
type memory struct {
	loop.Requests
	mu sync.Mutex
	fakes.Jobs
	lists     map[string]core.OrganizationRun
	pages     map[int][]idlist.ID
	published []core.Request
	ended     int
}

func (m *memory) CreateOrganization(context.Context, string, core.OrganizationRun) (bool, error) {
	return false, nil
}

func (m *memory) Organization(_ context.Context, _, organization string) (core.OrganizationRun, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lists[organization], nil
}

func (m *memory) UpdateOrganization(_ context.Context, _, organization string, change func(*core.OrganizationRun) error) (core.OrganizationRun, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.lists[organization]
	err := change(&list)
	m.lists[organization] = list
	return list, err
}

func (m *memory) Organizations(context.Context, string) ([]core.OrganizationRun, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.lists), func(a, b core.OrganizationRun) int { return len(a.Organization) - len(b.Organization) }), nil
}

func (m *memory) IDPage(_ context.Context, _, _ string, page int) ([]idlist.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.pages[page]), nil
}

func (m *memory) UpdateIDPage(_ context.Context, _, _ string, page int, change func([]idlist.ID) error) ([]idlist.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := change(m.pages[page])
	return m.pages[page], err
}

func (m *memory) Publish(_ context.Context, r core.Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.published = append(m.published, r)
	return nil
}

func (m *memory) PublishUnlessRemovalPending(ctx context.Context, r core.Request) error {
	return m.Publish(ctx, r)
}

// records settles each id by its name.
type records struct{}

func (records) Settle(_ context.Context, req core.Request, version core.Version) (string, core.Outcome, error) {
	results := map[string]core.Outcome{
		"indexed": core.OutcomeIndexed, "stale": core.OutcomeStale, "removed": core.OutcomeRemoved, "excluded": core.OutcomeExcluded,
		"rejected": core.OutcomeRejected, "elsewhere": core.OutcomeMismatch,
	}
	if version != 7 {
		return "", 0, core.NewError(core.CodeInternal, "with the version "+strconv.Itoa(int(version)))
	}
	return req.Organization, results[req.RecordID], nil
}

// letters has the dead letter of the id "rejected".
type letters struct{ outcome.DeadLetters }

func (letters) Find(_ context.Context, _, _, id string) (core.DeadLetter, error) {
	if id != "rejected" {
		return core.DeadLetter{}, core.NewError(core.CodeNotFound, "none")
	}
	return core.DeadLetter{Reason: core.ReasonRejected, EngineReason: "a word in a number", Hint: "change the record"}, nil
}

// message is the delivery of a page.
type message struct {
	core.Message
	request core.Request
}

func (m message) Request() core.Request { return m.request }
func (m message) Version() core.Version { return 9 }

func newWorker(m *memory) *ids.Worker {
	log := slog.New(slog.DiscardHandler)
	l := loop.New(loop.NewProcess(time.Minute), m, nil, loop.Config{Logger: log, RetryBase: time.Second, RetryMax: time.Second})
	l.Pause.Clear() // the index takes writes
	return ids.New(ids.Config{
		Repository: "r", Logger: log, Loop: l, Jobs: state.New(state.Config{Loop: l, Store: m}), Progress: state.NewProgress(m, 0),
		Outcomes:      outcome.New(letters{}, nil, outcome.Config{Logger: log, Metrics: outcome.NewMetrics(prometheus.NewRegistry())}),
		Organizations: m, Pages: m, Records: records{}, Requests: m, Attempts: 2,
		EndJob: func(context.Context, string) error { m.ended++; return nil },
	})
}

// TestStart: a job publishes the first page of each of its lists that has not begun, and one without lists fails.
func TestStart(t *testing.T) {
	m := &memory{Jobs: fakes.Jobs{All: map[string]core.Job{"j": {ID: "j", Repository: "r", State: core.JobRunning}}}, lists: map[string]core.OrganizationRun{
		"new": {Organization: "new", State: core.JobQueued, DoneThrough: -1}, "begun": {Organization: "begun", State: core.JobRunning, DoneThrough: 3},
		"ahead": {Organization: "ahead", DoneThrough: -1, Ahead: map[int]core.Totals{1: {}}}, "ended": {Organization: "ended", State: core.JobSucceeded, DoneThrough: -1},
	}}
	if err := newWorker(m).Start(t.Context(), m.All["j"]); err != nil {
		t.Fatal(err)
	}
	if n := *m.All["j"].ExpectedOrganizations; n != 4 || len(m.published) != 1 || m.published[0].Organization != "new" || !m.published[0].Page.IDs {
		t.Errorf("%d lists; published %+v", n, m.published)
	}
	m.lists = nil
	if err := newWorker(m).Start(t.Context(), m.All["j"]); err != nil || m.All["j"].State != core.JobFailed || m.All["j"].Error.Code != string(core.CodeNotFound) {
		t.Errorf("without lists: %v, %s %+v", err, m.All["j"].State, m.All["j"].Error)
	}
}

// TestSettle: each id of a page gets the outcome of its record, with the version of the run; the next page is published; ids with an outcome
// are not processed again; and the last page ends the list and the job.
func TestSettle(t *testing.T) {
	last := 1
	m := &memory{
		Jobs: fakes.Jobs{All: map[string]core.Job{"j": {ID: "j", Repository: "r", State: core.JobRunning, StartVersion: 7, StartedAt: new(time.Now())}}},
		lists: map[string]core.OrganizationRun{"o": {
			Organization: "o", State: core.JobQueued, DoneThrough: -1, LastPage: &last, Totals: core.Totals{Expected: 8},
		}},
		pages: map[int][]idlist.ID{
			0: {{ID: "indexed"}, {ID: "stale"}, {ID: "removed"}, {ID: "excluded"}, {ID: "rejected"}, {ID: "elsewhere"}, {ID: "before", Outcome: idlist.Indexed}},
			1: {{ID: "indexed"}},
		},
	}
	settle := func(number int) {
		t.Helper()
		req := core.Request{Scope: core.ScopePage, Repository: "r", Organization: "o", JobID: "j", Page: &core.Page{IDs: true, Number: number}}
		if err := newWorker(m).Settle(t.Context(), message{request: req}, m.All["j"], m.lists["o"], func() {}); err != nil {
			t.Fatal(err)
		}
	}
	settle(0)
	want := []idlist.ID{
		{ID: "indexed", Outcome: idlist.Indexed},
		{ID: "stale", Outcome: idlist.Stale},
		{ID: "removed", Outcome: idlist.Removed},
		{ID: "excluded", Outcome: idlist.Excluded},
		{ID: "rejected", Outcome: idlist.DeadLettered, Reason: core.ReasonRejected + ": a word in a number", Hint: "change the record"},
		{ID: "elsewhere", Outcome: idlist.Mismatch, Hint: "the record belongs to another organization of the repository; use that one"},
		{ID: "before", Outcome: idlist.Indexed},
	}
	if diff := cmp.Diff(want, m.pages[0]); diff != "" {
		t.Errorf("the first page (-want +got):\n%s", diff)
	}
	list := m.lists["o"]
	totals := core.Totals{Expected: 8, Fetched: 7, Indexed: 2, Stale: 1, Removed: 1, Excluded: 1, Rejected: 1}
	if diff := cmp.Diff(totals, list.Totals); diff != "" || list.State != core.JobRunning || m.ended != 0 {
		t.Errorf("after it: %s, %d jobs ended (-want +got):\n%s", list.State, m.ended, diff)
	}
	if len(m.published) != 1 || m.published[0].Page.Number != 1 {
		t.Errorf("published %+v", m.published)
	}
	settle(1)
	list = m.lists["o"]
	if list.State != core.JobPartial || list.Error == nil || list.Error.Code != core.JobErrorIDsNotIndexed || m.ended != 1 || len(m.published) != 1 {
		t.Errorf("at the end: %s %+v, %d jobs ended, published %+v", list.State, list.Error, m.ended, m.published)
	}
}
