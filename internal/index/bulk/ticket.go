package bulk

import (
	"context"
	"slices"
	"sync"

	"tutti/internal/core"
)

// Ticket collects the Results of a group of Writes, such as one record or one page. It is created by Writer.Ticket and safe for
// concurrent use.
type Ticket struct {
	w    *Writer
	done chan struct{}

	mu      sync.Mutex
	results []core.Result
	// open is the number of missing results.
	open   int
	sealed bool
	// filling are the batches with Writes of this ticket that were filling when the last one was added.
	filling []*batch
}

// Ticket returns an empty Ticket.
func (w *Writer) Ticket() *Ticket { return &Ticket{w: w, done: make(chan struct{})} }

// Expect allocates space for the Results of n Writes, as a hint.
func (t *Ticket) Expect(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.results = slices.Grow(t.results, n)
}

// Seal marks the ticket as complete: no more Writes can be added. The batches with the ticket's Writes are sent at once if no
// request of their index is in flight, otherwise when one ends, the batch is full or Config.MaxAge has passed. Further calls do
// nothing.
func (t *Ticket) Seal() {
	t.mu.Lock()
	if t.sealed {
		t.mu.Unlock()
		return
	}
	t.sealed = true
	batches, open := t.filling, t.open
	t.filling = nil
	t.mu.Unlock()
	if open == 0 {
		close(t.done)
		return
	}
	t.w.markAwaited(batches)
}

// Wait waits until the ticket is sealed and all its Writes have their Results, and returns them in the order of the Adds. An error
// means that ctx ended first; the Writes continue, and Wait may be called again.
func (t *Ticket) Wait(ctx context.Context) ([]core.Result, error) {
	select {
	case <-t.done:
		return t.results, nil
	default:
	}
	select {
	case <-t.done:
		return t.results, nil
	case <-ctx.Done():
		return nil, core.WrapError(core.CodeUnavailable, "waiting for bulk results", ctx.Err())
	}
}

// addSlot adds a result slot for a Write in b. The Writer is locked.
func (t *Ticket) addSlot(b *batch) (slot int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sealed {
		return 0, false
	}
	t.addBatch(b)
	t.open++
	t.results = append(t.results, core.Result{})
	return len(t.results) - 1, true
}

// addBatch records b for Seal, replacing a batch that is no longer filling.
func (t *Ticket) addBatch(b *batch) {
	free := -1
	for i, f := range t.filling {
		if f == b {
			return
		}
		if !f.isFilling() {
			free = i
		}
	}
	if free >= 0 {
		t.filling[free] = b
		return
	}
	t.filling = append(t.filling, b)
}

// addResult adds a Write whose Result is known without sending it.
func (t *Ticket) addResult(r core.Result) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sealed {
		return false
	}
	t.results = append(t.results, r)
	return true
}

// delivery delivers Results to tickets, locking a ticket once for consecutive Writes. The zero value is ready.
type delivery struct {
	t *Ticket
}

func (d *delivery) put(m itemState, r core.Result) {
	if d.t != m.ticket {
		d.flush()
		d.t = m.ticket
		d.t.mu.Lock()
	}
	d.t.results[m.slot] = r
	d.t.open--
}

// flush unlocks the ticket of the last put. It must be called before anything slow.
func (d *delivery) flush() {
	if d.t == nil {
		return
	}
	done := d.t.sealed && d.t.open == 0
	d.t.mu.Unlock()
	if done {
		close(d.t.done)
	}
	d.t = nil
}
