package mcp

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"tutti/http/problem"
	"tutti/internal/base/cache"
	"tutti/internal/core"
)

// maxCallers is how many callers are distinguished; the buckets of those that were away for the longest time are dropped, and start full.
const maxCallers = 10_000

// limiter limits the messages of each caller by a token bucket that holds the messages of a minute. A nil *limiter limits nothing.
type limiter struct {
	perMinute int

	mu      sync.Mutex
	buckets *cache.LRU[string, *rate.Limiter]
}

// newLimiter returns a limiter, nil for no limit.
func newLimiter(perMinute int) *limiter {
	if perMinute <= 0 {
		return nil
	}
	return &limiter{perMinute: perMinute, buckets: cache.NewLRU[string, *rate.Limiter](maxCallers)}
}

// take counts a message of a caller. Over the limit the error is CodeTooManyRequests and says when the next one is accepted.
func (l *limiter) take(caller string, now time.Time) error {
	if l == nil {
		return nil
	}
	one := l.bucket(caller).ReserveN(now, 1)
	wait := one.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	one.CancelAt(now)
	return &core.Error{
		Code: problem.CodeTooManyRequests, Message: fmt.Sprintf("a caller may send %d messages in a minute", l.perMinute),
		Hint: "wait for the seconds in Retry-After, or raise mcp.requestsPerMinute", RetryAfter: wait,
	}
}

func (l *limiter) bucket(caller string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.buckets.Get(caller)
	if !ok {
		bucket = rate.NewLimiter(rate.Every(time.Minute/time.Duration(l.perMinute)), l.perMinute)
		l.buckets.Put(caller, bucket, 1)
	}
	return bucket
}
