package metadata

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/store"
)

const (
	// eventsAtOnce is how many events one statement removes.
	eventsAtOnce = 256
	// removeTimeout bounds the removal of events that were published just before the caller had enough.
	removeTimeout = 5 * time.Second

	selectEvents       = "SELECT seq, id, study, analysis_id, created_at FROM outbox ORDER BY seq LIMIT $1"
	selectSharedEvents = selectEvents + " FOR UPDATE SKIP LOCKED"
)

// event is a Change as it stands in the outbox.
type event struct {
	seq    int64
	change core.Change
}

// tell writes the event of a change, in the change's own transaction.
func (r *Repository) tell(ctx context.Context, tx *store.Tx, study, analysis string) error {
	id, err := uuid.NewV7()
	if err != nil {
		return core.WrapError(core.CodeInternal, "making an id", err)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO outbox (id, study, analysis_id, created_at) VALUES ($1, $2, $3, $4)",
		id.String(), study, analysis, store.Micros(r.cfg.Now()))
	return store.Fault("writing an event", err)
}

// Pending counts the events that were not relayed yet.
func (r *Repository) Pending(ctx context.Context) (int, error) {
	var n int
	err := r.store.Read().QueryRowContext(ctx, "SELECT count(*) FROM outbox").Scan(&n)
	return n, store.Fault("counting the events", err)
}

// Relay returns the oldest events, at most limit, to publish, and removes those that it published. publish returns an error
// for each change, or nil when all are published; what it refuses stays and is given again. given is how many it was given.
//
// On PostgreSQL several processes relay at once, each other events; on SQLite calls wait for each other. publish may be
// given a change again whose removal did not become durable: the Change's ID is the same then.
func (r *Repository) Relay(ctx context.Context, limit int, publish func(ctx context.Context, changes []core.Change) []error) (given int, err error) {
	if limit < 1 {
		return 0, core.NewError(core.CodeInvalid, "events are relayed one or more at a time")
	}
	if r.store.Postgres() {
		return r.relayShared(ctx, limit, publish)
	}
	return r.relayAlone(ctx, limit, publish)
}

// relayShared keeps the events that it has in hand locked while they are published.
func (r *Repository) relayShared(ctx context.Context, limit int, publish func(context.Context, []core.Change) []error) (int, error) {
	given := 0
	err := r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		given = 0
		events, err := readEvents(ctx, tx, selectSharedEvents, limit)
		if err != nil || len(events) == 0 {
			return err
		}
		given = len(events)
		return removeEvents(ctx, tx, hand(ctx, events, publish))
	})
	return given, err
}

// relayAlone publishes outside of a transaction, which would keep everybody else from writing.
func (r *Repository) relayAlone(ctx context.Context, limit int, publish func(context.Context, []core.Change) []error) (int, error) {
	select {
	case <-r.relaying:
		defer func() { r.relaying <- struct{}{} }()
	case <-ctx.Done():
		return 0, core.WrapError(core.CodeUnavailable, "waiting for another relay", ctx.Err())
	}
	events, err := readEvents(ctx, r.store.Read(), selectEvents, limit)
	if err != nil || len(events) == 0 {
		return 0, err
	}
	published := hand(ctx, events, publish)
	if len(published) > 0 {
		// What is published is removed also when the caller stops just now: it would be published twice.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		err = r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error { return removeEvents(ctx, tx, published) })
	}
	return len(events), err
}

// hand returns events to publish, and returns the places of those that it published.
func hand(ctx context.Context, events []event, publish func(context.Context, []core.Change) []error) []int64 {
	changes := make([]core.Change, len(events))
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
		return nil, store.Fault(doing, err)
	}
	defer func() { _ = rows.Close() }()
	var events []event
	for rows.Next() {
		var e event
		var micros int64
		if err := rows.Scan(&e.seq, &e.change.ID, &e.change.Study, &e.change.AnalysisID, &micros); err != nil {
			return nil, store.Fault(doing, err)
		}
		e.change.At = store.Time(micros)
		events = append(events, e)
	}
	return events, store.Fault(doing, rows.Err())
}

// removeEvents removes events by their places. The last place is repeated up to a power of two, so that there are few
// different statements.
func removeEvents(ctx context.Context, tx *store.Tx, places []int64) error {
	for len(places) > 0 {
		some := places[:min(len(places), eventsAtOnce)]
		places = places[len(some):]
		n := 1
		for n < len(some) {
			n *= 2
		}
		values := make([]any, n)
		for i := range values {
			values[i] = some[min(i, len(some)-1)]
		}
		var text strings.Builder
		text.WriteString("DELETE FROM outbox WHERE seq IN (")
		text.WriteString(parameters(1, n))
		text.WriteByte(')')
		if _, err := tx.ExecContext(ctx, text.String(), values...); err != nil {
			return store.Fault("removing the events that were published", err)
		}
	}
	return nil
}
