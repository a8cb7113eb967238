package consumers_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tutti/consumers"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/core/jobsum"
	"tutti/internal/index/bulk"
)

var errCrashed = core.NewError(core.CodeUnavailable, "this process has crashed")

// process is one tutti process in a world. Each of its calls to the outside goes through call, so that it can crash between
// any two effects: afterwards nothing that it does has an effect.
type process struct {
	w      *world
	c      *consumers.Consumers
	writer *bulk.Writer
	gone   chan struct{}
	once   sync.Once
	// steps counts down to the crash; negative from the start for never.
	steps atomic.Int64
	// cut, when set, disconnects the queue from the process: calls wait until the channel is closed.
	cut atomic.Pointer[chan struct{}]
	// full, when set, keeps messages from the process, as if it had as many in flight as it may.
	full atomic.Bool
}

// crash ends the process at once: a step that it has started has either happened or never will.
func (p *process) crash() { p.once.Do(func() { close(p.gone) }) }

func (p *process) crashed() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// step is a point at which the process may crash.
func (p *process) step() error {
	if p.steps.Load() >= 0 && p.steps.Add(-1) < 0 {
		p.steps.Store(0)
		p.crash()
	}
	if p.crashed() {
		return errCrashed
	}
	return nil
}

func call[T any](p *process, f func() (T, error)) (T, error) {
	var none T
	if err := p.step(); err != nil {
		return none, err
	}
	v, err := f()
	if err := p.step(); err != nil {
		return none, err
	}
	return v, err
}

func do(p *process, f func() error) error {
	_, err := call(p, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// done adapts a function that cannot fail for do.
func done(f func()) func() error {
	return func() error { f(); return nil }
}

// bound ends with ctx and with the process.
func (p *process) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-p.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// callTimeout is how long a call waits for the queue.
const callTimeout = 5 * time.Second

// reachQueue fails, after a while, while the process is disconnected from the queue; calls that wait when that ends succeed.
func (p *process) reachQueue(ctx context.Context) error {
	c := p.cut.Load()
	if c == nil {
		return nil
	}
	timer := time.NewTimer(callTimeout)
	defer timer.Stop()
	select {
	case <-*c:
		return nil
	case <-p.gone:
		return errCrashed
	case <-timer.C:
		return unavailable("the queue does not answer")
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "the queue does not answer", ctx.Err())
	}
}

// cutOff disconnects the process from the queue until the returned function is called.
func (p *process) cutOff() (reconnect func()) {
	c := make(chan struct{})
	p.cut.Store(&c)
	return func() {
		p.cut.Store(nil)
		close(c)
	}
}

// ask is call for calls to the queue.
func ask[T any](ctx context.Context, p *process, f func() (T, error)) (T, error) {
	if err := p.reachQueue(ctx); err != nil {
		var none T
		return none, err
	}
	return call(p, f)
}

// tell is do for calls to the queue.
func tell(ctx context.Context, p *process, f func() error) error {
	_, err := ask(ctx, p, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

type (
	sourcePort struct {
		p          *process
		repository string
		class      core.Class
	}
	message struct {
		*delivery
		p *process
	}
	requestPort    struct{ p *process }
	deadLetterPort struct{ p *process }
	jobPort        struct{ p *process }
	runPort        struct{ p *process }
	groupPort      struct{ p *process }
	cellPort       struct{ p *process }
	notePort       struct{ p *process }
	idPort         struct{ p *process }
	indexPort      struct{ p *process }
	probePort      struct{ p *process }
	callPort       struct {
		p *process
		u *upstream
	}
	enginePort struct{ p *process }
)

var (
	_ consumers.Source             = sourcePort{}
	_ core.Message                 = (*message)(nil)
	_ consumers.Requests           = requestPort{}
	_ consumers.DeadLetters        = deadLetterPort{}
	_ consumers.Jobs               = jobPort{}
	_ consumers.OrganizationRuns   = runPort{}
	_ consumers.OrganizationGroups = groupPort{}
	_ consumers.Cells              = cellPort{}
	_ consumers.Pages              = notePort{}
	_ consumers.IDPages            = idPort{}
	_ consumers.Index              = indexPort{}
	_ consumers.Probe              = probePort{}
	_ consumers.Upstream           = callPort{}
	_ bulk.Engine                  = enginePort{}
)

func (s sourcePort) Fetch(ctx context.Context, most, _ int, wait time.Duration) ([]core.Message, error) {
	ctx, cancel := s.p.bound(ctx)
	defer cancel()
	if err := s.p.reachQueue(ctx); err != nil {
		return nil, err
	}
	if s.p.crashed() {
		return nil, errCrashed
	}
	got, err := s.p.w.broker.Fetch(ctx, s, most, wait)
	messages := make([]core.Message, len(got))
	for i, d := range got {
		messages[i] = &message{d, s.p}
	}
	return messages, err
}

func (m *message) Request() core.Request { return m.request }
func (m *message) Version() core.Version { return versionOf(m.request, m.e.version) }
func (m *message) Deliveries() int       { return m.count }

func (m *message) Ack(ctx context.Context) error {
	return tell(ctx, m.p, done(m.delivery.Ack))
}

func (m *message) Nak(delay time.Duration) error {
	if m.p.cut.Load() != nil {
		return errLost
	}
	return do(m.p, done(func() { m.delivery.Nak(delay) }))
}

func (m *message) InProgress() error {
	if m.p.cut.Load() != nil || m.p.crashed() {
		return errLost
	}
	m.delivery.InProgress()
	return nil
}

func (q requestPort) Publish(ctx context.Context, r core.Request) error {
	return tell(ctx, q.p, func() error {
		if q.p.w.onPublish != nil {
			if err := q.p.w.onPublish(r); err != nil {
				return err
			}
		}
		err := q.p.w.broker.Publish(r)
		if q.p.w.afterPublish != nil {
			q.p.w.afterPublish(r)
		}
		return err
	})
}

func (q requestPort) PublishUnlessRemovalPending(ctx context.Context, r core.Request) error {
	r, replaces := q.p.w.broker.Over(r)
	if !replaces {
		return tell(ctx, q.p, func() error { return nil })
	}
	return q.Publish(ctx, r)
}

func (q requestPort) Republish(ctx context.Context, m core.Message, r core.Request, after time.Duration) error {
	return tell(ctx, q.p, func() error {
		if q.p.w.onRepublish != nil {
			if err := q.p.w.onRepublish(); err != nil {
				return err
			}
		}
		return q.p.w.broker.Republish(m.(*message).delivery, r, after)
	})
}

func (q requestPort) Idle(ctx context.Context, repository string, classes ...core.Class) (bool, error) {
	return ask(ctx, q.p, func() (bool, error) { return q.p.w.broker.Idle(repository, classes...), nil })
}

func (q requestPort) Newest(ctx context.Context) (core.Version, error) {
	return ask(ctx, q.p, func() (core.Version, error) { return q.p.w.broker.Newest(), nil })
}

func (q requestPort) PendingRecords(ctx context.Context, repository, organization string) (map[string]string, error) {
	return ask(ctx, q.p, func() (map[string]string, error) { return q.p.w.broker.PendingRecords(repository, organization), nil })
}

func (l deadLetterPort) Put(ctx context.Context, d core.DeadLetter) error {
	return tell(ctx, l.p, func() error {
		if d.Version == 0 {
			l.p.w.t.Errorf("a dead letter has no version: %+v", d)
		}
		return l.p.w.store.Put(d)
	})
}

func (l deadLetterPort) Clear(ctx context.Context, repository, organization, id string, at core.Version, _ func(core.DeadLetter) bool) error {
	if !l.Has(repository, organization, id) {
		return nil
	}
	return tell(ctx, l.p, done(func() { l.p.w.store.Clear(repository, organization, id, at) }))
}

func (l deadLetterPort) Has(repository, organization, id string) bool {
	return l.p.w.store.Has(repository, organization, id)
}

func (l deadLetterPort) Find(ctx context.Context, repository, organization, id string) (core.DeadLetter, error) {
	return ask(ctx, l.p, func() (core.DeadLetter, error) { return l.p.w.store.Find(repository, organization, id) })
}

func (j jobPort) Create(ctx context.Context, job core.Job) error {
	return tell(ctx, j.p, func() error { return write(j.p.w.store, jobKey(job.ID), 0, job) })
}

func (j jobPort) Get(ctx context.Context, id string) (core.Job, error) {
	return ask(ctx, j.p, func() (core.Job, error) { return j.p.w.store.job(id) })
}

func (j jobPort) Update(ctx context.Context, id string, change func(*core.Job) error) (core.Job, error) {
	return ask(ctx, j.p, func() (core.Job, error) { return update(j.p.w.store, jobKey(id), change) })
}

func (r runPort) CreateOrganization(ctx context.Context, jobID string, run core.OrganizationRun) (bool, error) {
	return ask(ctx, r.p, func() (bool, error) {
		err := write(r.p.w.store, runKey(jobID, run.Organization), 0, run)
		if core.CodeOf(err) == core.CodeConflict {
			return false, nil
		}
		return err == nil, err
	})
}

func (r runPort) Organization(ctx context.Context, jobID, organization string) (core.OrganizationRun, error) {
	run, err := ask(ctx, r.p, func() (core.OrganizationRun, error) {
		return r.p.w.store.run(jobID, organization)
	})
	if r.p.w.afterRead != nil {
		r.p.w.afterRead(r.p)
	}
	return run, err
}

func (r runPort) UpdateOrganization(ctx context.Context, jobID, organization string, change func(*core.OrganizationRun) error) (core.OrganizationRun, error) {
	run, err := ask(ctx, r.p, func() (core.OrganizationRun, error) {
		return r.p.w.store.updateRun(jobID, organization, change)
	})
	if r.p.w.afterUpdate != nil {
		r.p.w.afterUpdate(r.p, run)
	}
	return run, err
}

func (r runPort) Organizations(ctx context.Context, jobID string) ([]core.OrganizationRun, error) {
	return ask(ctx, r.p, func() ([]core.OrganizationRun, error) { return r.p.w.store.runs(jobID) })
}

func (g groupPort) CreateGroup(ctx context.Context, jobID string, number int, runs []core.OrganizationRun) (bool, error) {
	return ask(ctx, g.p, func() (bool, error) {
		err := write(g.p.w.store, groupKey(jobID, number), 0, runs)
		if core.CodeOf(err) == core.CodeConflict {
			return false, nil
		}
		return err == nil, err
	})
}

func (g groupPort) Group(ctx context.Context, jobID string, number int) ([]core.OrganizationRun, error) {
	return ask(ctx, g.p, func() ([]core.OrganizationRun, error) {
		runs, _, err := read[[]core.OrganizationRun](g.p.w.store, groupKey(jobID, number))
		return runs, err
	})
}

func (g groupPort) UpdateGroup(
	ctx context.Context, jobID string, number int, change func([]core.OrganizationRun) error,
) ([]core.OrganizationRun, error) {
	runs, err := ask(ctx, g.p, func() ([]core.OrganizationRun, error) {
		return update(g.p.w.store, groupKey(jobID, number), func(runs *[]core.OrganizationRun) error { return change(*runs) })
	})
	if g.p.w.afterUpdate != nil {
		for _, run := range runs {
			if !run.Moved {
				g.p.w.afterUpdate(g.p, run)
			}
		}
	}
	return runs, err
}

func (g groupPort) EachSum(ctx context.Context, jobID string, after uint64, each func(jobsum.Change) error) error {
	time.Sleep(g.p.w.listingTakes)
	changes, err := ask(ctx, g.p, func() ([]jobsum.Change, error) { return g.p.w.store.sums(jobID, after) })
	for _, change := range changes {
		if err := each(change); err != nil {
			return err
		}
	}
	return err
}

func (g groupPort) UpdateOrganizations(
	ctx context.Context, jobID string, change func(*core.OrganizationRun) error,
) ([]core.OrganizationRun, error) {
	return ask(ctx, g.p, func() ([]core.OrganizationRun, error) {
		runs, err := g.p.w.store.runs(jobID)
		for i := range runs {
			if err == nil {
				runs[i], err = g.p.w.store.updateRun(jobID, runs[i].Organization, change)
			}
		}
		return runs, err
	})
}

func (g notePort) NotePage(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) error {
	return tell(ctx, g.p, func() error {
		g.p.w.store.notePage(jobID+" "+organization, reading, page, ids)
		return nil
	})
}

func (g notePort) IDsOnEarlierPages(
	ctx context.Context, jobID, organization string, reading, page int, ids []uint64,
) (map[uint64]struct{}, error) {
	return ask(ctx, g.p, func() (map[uint64]struct{}, error) {
		noted := g.p.w.store.notedIDs(jobID+" "+organization, reading, page-1)
		maps.DeleteFunc(noted, func(id uint64, _ struct{}) bool { return !slices.Contains(ids, id) })
		return noted, nil
	})
}

func (g notePort) NotedIDs(ctx context.Context, jobID, organization string, reading, last int) ([]uint64, error) {
	return ask(ctx, g.p, func() ([]uint64, error) {
		return slices.Sorted(maps.Keys(g.p.w.store.notedIDs(jobID+" "+organization, reading, last))), nil
	})
}

func (g notePort) NoteInvalid(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) error {
	return tell(ctx, g.p, func() error {
		g.p.w.store.notePage(jobID+" "+organization+invalidNotes, reading, page, ids)
		return nil
	})
}

func (g notePort) NotedInvalid(ctx context.Context, jobID, organization string, reading, last int) ([]uint64, error) {
	return ask(ctx, g.p, func() ([]uint64, error) {
		return slices.Sorted(maps.Keys(g.p.w.store.notedIDs(jobID+" "+organization+invalidNotes, reading, last))), nil
	})
}

func (g notePort) NoteRequestedIDs(ctx context.Context, jobID, organization string, page, epoch int, ids []string) error {
	return tell(ctx, g.p, func() error {
		g.p.w.store.noteLate(jobID+" "+organization, page, epoch, ids)
		return nil
	})
}

func (g notePort) RequestedIDs(ctx context.Context, jobID, organization string, pages map[int]int) ([]string, error) {
	return ask(ctx, g.p, func() ([]string, error) { return g.p.w.store.lateIDs(jobID+" "+organization, pages), nil })
}

func (g notePort) NoteSwept(ctx context.Context, jobID, organization string, step int, ids []string) error {
	return tell(ctx, g.p, func() error {
		g.p.w.store.noteSwept(jobID+" "+organization, step, ids)
		return nil
	})
}

func (g notePort) Swept(ctx context.Context, jobID, organization string, step int) (map[string][]string, error) {
	return ask(ctx, g.p, func() (map[string][]string, error) { return g.p.w.store.swept(jobID+" ", organization, step), nil })
}

func (g notePort) ForgetPages(ctx context.Context, jobID, organization string) error {
	return tell(ctx, g.p, func() error { return g.p.w.store.forget(jobID + " " + organization) })
}

func (i idPort) IDPage(ctx context.Context, jobID, organization string, page int) ([]idlist.ID, error) {
	return ask(ctx, i.p, func() ([]idlist.ID, error) {
		ids, _, err := read[[]idlist.ID](i.p.w.store, idsKey(jobID, organization, page))
		return ids, err
	})
}

func (i idPort) UpdateIDPage(
	ctx context.Context, jobID, organization string, page int, change func([]idlist.ID) error,
) ([]idlist.ID, error) {
	return ask(ctx, i.p, func() ([]idlist.ID, error) {
		return update(i.p.w.store, idsKey(jobID, organization, page), func(ids *[]idlist.ID) error { return change(*ids) })
	})
}

func (s cellPort) Cell(ctx context.Context, name string) (string, uint64, error) {
	time.Sleep(s.p.w.cellTakes)
	c, err := ask(ctx, s.p, func() (cell, error) {
		c, _ := s.p.w.store.get(cellKey(name))
		return c, nil
	})
	return string(c.value), c.revision, err
}

func (s cellPort) SetCell(ctx context.Context, name, jobID string, revision uint64) error {
	return tell(ctx, s.p, func() error {
		if s.p.w.onSetCell != nil {
			if err := s.p.w.onSetCell(s.p, jobID); err != nil {
				return err
			}
		}
		return s.p.w.store.set(cellKey(name), revision, []byte(jobID))
	})
}

func (i indexPort) Get(_ context.Context, alias, id string) (core.StoredDocument, bool, error) {
	if err := i.p.step(); err != nil {
		return core.StoredDocument{}, false, err
	}
	var doc core.StoredDocument
	found := false
	err := i.of(alias, func(e *engine) (err error) {
		doc, found, err = e.Get(id)
		return err
	})
	return doc, found, err
}

func (i indexPort) GetAll(_ context.Context, _ string, ids []string, each func(i int, doc core.StoredDocument, found bool)) error {
	return do(i.p, func() error {
		if i.p.w.onGetAll != nil {
			if err := i.p.w.onGetAll(); err != nil {
				return err
			}
		}
		for n, id := range ids {
			doc, found, err := i.p.w.engine.Get(id)
			if err != nil {
				return err
			}
			each(n, doc, found)
		}
		return nil
	})
}

func (i indexPort) Count(_ context.Context, _ string, scope core.IndexScope) (int64, error) {
	return call(i.p, func() (int64, error) { return i.p.w.engine.Count(scope) })
}

func (i indexPort) Checkpoint(context.Context, string) (mark string, err error) {
	err = do(i.p, func() (err error) {
		mark, err = i.p.w.engine.Checkpoint()
		return err
	})
	return mark, err
}

// of calls f with the engine of an alias.
func (i indexPort) of(alias string, f func(*engine) error) error {
	e := i.p.w.engine
	if alias == core.NextAlias("analyses") {
		if e = e.next; e == nil {
			return core.WrapError(core.CodeIndexBlocked, "the index is missing", core.ErrIndexMissing)
		}
	}
	return f(e)
}

func (i indexPort) Refresh(_ context.Context, alias string) error {
	return do(i.p, func() error { return i.of(alias, (*engine).Refresh) })
}

func (i indexPort) Scan(_ context.Context, alias string, scope core.IndexScope, below core.Version, each func(string, core.Version) error) error {
	return do(i.p, func() error {
		return i.of(alias, func(e *engine) error { return e.Scan(scope, below, each) })
	})
}

func (b probePort) Prepare(_ context.Context, identity string) error {
	return do(b.p, func() error { return b.p.w.engine.Prepare(identity) })
}
func (b probePort) Check(context.Context) error { return do(b.p, b.p.w.engine.Check) }
func (b probePort) Identity(context.Context) (string, error) {
	return call(b.p, b.p.w.engine.Identity)
}

func (u callPort) Organizations(ctx context.Context) ([]string, error) {
	return call(u.p, func() ([]string, error) { return u.u.Organizations(ctx) })
}

func (u callPort) Page(ctx context.Context, org string, offset, limit int, each func(core.Record) error) (core.PageInfo, error) {
	ctx, cancel := u.p.bound(ctx)
	defer cancel()
	return call(u.p, func() (core.PageInfo, error) { return u.u.Page(ctx, org, offset, limit, each) })
}

func (u callPort) Record(ctx context.Context, org, id string) (core.Record, error) {
	ctx, cancel := u.p.bound(ctx)
	defer cancel()
	return call(u.p, func() (core.Record, error) { return u.u.Record(ctx, org, id) })
}

func (e enginePort) Encode(dst []byte, w core.Write) ([]byte, int, int) {
	return e.p.w.engine.Encode(dst, w)
}

func (e enginePort) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	ctx, cancel := e.p.bound(ctx)
	defer cancel()
	return call(e.p, func() ([]core.Result, error) { return e.p.w.engine.Write(ctx, b) })
}

// stop ends the process within limit, and returns the error of Stop.
func (p *process) stop(t tester, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := p.c.Stop(ctx)
	_ = p.writer.Close(ctx)
	return err
}

// letterPort lists the dead letters.
type letterPort struct{ p *process }

func (l letterPort) List(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
	letters, err := ask(ctx, l.p, func() ([]core.DeadLetter, error) { return slices.Collect(maps.Values(l.p.w.store.dead())), nil })
	return slices.DeleteFunc(letters, func(d core.DeadLetter) bool { return !f.Matches(d) }), "", err
}
