package store

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/store/prepared"
)

const (
	// maxGroup bounds the transactions that are synced together.
	maxGroup = 256
	// maxGroupTime is how long waiting transactions are added to a group before it is committed.
	maxGroupTime = 20 * time.Millisecond
)

// writer runs SQLite's transactions one after the other on one connection. Those that wait during a sync form a group that is
// committed together, each in its own savepoint, so that a failed one does not roll back the others.
type writer struct {
	conn    *prepared.Writer
	metrics *Metrics
	ended   chan struct{}
	group   []*job // jobs in flight; used only by run

	mu      sync.Mutex
	waiting []*job
	stopped bool
	wake    chan struct{}
}

// job is a transaction that waits for the writer.
type job struct {
	ctx    context.Context //nolint:containedctx // the caller's, which waits for the job
	change func(context.Context, *Tx) error
	err    error
	done   chan struct{}
}

func newWriter(ctx context.Context, db *sql.DB, metrics *Metrics) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, WrapError("opening the store to write", err)
	}
	w := &writer{conn: prepared.NewWriter(conn), metrics: metrics, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	go w.run()
	return w, nil
}

// do runs change and waits until it is durable or has failed.
func (w *writer) do(ctx context.Context, change func(context.Context, *Tx) error) error {
	j := &job{ctx: ctx, change: change, done: make(chan struct{})}
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return closedError()
	}
	w.waiting = append(w.waiting, j)
	w.mu.Unlock()
	w.signal()
	select {
	case <-j.done:
	case <-ctx.Done():
		if w.cancel(j) {
			return core.WrapError(core.CodeUnavailable, "waiting for the store", ctx.Err())
		}
		<-j.done // in flight: the writer uses the caller's values
	}
	return j.err
}

// signal wakes the writer up.
func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// cancel removes a waiting job and reports whether j was still waiting.
func (w *writer) cancel(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.waiting, j)
	if i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
	return i >= 0
}

// pop returns the job that waited longest, nil when there is none.
func (w *writer) pop() *job {
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

// next waits for a job; it returns nil once the writer was stopped.
func (w *writer) next() *job {
	for {
		if j := w.pop(); j != nil {
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

// stop ends the writer after the jobs in flight; waiting jobs fail.
func (w *writer) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.failWaiting(closedError())
	w.signal()
}

// failWaiting ends all waiting jobs with err.
func (w *writer) failWaiting(err error) {
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
			w.conn.Close()
			close(w.ended)
			return
		}
		// A change ended its goroutine, like a test's FailNow. The other jobs must not wait forever.
		w.rollback()
		w.finish(core.NewError(core.CodeInternal, "a transaction ended without a result"))
		go w.run()
	}()
	for j := w.next(); j != nil; j = w.next() {
		w.runGroup(j)
		w.finish(nil)
	}
	left = true
}

// finish ends the jobs in flight; those without an error of their own get err.
func (w *writer) finish(err error) {
	for _, j := range w.group {
		if j.err == nil {
			j.err = err
		}
		close(j.done)
	}
	w.group = w.group[:0]
}

// runGroup runs first and the waiting jobs in one transaction.
func (w *writer) runGroup(first *job) {
	w.group = append(w.group, first)
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		// Another process writes for longer than a statement waits. The waiting jobs fail at once, instead of waiting that long each.
		first.err = WrapError("beginning a transaction", err)
		w.failWaiting(first.err)
		return
	}
	if !w.fillGroup(first) {
		w.rerunEach()
		return
	}
	if err := w.exec("COMMIT"); err != nil {
		if w.succeeded() > 1 {
			w.rerunEach()
			return
		}
		w.rollback()
		w.fail(WrapError("committing a transaction", err))
		return
	}
	w.metrics.commit(w.succeeded())
}

// fillGroup runs first and the waiting jobs, and reports whether the transaction still exists.
func (w *writer) fillGroup(first *job) bool {
	if !w.runInSavepoint(first) {
		return false
	}
	for until := time.Now().Add(maxGroupTime); len(w.group) < maxGroup && time.Now().Before(until); {
		j := w.pop()
		if j == nil {
			break
		}
		w.group = append(w.group, j)
		if !w.runInSavepoint(j) {
			return false
		}
	}
	return true
}

// succeeded counts the jobs in flight that have not failed.
func (w *writer) succeeded() int {
	n := 0
	for _, j := range w.group {
		if j.err == nil {
			n++
		}
	}
	return n
}

// fail sets err for the jobs in flight that have not failed.
func (w *writer) fail(err error) {
	for _, j := range w.group {
		if j.err == nil {
			j.err = err
		}
	}
}

// runInSavepoint runs a job in a savepoint, and reports whether the shared transaction still exists: some failures, such as a full
// disk, roll back all of it.
func (w *writer) runInSavepoint(j *job) bool {
	if err := j.ctx.Err(); err != nil {
		j.err = core.WrapError(core.CodeUnavailable, "waiting for the store", err)
		return true
	}
	if err := w.exec("SAVEPOINT one"); err != nil {
		j.err = WrapError("beginning a transaction", err)
		return false
	}
	if j.err = w.change(j); j.err != nil && w.exec("ROLLBACK TO one") != nil {
		return false
	}
	if err := w.exec("RELEASE one"); err != nil {
		if j.err == nil {
			j.err = WrapError("ending a transaction", err)
		}
		return false
	}
	return true
}

// change runs a job's change.
func (w *writer) change(j *job) error {
	tx := &groupTx{conn: w.conn}
	err := runChange(j.ctx, &Tx{Conn: tx}, j.change)
	undone := tx.end()
	if err != nil {
		return err
	}
	return undone
}

// rerunEach rolls the shared transaction back, and runs each of its jobs that has not failed in a transaction of its own.
func (w *writer) rerunEach() {
	w.rollback()
	for _, j := range w.group {
		if j.err == nil {
			j.err = w.runSingle(j)
		}
	}
}

func (w *writer) runSingle(j *job) error {
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return WrapError("beginning a transaction", err)
	}
	if err := w.change(j); err != nil {
		w.rollback()
		return err
	}
	if err := w.exec("COMMIT"); err != nil {
		w.rollback()
		return WrapError("committing a transaction", err)
	}
	w.metrics.commit(1)
	return nil
}

// rollback rolls the shared transaction back, if there still is one.
func (w *writer) rollback() { _ = w.exec("ROLLBACK") }

func (w *writer) exec(statement string) error {
	// Not a caller's context: its end must not roll back the group.
	_, err := w.conn.ExecContext(context.Background(), statement)
	return err
}
