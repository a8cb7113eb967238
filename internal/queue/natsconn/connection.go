package natsconn

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
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

// awaitConnected blocks until nc is connected, ctx or ended is done, or until has passed. It reports whether nc is
// connected and returns the channel that is closed on the next change.
func (l *connectionState) awaitConnected(
	ctx context.Context, nc *nats.Conn, until time.Time, ended <-chan struct{},
) (<-chan struct{}, bool) {
	var timer *time.Timer
	for {
		changed := l.changes()
		if nc.IsConnected() {
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
