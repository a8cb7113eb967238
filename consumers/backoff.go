package consumers

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"tutti/internal/core"
)

// notFoundFor is how long a record is retried while its upstream answers core.ErrForeignNotFound.
const notFoundFor = 10 * time.Minute

// retryable reports whether a call to an upstream may succeed later without a change.
func retryable(err error) bool { return core.Retryable(err) || errors.Is(err, core.ErrForeignNotFound) }

// notFoundSince returns since when m's record has had no other answer than core.ErrForeignNotFound, err being its newest
// one; zero when err is another error.
func notFoundSince(m core.Message, err error) time.Time {
	switch since := m.Request().NotFoundSince; {
	case !errors.Is(err, core.ErrForeignNotFound):
		return time.Time{}
	case since.IsZero():
		return time.Now().UTC()
	default:
		return since
	}
}

// backoff returns base doubled try times, at most limit, with jitter: between half and the whole of it.
func backoff(try int, base, limit time.Duration) time.Duration {
	d := limit
	if try < 20 {
		d = min(limit, base<<try)
	}
	return d/2 + rand.N(d/2+1)
}

// maxRetryAfter bounds what an upstream may ask for: it must not stop a repository for a day by one word.
const maxRetryAfter = 5 * time.Minute

// retryAfter returns how long the other side asked to wait, within bounds.
func retryAfter(err error) time.Duration { return min(core.RetryAfterOf(err), maxRetryAfter) }

// sleepInJob waits for d as long as the process is not stopping, and returns true as soon as the job has ended.
func (r *repository) sleepInJob(ctx context.Context, jobID string, d time.Duration) (ended bool, err error) {
	const look = 2 * time.Second
	for d > 0 {
		if err := sleep(r.c.draining, min(d, look)); err != nil {
			return false, err
		}
		if d -= look; d > 0 && r.jobEnded(ctx, jobID) {
			return true, nil
		}
	}
	return false, nil
}

// sleep waits for d, and returns ctx's error when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
