package natsconn

import (
	"context"
	"sync"
	"time"
)

// connectionState wakes waiting goroutines when the connection is lost or restored: the server forgets pulls when
// their connection closes.
type connectionState struct {
	mu      sync.Mutex
	changed chan struct{}
}

func newConnectionState() *connectionState { return &connectionState{changed: make(chan struct{})} }

// broadcast wakes all goroutines that wait for a change.
func (l *connectionState) broadcast() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

// changes returns a channel that is closed when the connection is next lost or restored.
func (l *connectionState) changes() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// AwaitConnected blocks until the connection is there, ctx or ended is done, or until has passed. It reports whether the connection is
// there, and returns the channel that is closed when it is next lost or restored.
func (c *Conn) AwaitConnected(ctx context.Context, until time.Time, ended <-chan struct{}) (<-chan struct{}, bool) {
	var timer *time.Timer
	for {
		changed := c.state.changes()
		if c.NC.IsConnected() {
			return changed, true
		}
		if timer == nil {
			timer = time.NewTimer(time.Until(until))
			defer timer.Stop()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return changed, false
		case <-ended:
			return changed, false
		case <-timer.C:
			return changed, false
		}
	}
}
