package retry_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/base/retry"
)

func TestDelay(t *testing.T) {
	const base, limit = 100 * time.Millisecond, 5 * time.Second
	for n, whole := range map[int]time.Duration{
		0: base, 1: 2 * base, 5: 32 * base, 6: limit, 40: limit, 63: limit, 64: limit, math.MaxInt: limit, -1: base,
	} {
		low, high := whole, time.Duration(0)
		for range 500 {
			d := retry.Delay(n, base, limit)
			low, high = min(low, d), max(high, d)
		}
		if low < whole/2 || high > whole || high-low < whole/4 {
			t.Errorf("delay %d is between %s and %s, want between %s and %s", n, low, high, whole/2, whole)
		}
	}
	if d := retry.Delay(3, time.Minute, time.Second); d < time.Second/2 || d > time.Second {
		t.Errorf("a base over the limit: %s", d)
	}
	if d := retry.Delay(64, time.Second, math.MaxInt64); d < math.MaxInt64/4 {
		t.Errorf("without a limit: %s", d)
	}
	if d := retry.Delay(3, 0, time.Second); d != 0 {
		t.Errorf("without a base: %s", d)
	}
}

func TestSleep(t *testing.T) {
	for name, c := range map[string]struct {
		canceledAfter, want time.Duration
		err                 error
	}{
		"the whole time":  {2 * time.Minute, time.Minute, nil},
		"canceled later":  {time.Second, time.Second, context.Canceled},
		"canceled before": {-1, 0, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.canceledAfter < 0 {
					cancel()
				} else {
					defer time.AfterFunc(c.canceledAfter, cancel).Stop()
				}
				began := time.Now()
				err := retry.Sleep(ctx, time.Minute)
				if took := time.Since(began); took != c.want || !errors.Is(err, c.err) {
					t.Errorf("%v after %s, want %v after %s", err, took, c.err, c.want)
				}
			})
		})
	}
}
