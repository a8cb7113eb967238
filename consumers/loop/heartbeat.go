package loop

import (
	"context"
	"sync"
	"time"

	"tutti/internal/core"
)

// heartbeat periodically sends InProgress for the messages in flight.
type heartbeat struct {
	every time.Duration
	mu    sync.Mutex
	held  map[core.Message]int // reference counts
}

func newHeartbeat(every time.Duration) *heartbeat {
	return &heartbeat{every: every, held: make(map[core.Message]int)}
}

func (k *heartbeat) hold(m core.Message) {
	k.mu.Lock()
	k.held[m]++
	k.mu.Unlock()
}

func (k *heartbeat) release(m core.Message) {
	k.mu.Lock()
	if k.held[m]--; k.held[m] <= 0 {
		delete(k.held, m)
	}
	k.mu.Unlock()
}

func (k *heartbeat) run(ctx context.Context) {
	t := time.NewTicker(k.every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			k.send()
		}
	}
}

func (k *heartbeat) send() {
	k.mu.Lock()
	held := make([]core.Message, 0, len(k.held))
	for m := range k.held {
		held = append(held, m)
	}
	k.mu.Unlock()
	for _, m := range held {
		// A message may have been redelivered to another consumer; versions decide whose write stays.
		_ = m.InProgress()
	}
}
