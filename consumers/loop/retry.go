package loop

import (
	"context"
	"log/slog"
	"time"

	"tutti/internal/core"
	"tutti/internal/retry"
)

// RetryLevel returns the log level of a failure: only the first one and those at doubled attempts are visible by default.
func RetryLevel(attempts int) slog.Level {
	if attempts&(attempts+1) == 0 {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// maxRetryAfter bounds the delay that an upstream may request, so that one response cannot stop a repository for a day.
const maxRetryAfter = 5 * time.Minute

// retryAfter returns the delay that the upstream or the engine requested, at most maxRetryAfter.
func retryAfter(err error) time.Duration { return min(core.RetryAfterOf(err), maxRetryAfter) }

// Delay returns how long to wait before the given attempt, from 0, after err.
func (l *Loop) Delay(try int, err error) time.Duration {
	return max(retryAfter(err), retry.Delay(try, l.cfg.RetryBase, l.cfg.RetryMax))
}

// RetryUntilStopped calls f until it succeeds, fails with an error that no retry can fix, or the process stops.
func (l *Loop) RetryUntilStopped(ctx context.Context, what string, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || !core.Retryable(err) {
			return err
		}
		if l.Stopping(ctx) {
			return err
		}
		l.log.Warn("retrying", "action", what, "err", err)
		if l.Sleep(max(retryAfter(err), retry.Delay(try, l.cfg.RetryBase, 5*time.Second))) != nil {
			return err
		}
	}
}
