package metadata

import (
	"context"
	"sync"

	"tutti/internal/core"
)

// turns lets those of this process who rewrite one analysis do it one after the other, so that they need not do it again
// because of each other.
type turns struct {
	mu  sync.Mutex
	ids map[string]*turn
}

// turn is that of one analysis.
type turn struct {
	free  chan struct{} // holds a token while nobody has the turn
	users int
}

func newTurns() *turns { return &turns{ids: map[string]*turn{}} }

// take waits for the turn of an analysis. Who gets it calls leave.
func (t *turns) take(ctx context.Context, id string) (leave func(), err error) {
	t.mu.Lock()
	own := t.ids[id]
	if own == nil {
		own = &turn{free: make(chan struct{}, 1)}
		own.free <- struct{}{}
		t.ids[id] = own
	}
	own.users++
	t.mu.Unlock()
	select {
	case <-own.free:
		return func() {
			own.free <- struct{}{}
			t.quit(id, own)
		}, nil
	case <-ctx.Done():
		t.quit(id, own)
		return nil, core.WrapError(core.CodeUnavailable, "waiting for another change of the analysis", ctx.Err())
	}
}

func (t *turns) quit(id string, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.ids, id)
	}
}
