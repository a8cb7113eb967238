package consumers

import (
	"context"
	"sync"
	"time"

	"tutti/internal/core"
)

// keeper tells the queue again and again that the messages in hand are worked on.
type keeper struct {
	every time.Duration
	mu    sync.Mutex
	held  map[core.Message]int // how many hold it
}

func newKeeper(every time.Duration) *keeper {
	return &keeper{every: every, held: make(map[core.Message]int)}
}

func (k *keeper) hold(m core.Message) {
	k.mu.Lock()
	k.held[m]++
	k.mu.Unlock()
}

func (k *keeper) release(m core.Message) {
	k.mu.Lock()
	if k.held[m]--; k.held[m] <= 0 {
		delete(k.held, m)
	}
	k.mu.Unlock()
}

func (k *keeper) run(ctx context.Context) {
	t := time.NewTicker(k.every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			k.beat()
		}
	}
}

func (k *keeper) beat() {
	k.mu.Lock()
	held := make([]core.Message, 0, len(k.held))
	for m := range k.held {
		held = append(held, m)
	}
	k.mu.Unlock()
	for _, m := range held {
		// A message that the server delivered to another consumer is coped with when it ends: versions decide.
		_ = m.InProgress()
	}
}
