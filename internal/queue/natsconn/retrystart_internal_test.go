package natsconn

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
)

// TestRetryStartAttempts: the first attempt of a call that the cluster leaves without an answer ends after a second, later ones after
// twice the time of the one before, up to five seconds.
func TestRetryStartAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Conn{Log: slog.New(slog.DiscardHandler)}
		var lengths []time.Duration
		err := c.RetryStart(t.Context(), func(ctx context.Context) error {
			began := time.Now()
			if len(lengths) == 5 {
				return nil
			}
			<-ctx.Done()
			lengths = append(lengths, time.Since(began))
			return core.NewError(core.CodeUnavailable, "no answer")
		})
		if want := []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}; err != nil || !slices.Equal(lengths, want) {
			t.Errorf("attempts took %v, want %v (%v)", lengths, want, err)
		}
	})
}
