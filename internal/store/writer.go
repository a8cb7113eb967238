package store

import (
	"context"
	"database/sql"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"tutti/internal/core"
)

const (
	// maxTogether is how many transactions are synced together at most.
	maxTogether = 256
	// maxGather is how long transactions that are there are added to the one that will be synced.
	maxGather = 20 * time.Millisecond
)

// writer runs SQLite's transactions one after the other on one connection. Those that wait while one is synced are synced
// together: each in a savepoint of its own, so that one that fails undoes nothing of the others.
type writer struct {
	db      *sql.DB
	metrics *Metrics
	jobs    chan *job
	ended   chan struct{}

	mu      sync.RWMutex
	stopped bool
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
	w := &writer{db: db, metrics: metrics, jobs: make(chan *job, maxTogether), ended: make(chan struct{})}
	go w.run(conn)
	return w, nil
}

// do waits until change is durable, or did not happen.
func (w *writer) do(ctx context.Context, change func(context.Context, *Tx) error) error {
	j := &job{ctx: ctx, change: change, done: make(chan struct{})}
	if err := w.put(ctx, j); err != nil {
		return err
	}
	<-j.done // the writer leaves out a job whose context has ended, and bounds the others
	return j.err
}

func (w *writer) put(ctx context.Context, j *job) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.stopped {
		return core.NewError(core.CodeUnavailable, "the store is closed")
	}
	select {
	case w.jobs <- j:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "waiting for the store", ctx.Err())
	}
}

// stop ends the writer after the jobs that wait; ctx bounds how long it is waited for.
func (w *writer) stop(ctx context.Context) {
	w.mu.Lock()
	if !w.stopped {
		w.stopped = true
		close(w.jobs)
	}
	w.mu.Unlock()
	select {
	case <-w.ended:
	case <-ctx.Done():
	}
}

func (w *writer) run(conn *sql.Conn) {
	defer close(w.ended)
	defer func() { _ = conn.Close() }()
	for j := range w.jobs {
		done := w.together(conn, j)
		for _, j := range done {
			close(j.done)
		}
	}
}

// together runs first and what else waits in one transaction, and gives the jobs whose outcome is known then.
func (w *writer) together(conn *sql.Conn, first *job) []*job {
	ctx := context.Background() // a caller that goes away must not undo the others' work
	jobs := []*job{first}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		first.err = Fault("beginning a transaction", err)
		return jobs
	}
	until := time.Now().Add(maxGather)
	w.one(conn, first)
gather:
	for len(jobs) < maxTogether && time.Now().Before(until) {
		select {
		case j, open := <-w.jobs:
			if !open {
				break gather
			}
			jobs = append(jobs, j)
			w.one(conn, j)
		default:
			break gather
		}
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		err = Fault("committing a transaction", err)
		_, _ = conn.ExecContext(ctx, "ROLLBACK") // there may be none any more
		for _, j := range jobs {
			if j.err == nil {
				j.err = err
			}
		}
	}
	w.metrics.commit(len(jobs))
	return jobs
}

// one runs a job in a savepoint.
func (w *writer) one(conn *sql.Conn, j *job) {
	if err := j.ctx.Err(); err != nil {
		j.err = core.WrapError(core.CodeUnavailable, "waiting for the store", err)
		return
	}
	ctx := context.WithoutCancel(j.ctx) // an interrupted statement would undo the others' work as well
	if _, err := conn.ExecContext(ctx, "SAVEPOINT one"); err != nil {
		j.err = Fault("beginning a transaction", err)
		return
	}
	if j.err = guard(ctx, &Tx{Conn: conn}, j.change); j.err != nil {
		_, _ = conn.ExecContext(ctx, "ROLLBACK TO one") // COMMIT fails when this does
	}
	if _, err := conn.ExecContext(ctx, "RELEASE one"); err != nil && j.err == nil {
		j.err = Fault("ending a transaction", err)
	}
}

// guard runs change and makes an error of a panic, so that the database is never left inside a transaction.
func guard(ctx context.Context, tx *Tx, change func(context.Context, *Tx) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = core.WrapError(core.CodeInternal, "an internal error occurred", fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	return change(ctx, tx)
}
