package loop_test

import (
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"tutti/consumers/loop"
	"tutti/internal/base/span"
	"tutti/internal/core"
)

// TestEndSpan: a message that is processed later is no failure.
func TestEndSpan(t *testing.T) {
	for err, want := range map[error]codes.Code{
		nil: codes.Unset, loop.ErrBusy: codes.Unset, loop.ErrJobEnded: codes.Unset, core.NewError(core.CodeUnavailable, "x"): codes.Error,
	} {
		ended := tracetest.NewSpanRecorder()
		_, s := span.NewTracer(sdk.NewTracerProvider(sdk.WithSpanProcessor(ended))).Consume(t.Context(), "process page", "")
		loop.EndSpan(s, err)
		if got := ended.Ended(); len(got) != 1 || got[0].Status().Code != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
