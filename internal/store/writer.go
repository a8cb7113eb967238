package store

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"

	"tutti/internal/core"
)

const (
	// maxTogether is how many transactions are synced together at most.
	maxTogether = 256
	// maxGather is how long transactions that wait are added to the one that will be synced.
	maxGather = 20 * time.Millisecond
)

// writer runs SQLite's transactions one after the other on one connection. Those that wait while one is synced are synced
// together: each in a savepoint of its own, so that one that fails undoes nothing of the others.
type writer struct {
	conn    *statements
	metrics *Metrics
	ended   chan struct{}
	group   []*job // the writer's own: what it has in hand

	mu      sync.Mutex
	waiting []*job
	stopped bool
	wake    chan struct{}
}

// job is a transaction that waits for the writer.
type job struct {
	ctx    context.Context //nolint:containedctx // the caller's, who waits for the job
	change func(context.Context, *Tx) error
	err    error
	done   chan struct{}
}

func newWriter(ctx context.Context, db *sql.DB, metrics *Metrics) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, Fault("opening the store to write", err)
	}
	w := &writer{conn: newStatements(conn), metrics: metrics, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	go w.run()
	return w, nil
}

// do waits until change is durable, or did not happen.
func (w *writer) do(ctx context.Context, change func(context.Context, *Tx) error) error {
	j := &job{ctx: ctx, change: change, done: make(chan struct{})}
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return closedFault()
	}
	w.waiting = append(w.waiting, j)
	w.mu.Unlock()
	w.nudge()
	select {
	case <-j.done:
	case <-ctx.Done():
		if w.withdraw(j) {
			return core.WrapError(core.CodeUnavailable, "waiting for the store", ctx.Err())
		}
		<-j.done // the writer has it in hand, and with it what belongs to the caller
	}
	return j.err
}

// nudge wakes the writer.
func (w *writer) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// withdraw reports whether j was still waiting; then it does no longer.
func (w *writer) withdraw(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.waiting, j)
	if i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
	return i >= 0
}

// take returns the job that waits longest, nil when there is none.
func (w *writer) take() *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return nil
	}
	j := w.waiting[0]
	w.waiting[0] = nil
	w.waiting = w.waiting[1:]
	return j
}

// next waits for a job; nil when the writer was stopped.
func (w *writer) next() *job {
	for {
		if j := w.take(); j != nil {
			return j
		}
		w.mu.Lock()
		stopped := w.stopped
		w.mu.Unlock()
		if stopped {
			return nil
		}
		<-w.wake
	}
}

// stop ends the writer after what it has in hand; jobs that still wait are told that they did not happen.
func (w *writer) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.refuse(closedFault())
	w.nudge()
}

// refuse ends all jobs that wait.
func (w *writer) refuse(err error) {
	w.mu.Lock()
	refused := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	for _, j := range refused {
		j.err = err
		close(j.done)
	}
}

func (w *writer) run() {
	left := false
	defer func() {
		if left {
			w.conn.close()
			close(w.ended)
			return
		}
		// A change has ended its goroutine, as a test's FailNow does. The others must not wait for ever.
		w.rollback()
		w.tell(core.NewError(core.CodeInternal, "a transaction ended without a result"))
		go w.run()
	}()
	for j := w.next(); j != nil; j = w.next() {
		w.together(j)
		w.tell(nil)
	}
	left = true
}

// tell ends the jobs in hand, those without an error of their own with err.
func (w *writer) tell(err error) {
	for _, j := range w.group {
		if j.err == nil {
			j.err = err
		}
		close(j.done)
	}
	w.group = w.group[:0]
}

// together runs first and what else waits in one transaction.
func (w *writer) together(first *job) {
	w.group = append(w.group, first)
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		// Another process writes, for longer than a statement waits: nobody shall wait for that long one after the other.
		first.err = Fault("beginning a transaction", err)
		w.refuse(first.err)
		return
	}
	if !w.gather(first) {
		w.again()
		return
	}
	if err := w.exec("COMMIT"); err != nil {
		if w.open() > 1 {
			w.again()
			return
		}
		w.rollback()
		w.fail(Fault("committing a transaction", err))
		return
	}
	w.metrics.commit(w.open())
}

// gather runs first and what waits, and reports whether the transaction is still there.
func (w *writer) gather(first *job) bool {
	if !w.one(first) {
		return false
	}
	for until := time.Now().Add(maxGather); len(w.group) < maxTogether && time.Now().Before(until); {
		j := w.take()
		if j == nil {
			break
		}
		w.group = append(w.group, j)
		if !w.one(j) {
			return false
		}
	}
	return true
}

// open counts the jobs in hand that have not failed.
func (w *writer) open() int {
	n := 0
	for _, j := range w.group {
		if j.err == nil {
			n++
		}
	}
	return n
}

// fail returns err to the jobs in hand that have not failed.
func (w *writer) fail(err error) {
	for _, j := range w.group {
		if j.err == nil {
			j.err = err
		}
	}
}

// one runs a job in a savepoint, and reports whether the transaction that it shares is still there: some failures, such as a
// full disk, undo the whole.
func (w *writer) one(j *job) bool {
	if err := j.ctx.Err(); err != nil {
		j.err = core.WrapError(core.CodeUnavailable, "waiting for the store", err)
		return true
	}
	if err := w.exec("SAVEPOINT one"); err != nil {
		j.err = Fault("beginning a transaction", err)
		return false
	}
	if j.err = w.change(j); j.err != nil && w.exec("ROLLBACK TO one") != nil {
		return false
	}
	if err := w.exec("RELEASE one"); err != nil {
		if j.err == nil {
			j.err = Fault("ending a transaction", err)
		}
		return false
	}
	return true
}

// change runs the change of a job.
func (w *writer) change(j *job) error {
	tx := &shared{conn: w.conn}
	err := guard(j.ctx, &Tx{Conn: tx}, j.change)
	undone := tx.end()
	if err != nil {
		return err
	}
	return undone
}

// again undoes the shared transaction, and runs each job in it that has not failed in one of its own.
func (w *writer) again() {
	w.rollback()
	for _, j := range w.group {
		if j.err == nil {
			j.err = w.alone(j)
		}
	}
}

func (w *writer) alone(j *job) error {
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return Fault("beginning a transaction", err)
	}
	if err := w.change(j); err != nil {
		w.rollback()
		return err
	}
	if err := w.exec("COMMIT"); err != nil {
		w.rollback()
		return Fault("committing a transaction", err)
	}
	w.metrics.commit(1)
	return nil
}

// rollback undoes the shared transaction; there may be none any more.
func (w *writer) rollback() { _ = w.exec("ROLLBACK") }

func (w *writer) exec(statement string) error {
	// Not a caller's context: one that goes away must not undo the others' work.
	_, err := w.conn.ExecContext(context.Background(), statement)
	return err
}
