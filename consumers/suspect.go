package consumers

import (
	"context"
	"time"

	"tutti/internal/core"
)

const (
	// suspectDeliveries is how often a record was in hand that may be what ended the processes before this one.
	suspectDeliveries = 3
	// suspectWindow, in ack waits, is how long after the start such records come: they are those that were in hand.
	suspectWindow = 3
	// suspectPause lets the other records end before the one that is left as the suspect is worked on.
	suspectPause = time.Second
)

// suspicious tells whether m may be what ended the processes before this one: it was in hand again and again, and this
// process has just begun. Most of them only stood beside the one that did it.
func (r *repository) suspicious(m core.Message) bool {
	return m.Deliveries() >= suspectDeliveries && time.Since(r.c.startedAt) < suspectWindow*r.c.cfg.AckWait
}

// workAlone works on suspicious records one after the other, so that those before the one that ends the process end. Those
// behind it were delivered as often, without having been worked on; before that counts against them they are published
// again, as if they were new, and end while the suspect waits a moment.
func (r *repository) workAlone(ctx context.Context, m core.Message, free func()) {
	last := m.Deliveries() > r.c.cfg.MaxDeliver/2
	switch {
	case !last:
		if r.suspects.Acquire(r.c.draining, 1) != nil {
			r.c.keeper.release(m)
			r.giveBack(context.WithoutCancel(ctx), m, 0)
			return
		}
	case !r.suspects.TryAcquire(1):
		r.c.keeper.release(m)
		r.giveBack(ctx, m, 0)
		return
	}
	defer r.suspects.Release(1)
	if last && sleep(r.c.draining, suspectPause) != nil {
		r.c.keeper.release(m)
		r.giveBack(context.WithoutCancel(ctx), m, 0)
		return
	}
	r.workOnRecord(ctx, m, free)
}
