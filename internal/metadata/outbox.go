package metadata

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tutti/internal/base/span"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/store"
)

const (
	// maxEventsPerStatement is how many events one statement removes.
	maxEventsPerStatement = 256
	// removeTimeout bounds the removal of published events after the caller's context has ended.
	removeTimeout = 5 * time.Second

	selectEvents       = "SELECT seq, id, study, analysis_id, created_at, traceparent FROM outbox ORDER BY seq LIMIT $1"
	selectSharedEvents = selectEvents + " FOR UPDATE SKIP LOCKED"
)

// event is a row of the outbox.
type event struct {
	seq    int64
	change datamodel.Change
}

// outbox holds an event for every change that affects the index, until it was relayed.
type outbox struct {
	store    *store.Store
	now      func() time.Time
	changed  chan struct{}
	relaying chan struct{} // holds a token while no relay is running
}

func newOutbox(s *store.Store, now func() time.Time) *outbox {
	o := &outbox{store: s, now: now, changed: make(chan struct{}, 1), relaying: make(chan struct{}, 1)}
	o.relaying <- struct{}{}
	return o
}

// Changed returns a channel that is signalled after this process committed a change with an event. Signals may be merged.
func (o *outbox) Changed() <-chan struct{} { return o.changed }

func (o *outbox) signalChanged() {
	select {
	case o.changed <- struct{}{}:
	default: // a signal is pending
	}
}

// writeEvent writes the event of a change in the change's transaction.
func (o *outbox) writeEvent(ctx context.Context, tx *store.Tx, study, analysis string) error {
	id, err := uuid.NewV7()
	if err != nil {
		return core.WrapError(core.CodeInternal, "making an id", err)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO outbox (id, study, analysis_id, created_at, traceparent) VALUES ($1, $2, $3, $4, $5)",
		id.String(), study, analysis, store.Micros(o.now()), span.Traceparent(ctx))
	return store.WrapError("writing an event", err)
}

// Pending returns the number of events that were not relayed yet.
func (o *outbox) Pending(ctx context.Context) (int, error) {
	var n int
	err := o.store.Read().QueryRowContext(ctx, "SELECT count(*) FROM outbox").Scan(&n)
	return n, store.WrapError("counting the events", err)
}

// Relay passes the oldest events, at most limit, to publish and removes those that were published. publish returns an error for
// each change, or nil when all were published; the others stay in the outbox and are passed again. attempted is the number of
// events passed to publish.
//
// On PostgreSQL several processes relay different events at once; on SQLite calls wait for each other. publish receives a
// change again, with the same Change.ID, when its removal did not become durable.
func (o *outbox) Relay(ctx context.Context, limit int, publish func(ctx context.Context, changes []datamodel.Change) []error) (attempted int, err error) {
	if limit < 1 {
		return 0, core.NewError(core.CodeInvalid, "the number of events to relay must be at least 1")
	}
	if o.store.Postgres() {
		return o.relayShared(ctx, limit, publish)
	}
	return o.relayExclusive(ctx, limit, publish)
}

// relayShared locks its events while they are published.
func (o *outbox) relayShared(ctx context.Context, limit int, publish func(context.Context, []datamodel.Change) []error) (int, error) {
	attempted := 0
	err := o.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		attempted = 0
		events, err := readEvents(ctx, tx, selectSharedEvents, limit)
		if err != nil || len(events) == 0 {
			return err
		}
		attempted = len(events)
		return removeEvents(ctx, tx, publishEvents(ctx, events, publish))
	})
	return attempted, err
}

// relayExclusive publishes outside of a transaction, which would block all other writers.
func (o *outbox) relayExclusive(ctx context.Context, limit int, publish func(context.Context, []datamodel.Change) []error) (int, error) {
	select {
	case <-o.relaying:
		defer func() { o.relaying <- struct{}{} }()
	case <-ctx.Done():
		return 0, core.WrapError(core.CodeUnavailable, "waiting for another relay", ctx.Err())
	}
	events, err := readEvents(ctx, o.store.Read(), selectEvents, limit)
	if err != nil || len(events) == 0 {
		return 0, err
	}
	published := publishEvents(ctx, events, publish)
	if len(published) > 0 {
		// Remove published events even when the caller's context has just ended: they would be published twice.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		err = o.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error { return removeEvents(ctx, tx, published) })
	}
	return len(events), err
}

// publishEvents passes events to publish and returns the sequence numbers of those that were published.
func publishEvents(ctx context.Context, events []event, publish func(context.Context, []datamodel.Change) []error) []int64 {
	changes := make([]datamodel.Change, len(events))
	for i, e := range events {
		changes[i] = e.change
	}
	errs := publish(ctx, changes)
	published := make([]int64, 0, len(events))
	for i, e := range events {
		if errs == nil || i < len(errs) && errs[i] == nil {
			published = append(published, e.seq)
		}
	}
	return published
}

func readEvents(ctx context.Context, conn store.Conn, text string, limit int) ([]event, error) {
	const doing = "reading the events"
	rows, err := conn.QueryContext(ctx, text, limit)
	if err != nil {
		return nil, store.WrapError(doing, err)
	}
	defer func() { _ = rows.Close() }()
	var events []event
	for rows.Next() {
		var e event
		var micros int64
		if err := rows.Scan(&e.seq, &e.change.ID, &e.change.Study, &e.change.AnalysisID, &micros, &e.change.Traceparent); err != nil {
			return nil, store.WrapError(doing, err)
		}
		e.change.At = store.Time(micros)
		events = append(events, e)
	}
	return events, store.WrapError(doing, rows.Err())
}

// removeEvents removes events by their sequence numbers. It repeats the last number until their count is a power of two, to keep the
// number of different statements small.
func removeEvents(ctx context.Context, tx *store.Tx, seqs []int64) error {
	for len(seqs) > 0 {
		some := seqs[:min(len(seqs), maxEventsPerStatement)]
		seqs = seqs[len(some):]
		n := 1
		for n < len(some) {
			n *= 2
		}
		values := make([]any, n)
		for i := range values {
			values[i] = some[min(i, len(some)-1)]
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM outbox WHERE seq IN ("+placeholders(1, n)+")", values...); err != nil {
			return store.WrapError("removing the events that were published", err)
		}
	}
	return nil
}
