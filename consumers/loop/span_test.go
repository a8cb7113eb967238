package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"tutti/consumers/loop"
	"tutti/internal/base/span"
	"tutti/internal/core"
)

// message is one that counts its acknowledgements.
type message struct {
	core.Message
	acked int
}

func (m *message) Request() core.Request     { return core.Request{Scope: core.ScopePage} }
func (m *message) Deliveries() int           { return 1 }
func (m *message) Ack(context.Context) error { m.acked++; return nil }

// TestDo: a message is acknowledged after its processing, and has a span, in which it is no failure that it is processed later.
func TestDo(t *testing.T) {
	for err, want := range map[error]codes.Code{
		nil: codes.Unset, loop.ErrBusy: codes.Unset, loop.ErrJobEnded: codes.Unset, core.NewError(core.CodeUnavailable, "x"): codes.Error,
	} {
		ended := tracetest.NewSpanRecorder()
		l := loop.New(loop.NewProcess(time.Minute), nil, nil, loop.Config{
			Logger: slog.New(slog.DiscardHandler), Tracer: span.NewTracer(sdk.NewTracerProvider(sdk.WithSpanProcessor(ended))),
		})
		m := &message{}
		l.Do(t.Context(), m, func(ctx context.Context) error {
			if span.Traceparent(ctx) == "" || m.acked > 0 {
				t.Errorf("%v: not in a span, or acknowledged before", err)
			}
			return err
		})
		if got := ended.Ended(); len(got) != 1 || got[0].Status().Code != want {
			t.Errorf("%v: %v", err, got)
		}
		if acked := m.acked == 1; acked != (err == nil) {
			t.Errorf("%v: acknowledged %d times", err, m.acked)
		}
	}
}

// TestRun: a message is acknowledged after its processing; after an error it is the Task's, which acknowledges or requeues it.
func TestRun(t *testing.T) {
	l := loop.New(loop.NewProcess(time.Minute), nil, nil, loop.Config{Logger: slog.New(slog.DiscardHandler)})
	for _, err := range []error{nil, loop.ErrBusy, core.NewError(core.CodeUnavailable, "x")} {
		m := &message{}
		var failed error
		l.Run(t.Context(), m, loop.Task{
			Do:     func(context.Context) error { return err },
			Failed: func(_ context.Context, err error) { failed = err },
		})
		if !errors.Is(failed, err) || (m.acked == 1) != (err == nil) {
			t.Errorf("%v: failed with %v, acknowledged %d times", err, failed, m.acked)
		}
	}
}
