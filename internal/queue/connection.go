package queue

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// connectionState tells those who wait for messages that the connection went or came back: the server forgets their pulls with the
// connection.
type connectionState struct {
	mu      sync.Mutex
	changed chan struct{}
}

func newConnectionState() *connectionState { return &connectionState{changed: make(chan struct{})} }

// broadcast wakes everybody who watches.
func (l *connectionState) broadcast() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

// changes returns a channel that is closed when the connection next goes or comes.
func (l *connectionState) changes() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// awaitConnected waits until nc is connected, ctx or ended ends or the time is over; it reports whether nc is connected, with the channel
// that tells when that changes.
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
