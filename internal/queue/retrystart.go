package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tutti/internal/core"
	"tutti/internal/retry"
)

const (
	defaultStartTimeout = time.Minute
	// firstAttemptTimeout limits the first attempt of a call at start; each further attempt gets twice as long, up to
	// callTimeout. A cluster leaves requests unanswered while it forms, and when several processes create the same
	// stream at once.
	firstAttemptTimeout = time.Second
)

// retryStart calls try until it succeeds, and returns the last error when that is not retryable or ctx has ended
// (Config.StartTimeout). The context of try limits one attempt.
func (q *Queue) retryStart(ctx context.Context, try func(ctx context.Context) error) error {
	for length := firstAttemptTimeout; ; length = min(2*length, callTimeout) {
		attempt, end := context.WithTimeout(ctx, length)
		err := try(attempt)
		end()
		if err == nil || !core.Retryable(err) {
			return err
		}
		if ctx.Err() == nil {
			q.log.Warn("the start waits for the queue", "err", err, "hint", core.HintOf(err))
		}
		if retry.Sleep(ctx, retry.Jitter(length/2)) == nil {
			continue
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return &core.Error{
				Code: core.CodeOf(err), Hint: core.HintOf(err), Err: err,
				Message: fmt.Sprintf("%s; gave up after %s", core.MessageOf(err), q.cfg.StartTimeout),
			}
		}
		return err
	}
}
