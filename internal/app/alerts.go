package app

import (
	"context"

	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/queue/deadletter"
	"tutti/internal/report/alert"
)

// startAlerts starts to send alerts, if the configuration names a receiver.
func (a *App) startAlerts(ctx context.Context) error {
	if len(a.cfg.Alerts) == 0 {
		return nil
	}
	cfg := settings.AlertConfig(a.cfg, a.opts.Version)
	cfg.Logger, cfg.Metrics = a.log.With("component", "alerts"), a.metrics.alerts
	targets := settings.AlertTargets(a.cfg)
	for i := range targets {
		targets[i].TLS.Failures = &a.connections
	}
	service, err := alert.New(targets, alert.Deps{
		Cells: a.data.Queue.Cells(), Jobs: a.data.Queue.Jobs(), Letters: alertLetters{a.data.Queue.DeadLetters()}, Pauses: a.alertPauses,
	}, cfg)
	if err != nil {
		return err
	}
	service.Start(ctx)
	a.cleanup.Push("alerts", func(ctx context.Context) error {
		ctx, cancel := partOf(ctx, 1, 2)
		defer cancel()
		return service.Stop(ctx)
	})
	return nil
}

// AlertTest is the result of a test message.
type AlertTest = alert.TestResult

// TestAlerts sends a test message to each receiver of a configuration, in its order.
func TestAlerts(ctx context.Context, cfg config.Config, version string) []AlertTest {
	return alert.Test(ctx, settings.AlertTargets(cfg), settings.AlertConfig(cfg, version))
}

// alertPauses returns the repositories whose index this process does not write to. Those that wait for their repository have a
// paused job.
func (a *App) alertPauses() []alert.Pause {
	var all []alert.Pause
	for _, p := range a.indexer.consumers.Paused() {
		if !p.Upstream {
			all = append(all, alert.Pause{Repository: p.Repository, Reason: p.Reason, Starting: p.Starting})
		}
	}
	return all
}

// alertLetters implements alert.Letters.
type alertLetters struct{ *deadletter.Store }

// EachAfter calls each with the dead letters that were stored after a position.
func (l alertLetters) EachAfter(ctx context.Context, after uint64, each func(alert.Letter)) (uint64, error) {
	return l.EachStoredAfter(ctx, after, func(c deadletter.Change) error {
		each(alert.Letter{
			Sequence: c.Sequence, First: c.First, StoredAt: c.StoredAt, ID: c.ID, Repository: c.Repository, Reason: c.Reason,
			Read: func(ctx context.Context) (core.DeadLetter, error) { return l.Changed(ctx, c) },
		})
		return nil
	})
}
