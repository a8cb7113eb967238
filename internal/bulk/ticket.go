package bulk

import (
	"context"
	"slices"
	"sync"

	"tutti/internal/core"
)

// Ticket collects the Results of a group of Writes, such as one record or one page. Made by Writer.Ticket; its methods
// may be called by several goroutines.
type Ticket struct {
	w    *Writer
	done chan struct{}

	mu      sync.Mutex
	results []core.Result
	// open counts the results that are still to come.
	open   int
	sealed bool
	// fills are the batches that hold Writes of this ticket and were still filling when the last one was added.
	fills []*batch
}

// Ticket makes an empty Ticket.
func (w *Writer) Ticket() *Ticket { return &Ticket{w: w, done: make(chan struct{})} }

// Expect makes room for the Results of n Writes; a hint that saves copying.
func (t *Ticket) Expect(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.results = slices.Grow(t.results, n)
}

// Seal says that no more Writes will be added. The batches that hold the ticket's Writes are sent at once if nothing of
// their index flies, else when a flight ends, the batch is full or Config.MaxAge has passed. Sealing twice does
// nothing.
func (t *Ticket) Seal() {
	t.mu.Lock()
	if t.sealed {
		t.mu.Unlock()
		return
	}
	t.sealed = true
	fills, open := t.fills, t.open
	t.fills = nil
	t.mu.Unlock()
	if open == 0 {
		close(t.done)
		return
	}
	t.w.expect(fills)
}

// Wait waits until the ticket is sealed and each of its Writes has its Result, and returns them in the order of the Adds.
// An error means that ctx ended before; the Writes then go on by themselves, and Wait may be called again.
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

// take opens a slot for a Write that goes into b. The Writer is locked.
func (t *Ticket) take(b *batch) (slot int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sealed {
		return 0, false
	}
	t.note(b)
	t.open++
	t.results = append(t.results, core.Result{})
	return len(t.results) - 1, true
}

// note remembers b for Seal, in the place of a batch that no longer fills.
func (t *Ticket) note(b *batch) {
	free := -1
	for i, f := range t.fills {
		if f == b {
			return
		}
		if !f.filling() {
			free = i
		}
	}
	if free >= 0 {
		t.fills[free] = b
		return
	}
	t.fills = append(t.fills, b)
}

// settle adds a Write whose Result is known without sending it.
func (t *Ticket) settle(r core.Result) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sealed {
		return false
	}
	t.results = append(t.results, r)
	return true
}

// delivery hands Results to tickets, and locks each ticket once for a run of its Writes. The zero value is ready.
type delivery struct {
	t *Ticket
}

func (d *delivery) put(m meta, r core.Result) {
	if d.t != m.ticket {
		d.flush()
		d.t = m.ticket
		d.t.mu.Lock()
	}
	d.t.results[m.slot] = r
	d.t.open--
}

// flush unlocks the ticket of the last put. It must be called before anything that takes time.
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
