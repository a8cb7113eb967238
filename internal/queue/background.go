package queue

import (
	"context"
	"errors"
	"time"

	"tutti/internal/retry"
)

const (
	// minRestartDelay and maxRest bound the rest after a fault of a background loop.
	minRestartDelay = 100 * time.Millisecond
	maxRestartDelay = 10 * time.Second
	// lagInterval is how often the metric of waiting messages is brought up to date.
	lagInterval = 5 * time.Second
)

// restartOnError runs follow, again after every fault, until ctx ends. The rests in between grow while it ends at once.
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
			q.log.Warn("watch of a stream begins again", "watch", what, "err", err)
		}
		if retry.Sleep(ctx, retry.Jitter(rest)) != nil {
			return
		}
		rest = min(2*rest, maxRestartDelay)
	}
}

// refreshLag brings metrics up to date, until ctx ends.
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
			q.log.Debug("look at the queue failed", "err", err)
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
