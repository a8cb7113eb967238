package consumers

import (
	"context"
	"math/rand/v2"
	"time"
)

// growing gives base doubled try times, at most limit, with jitter: between half and the whole of it.
func growing(try int, base, limit time.Duration) time.Duration {
	d := limit
	if try < 20 {
		d = min(limit, base<<try)
	}
	return d/2 + rand.N(d/2+1)
}

// sleep waits for d, and gives ctx's error when that ends first.
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
