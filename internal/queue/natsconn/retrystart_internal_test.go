package natsconn

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

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

// TestResend: a call is sent again after one and three seconds without an answer, and ends after five.
func TestResend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		refused := errors.New("refused")
		for name, tt := range map[string]struct {
			answers []func(context.Context) error
			took    time.Duration
			err     error
		}{
			"answered":           {[]func(context.Context) error{succeed}, 0, nil},
			"refused":            {[]func(context.Context) error{func(context.Context) error { return refused }}, 0, refused},
			"then answered":      {[]func(context.Context) error{silent, silent, succeed}, 3 * time.Second, nil},
			"no leader":          {[]func(context.Context) error{func(context.Context) error { return nats.ErrNoResponders }, succeed}, time.Second, nil},
			"never answered":     {[]func(context.Context) error{silent, silent, silent}, CallTimeout, context.DeadlineExceeded},
			"refused afterwards": {[]func(context.Context) error{silent, func(context.Context) error { return refused }}, time.Second, refused},
		} {
			began, tries := time.Now(), 0
			err := Resend(t.Context(), func(ctx context.Context) error {
				tries++
				return tt.answers[tries-1](ctx)
			})
			if took := time.Since(began); took != tt.took || tries != len(tt.answers) || !errors.Is(err, tt.err) {
				t.Errorf("%s: %d attempts in %s: %v", name, tries, took, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		tries := 0
		if err := Resend(ctx, func(ctx context.Context) error { tries++; return silent(ctx) }); tries != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the caller's deadline: %d attempts: %v", tries, err)
		}
	})
}

func succeed(context.Context) error { return nil }
