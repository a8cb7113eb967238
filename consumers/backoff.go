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

// retryable reports whether a call to an upstream may succeed on a retry.
func retryable(err error) bool { return core.Retryable(err) || errors.Is(err, core.ErrForeignNotFound) }

// notFoundSince returns the time since which every response for m's record was core.ErrForeignNotFound, including the newest
// one, err; zero when err is another error.
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

// maxRetryAfter bounds the delay that an upstream may request, so that one response cannot stop a repository for a day.
const maxRetryAfter = 5 * time.Minute

// retryAfter returns the delay that the upstream or the engine requested, at most maxRetryAfter.
func retryAfter(err error) time.Duration { return min(core.RetryAfterOf(err), maxRetryAfter) }

// sleepInJob waits for d while the process is not stopping. It returns true as soon as the job has ended.
func (r *repository) sleepInJob(ctx context.Context, jobID string, d time.Duration) (ended bool, err error) {
	const interval = 2 * time.Second
	for d > 0 {
		if err := sleep(r.c.draining, min(d, interval)); err != nil {
			return false, err
		}
		if d -= interval; d > 0 && r.jobEnded(ctx, jobID) {
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
