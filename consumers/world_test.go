package consumers_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"tutti/consumers"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
	"tutti/internal/upstream/exclusion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tester is the common part of a test and a check of rapid.
type tester interface {
	rapid.TB
	Cleanup(f func())
}

// world is everything outside of a process: the queue, its key-value bucket, the index and the upstream.
type world struct {
	t        tester
	broker   *broker
	store    *store
	engine   *engine
	upstream *upstream
	cfg      consumers.Config
	bulk     bulk.Config
	pageSize int
	// giveUpAfter is Repository.GiveUpAfter; runs fail after their attempts by default.
	giveUpAfter time.Duration
	// split, when set, makes several documents of each record.
	split func(rec core.Record, each func(id string, document []byte) error) error
	// unordered are the arrays without order of the processes that boot from now on.
	unordered []string
	// difference makes run queue runs that write only the difference.
	difference bool
	// rebuild is the Rebuild of the processes that boot from now on.
	rebuild consumers.Rebuild
	// kinds, when set, makes the counters of JSON kinds.
	kinds func() consumers.KindCounter
	// rules are the exclusion rules of the processes that boot from now on.
	rules *exclusion.Rules
	// onPublish, when set, may fail a Publish of a process.
	onPublish func(core.Request) error
	// onRepublish, when set, may fail a Republish of a process.
	onRepublish func() error
	// listingTakes is how long listing the organizations of a job takes.
	listingTakes time.Duration
	// cellTakes is how long reading a cell takes.
	cellTakes time.Duration
	// onSetCell, when set, may fail the storing of a cell's value, or crash the process that stores it.
	onSetCell func(p *process, value string) error
	// onGetAll, when set, may fail the reading of documents to compare.
	onGetAll func() error
	// afterPublish, when set, is called after a process has published something.
	afterPublish func(core.Request)
	// afterRead and afterUpdate, when set, are called after a process has read or changed an organization's run.
	afterRead   func(*process)
	afterUpdate func(*process, core.OrganizationRun)
	// reruns counts the runs that processes queued themselves, rerun is the last of them.
	reruns   atomic.Int64
	rerun    string
	rerunMu  sync.Mutex
	requests int
	fresh    int
}

func newWorld(t tester) *world {
	return &world{
		t: t, broker: newBroker(30 * time.Second), store: newStore(), engine: newEngine(), upstream: newUpstream(), rebuild: noRebuild{},
		cfg:      consumers.Config{RetryBase: time.Millisecond, RetryMax: 100 * time.Millisecond, ProgressEvery: time.Millisecond},
		bulk:     bulk.Config{MaxAge: time.Millisecond, MaxFill: 5 * time.Millisecond},
		pageSize: 100, giveUpAfter: 1,
	}
}

// in runs test in a world of its own in fake time.
func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

// boot starts a process that is stopped when the test ends; after steps calls it crashes, never if that is -1.
func (w *world) boot(steps int64) *process {
	w.t.Helper()
	p := w.make(steps)
	p.c.Start()
	return p
}

func (w *world) make(steps int64) *process {
	w.t.Helper()
	p := &process{w: w, gone: make(chan struct{})}
	p.steps.Store(steps)
	var err error
	if p.writer, err = bulk.New(enginePort{p}, w.bulk); err != nil {
		w.t.Fatal(err)
	}
	cfg := w.cfg
	cfg.AckWait = w.broker.ackWait
	if os.Getenv("CONSUMERS_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	p.c, err = consumers.New([]consumers.Repository{p.repository()}, p.deps(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = p.stop(w.t, time.Minute) })
	return p
}

func (p *process) deps() consumers.Deps {
	return consumers.Deps{
		Requests: requestPort{p}, DeadLetters: deadLetterPort{p}, Jobs: jobPort{p}, Organizations: runPort{p}, Groups: groupPort{p},
		Pages: notePort{p}, IDs: idPort{p}, Cells: cellPort{p}, Index: indexPort{p}, Writer: p.writer,
	}
}

func (p *process) repository() consumers.Repository {
	source := func(class core.Class) consumers.Source { return sourcePort{p, "song", class} }
	r := consumers.Repository{
		Repository: core.Repository{
			Code: "song", Type: core.TypeSong, IndexName: "analyses", Fields: core.RecordFields{ID: "analysisId", Organization: "studyId"},
		},
		Upstream: exclusion.Apply(p.w.rules, callPort{p, p.w.upstream}), ExcludedOrganizations: p.w.rules.Organizations(), Document: asDocument, Probe: probePort{p}, Rebuild: p.w.rebuild,
		Records: source(core.ClassRecords), Batches: source(core.ClassBatches), Pages: source(core.ClassPages),
		Runs: source(core.ClassRuns), RunAgain: func(context.Context) error { return p.w.runAgain(p) },
		PageSize: p.w.pageSize, GiveUpAfter: p.w.giveUpAfter, NonOverlapping: p.w.upstream.nonOverlapping,
	}
	r.NewKindCounter, r.Letters = p.w.kinds, letterPort{p}
	if p.w.split != nil {
		r.Document, r.Split = nil, p.w.split
		r.Fields = core.RecordFields{ID: "record", Organization: "studyId", Document: "id"}
	}
	r.Fields.Unordered = p.w.unordered
	return r
}

// noRebuild is the Rebuild of a world without rebuilds.
type noRebuild struct{ consumers.Rebuild }

func (noRebuild) DiscardEnded(context.Context, func(context.Context, string) (bool, error)) error {
	return nil
}

// runAgain queues a run of the repository for a process, as ingest does: a run that is still queued is returned instead.
func (w *world) runAgain(p *process) error {
	w.rerunMu.Lock()
	defer w.rerunMu.Unlock()
	if job, err := w.store.job(w.rerun); w.rerun != "" && (err != nil || job.State == core.JobQueued) {
		return nil
	}
	return do(p, func() error {
		if w.onPublish != nil {
			if err := w.onPublish(core.Request{Scope: core.ScopeRepository}); err != nil {
				return err
			}
		}
		w.rerun = w.run("", false)
		w.reruns.Add(1)
		return nil
	})
}

// publish puts a Request on the queue, as ingest does.
func (w *world) publish(r core.Request) core.Request {
	w.t.Helper()
	w.requests++
	r.ID, r.Repository, r.ReceivedAt = fmt.Sprintf("request-%d", w.requests), "song", time.Now()
	if r.Cause == "" {
		r.Cause = core.CauseREST
	}
	if r.Kind == "" {
		r.Kind = core.KindIndex
	}
	if r.Scope != core.ScopeRecord && r.Scope != core.ScopeRecords {
		r.JobID = fmt.Sprintf("job-%d", w.requests)
	}
	if err := w.broker.Publish(r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// index requests one record.
func (w *world) index(org, id string) {
	w.t.Helper()
	w.publish(core.Request{Scope: core.ScopeRecord, Organization: org, RecordID: id})
}

// indexAll requests several records at once, by their ids, whose first letter is their organization's name.
func (w *world) indexAll(ids ...string) {
	w.t.Helper()
	keys := make([]core.RecordKey, len(ids))
	for i, id := range ids {
		keys[i] = core.RecordKey{Organization: id[:1], ID: id}
	}
	w.publish(core.Request{Scope: core.ScopeRecords, Records: keys})
}

// remove requests the removal of one record's document.
func (w *world) remove(org, id string) {
	w.t.Helper()
	w.publish(core.Request{Kind: core.KindRemove, Scope: core.ScopeRecord, Organization: org, RecordID: id})
}

// run requests a run over an organization, or the whole repository when org is empty, and returns its job's id.
func (w *world) run(org string, force bool) string {
	w.t.Helper()
	r := core.Request{Scope: core.ScopeOrganization, Organization: org, Force: force, Difference: w.difference}
	if org == "" {
		r.Scope = core.ScopeRepository
	}
	return w.publish(r).JobID
}

// eventually waits until ok returns true.
func eventually(t tester, what string, ok func() bool) {
	t.Helper()
	within(t, 5*time.Minute, what, ok)
}

func within(t tester, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline, pause := time.Now().Add(limit), max(time.Millisecond, limit/300_000)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(pause)
	}
}

// job waits until a job has ended and the queue is empty.
func (w *world) job(id string) core.Job {
	w.t.Helper()
	job := w.await(id)
	w.idle()
	return job
}

// await waits until a job has ended.
func (w *world) await(id string) core.Job {
	w.t.Helper()
	return w.awaitFor(id, 5*time.Minute)
}

func (w *world) awaitFor(id string, limit time.Duration) core.Job {
	w.t.Helper()
	var job core.Job
	read := w.store.watch(id)
	within(w.t, limit, "the end of "+id, func() bool {
		var err error
		job, err = read()
		return err == nil && job.State.Final()
	})
	synctest.Wait()
	return job
}

// idle waits until the queue is empty.
func (w *world) idle() {
	w.t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for w.broker.size() > 0 {
		if time.Now().After(deadline) {
			w.t.Fatalf("still on the queue: %s", w.broker)
		}
		time.Sleep(time.Millisecond)
	}
	synctest.Wait()
}

// verify compares the index with the upstream.
func (w *world) verify() {
	w.t.Helper()
	w.same(w.upstream.model())
}

func (w *world) same(want map[string]string) {
	w.t.Helper()
	got := w.engine.live()
	if maps.Equal(want, got) {
		return
	}
	w.t.Errorf("index differs from the model (-want +got):\n%.3000s", cmp.Diff(want, got))
}

// ended checks a job's state and the code of its error, "" for none.
func (w *world) ended(job core.Job, state core.JobState, code string) {
	w.t.Helper()
	got := ""
	if job.Error != nil {
		got = job.Error.Code
		if job.Error.Message == "" {
			w.t.Errorf("%s: an error without a message", job.ID)
		}
	}
	if job.State != state || got != code {
		w.t.Errorf("%s ended as %s %q (%+v), want %s %q", job.ID, job.State, got, job.Error, state, code)
	}
	if job.State.Final() && job.EndedAt == nil {
		w.t.Errorf("%s has no end", job.ID)
	}
}

// seed stores documents that existed before the test, whose records the upstream may have or not.
func (w *world) seed(org string, n int) {
	for i := range n {
		r := record{id: fmt.Sprintf("%s-old-%04d", org, i), org: org, state: published}
		w.engine.put(r.id, 1, r.document())
	}
}

func unavailable(message string) error { return core.NewError(core.CodeUnavailable, message) }

func has(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
