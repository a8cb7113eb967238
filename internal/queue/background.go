package queue

import (
	"context"
	"errors"
	"time"

	"tutti/internal/retry"
)

const (
	// minRestartDelay and maxRestartDelay bound the pause after an error of a background loop.
	minRestartDelay = 100 * time.Millisecond
	maxRestartDelay = 10 * time.Second
	// lagInterval is how often the metric of pending messages is updated.
	lagInterval = 5 * time.Second
)

// restartOnError runs follow, and again after every error, until ctx ends. The pauses grow while it fails quickly.
func (q *Queue) restartOnError(ctx context.Context, what string, follow func(context.Context) error) {
	rest := minRestartDelay
	for ctx.Err() == nil {
		if _, connected := q.connection.awaitConnected(ctx, q.nc, time.Now().Add(watchWait), nil); !connected {
			continue
		}
		began := time.Now()
		err := follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxRestartDelay {
			rest = minRestartDelay
		}
		if q.nc.IsConnected() && !errors.Is(err, errConnectionChanged) {
			q.log.Warn("restarting the watch of a stream", "watch", what, "err", err)
		}
		if retry.Sleep(ctx, retry.Jitter(rest)) != nil {
			return
		}
		rest = min(2*rest, maxRestartDelay)
	}
}

// refreshLag updates the metric of pending messages, until ctx ends.
func (q *Queue) refreshLag(ctx context.Context) {
	lag := time.NewTicker(lagInterval)
	defer lag.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-lag.C:
		}
		if q.metrics == nil {
			continue
		}
		if _, err := q.Pending(ctx); err != nil && ctx.Err() == nil {
			q.log.Debug("reading the consumers' backlog failed", "err", err)
		}
	}
}

func (q *Queue) openConsumers() []*Consumer {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]*Consumer, 0, len(q.consumers))
	for c := range q.consumers {
		all = append(all, c)
	}
	return all
}
