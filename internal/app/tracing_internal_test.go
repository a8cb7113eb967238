package app

import (
	"log/slog"
	"reflect"
	"testing"

	"tutti/internal/config"
)

// TestTracesOff: without an endpoint nothing is started for traces, and no log line passes a handler for them.
func TestTracesOff(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	cfg := config.Default()
	steps := func(a *App) int { return reflect.ValueOf(&a.cleanup).Elem().FieldByName("steps").Len() }
	a, err := New(cfg, Options{Logger: log})
	if err == nil {
		err = a.startTracing(t.Context())
	}
	if err != nil || a.tracer != nil || steps(a) != 0 || a.log.Handler() != log.Handler() {
		t.Errorf("tracer %v, %d steps of a stop, log %T: %v", a.tracer, steps(a), a.log.Handler(), err)
	}
	cfg.Tracing.Endpoint = "http://127.0.0.1:1"
	if a, err = New(cfg, Options{Logger: log}); err == nil {
		err = a.startTracing(t.Context())
	}
	if err != nil || a.tracer == nil || steps(a) != 1 || a.log.Handler() == log.Handler() {
		t.Errorf("on: tracer %v, %d steps of a stop, log %T: %v", a.tracer, steps(a), a.log.Handler(), err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
