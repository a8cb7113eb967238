// Package retry computes the delays between attempts.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Delay returns the delay after n earlier retries: base doubled n times, at most limit, with Jitter.
func Delay(n int, base, limit time.Duration) time.Duration {
	d := base
	for ; n > 0 && 0 < d && d <= limit/2; n-- {
		d *= 2
	}
	if n > 0 && d > 0 {
		d = limit
	}
	return Jitter(min(d, limit))
}

// Jitter returns a random duration from half of d to d, so that callers that failed together do not retry together.
func Jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d/2 + rand.N(d/2+1) //nolint:gosec // jitter needs no secrecy
}

// Sleep blocks for d, or until ctx ends; it then returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
