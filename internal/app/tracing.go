package app

import (
	"context"
	"log/slog"

	"tutti/internal/app/settings"
	"tutti/internal/app/tracing"
)

// startTracing starts to record traces, if they are configured. It is stopped last, so that the spans of a stop are sent too.
func (a *App) startTracing(context.Context) error {
	if !a.cfg.Tracing.Enabled() {
		return nil
	}
	cfg := settings.Tracing(a.cfg.Tracing, a.opts.Version)
	cfg.TLS.Failures = &a.connections
	// Its lines have no trace: the handler adds one to those of spans only.
	cfg.Logger, cfg.Metrics = a.log.With("component", "tracing"), a.metrics.traces
	traces, err := tracing.Start(cfg)
	if err != nil {
		return err
	}
	a.cleanup.Push("traces", traces.Stop)
	a.tracer = traces.Tracer()
	return nil
}

// withTraceIDs returns log with the ids of traces, if they are configured.
func (b *base) withTraceIDs(log *slog.Logger) *slog.Logger {
	if !b.cfg.Tracing.Enabled() {
		return log
	}
	return slog.New(tracing.LogHandler(log.Handler()))
}
