package consumers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// Bounds of the time between two checks of an index.
const (
	// minProbeInterval and maxProbeInterval are for an index that takes no writes.
	minProbeInterval = 100 * time.Millisecond
	maxProbeInterval = 2 * time.Second
	// checkInterval is for an index that takes writes: without a write in flight, only a check detects that it is gone.
	checkInterval = 30 * time.Second
	// recreateAfter is how long every check must find the index missing before it is created again: an alias that is swapped
	// in two steps is missing for a moment.
	recreateAfter = 2 * time.Second
)

// indexWatch is the state of a repository's index from one check to the next.
type indexWatch struct {
	Repository
	loop     *loop.Loop
	outcomes *outcome.Outcomes
	log      *slog.Logger
	cells    Cells
	index    Index
	jobs     Jobs

	prepared bool
	// missingSince is when the first of the latest consecutive checks found the index missing, zero when the last one did
	// not. changed is true from then on until the index is prepared again: it may be another index by then.
	missingSince time.Time
	changed      bool
	// cell names the compare-and-swap cell that holds the identity of the index that was last prepared, by any process.
	// identity is the one that this process found there or stored, "" before.
	cell, identity string
}

// severalIndices is in the cell, instead of an identity, since the alias stood for several indices or an unsuitable one: writes may have gone to
// any of them, so that the one that is left counts as another one.
const severalIndices = "several"

// run prepares the repository's index, then ends the pause whenever the index takes writes again and no pause for
// rejections remains.
func (w *indexWatch) run() {
	ctx := w.loop.Draining()
	for w.waitForPause(ctx) == nil {
		for try := 0; ; try++ {
			err := w.check(ctx)
			pause, why := w.outcomes.RejectionPause()
			if err == nil && pause == 0 {
				break
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				pause, why = retry.Delay(try, minProbeInterval, maxProbeInterval), core.DisplayOf(err)
			}
			w.loop.Pause.Set(why, err)
			if w.loop.Sleep(pause) != nil {
				return
			}
		}
		w.loop.Pause.Clear()
		w.log.Info("index takes writes")
	}
}

// waitForPause returns nil once the repository is paused or a check has failed, and ctx's error when that ends first.
func (w *indexWatch) waitForPause(ctx context.Context) error {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-w.loop.Pause.Running().Done():
			return ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if w.check(ctx) != nil {
				return ctx.Err()
			}
			if err := w.Rebuild.DiscardEnded(ctx, w.jobEnded); core.CodeOf(err) == core.CodeConflict {
				w.log.Warn("the index of an ended rebuild is kept", "index", w.IndexName, "reason", core.DisplayOf(err))
			} else if err != nil {
				w.log.Warn("deleting what an ended rebuild left behind; the next check retries", "index", w.IndexName, "err", err)
			}
		}
	}
}

func (w *indexWatch) jobEnded(ctx context.Context, id string) (bool, error) {
	job, err := w.jobs.Get(ctx, id)
	if core.CodeOf(err) == core.CodeNotFound {
		return true, nil
	}
	return err == nil && job.State.Final(), err
}

// check prepares the index before its first use and when it was replaced, and otherwise checks that it takes writes. It
// recreates an index that stays missing, once the run that fills it is stored in the queue. A full queue drains only into an
// index, so that the run is then queued afterwards, as for an index that was replaced.
func (w *indexWatch) check(ctx context.Context) error {
	err := w.checkOnce(ctx)
	if errors.Is(err, core.ErrAliasSeveral) || errors.Is(err, core.ErrIndexUnsuitable) {
		if cellErr := w.noteSeveral(ctx); cellErr != nil {
			w.log.Warn("storing that the index must be run again; the next check retries", "index", w.IndexName, "err", cellErr)
		}
	}
	return err
}

// noteSeveral makes the index that is left count as another one, in every process and after a restart. An index that the repository was
// never written to needs no run.
func (w *indexWatch) noteSeveral(ctx context.Context) error {
	stored, revision, err := w.cells.Cell(ctx, w.cell)
	if err != nil || stored == "" {
		return err
	}
	if stored != severalIndices {
		if err := w.cells.SetCell(ctx, w.cell, severalIndices, revision); err != nil {
			return err
		}
	}
	w.identity = severalIndices
	return nil
}

func (w *indexWatch) checkOnce(ctx context.Context) error {
	if !w.prepared {
		return w.prepare(ctx, false)
	}
	err := w.Probe.Check(ctx)
	if !errors.Is(err, core.ErrIndexMissing) {
		w.missingSince = time.Time{}
		if err == nil && (w.changed || w.replaced(ctx)) {
			return w.prepare(ctx, false)
		}
		return err
	}
	w.changed = true
	now := time.Now()
	if w.missingSince.IsZero() {
		w.missingSince = now
	}
	if now.Sub(w.missingSince) < recreateAfter {
		return err
	}
	runErr := w.RunAgain(ctx)
	if runErr != nil {
		w.log.Warn("queueing a run for the missing index", "err", runErr)
		if core.CodeOf(runErr) != core.CodeOverloaded || w.identity == "" {
			return err
		}
	}
	w.log.Warn("the index was deleted; it is created again and the repository run again", "index", w.IndexName)
	w.prepared = false
	return w.prepare(ctx, runErr == nil)
}

// replaced reports whether the index is another one than the prepared one, as far as the engine reports identities.
func (w *indexWatch) replaced(ctx context.Context) bool {
	identity, err := w.Probe.Identity(ctx)
	return err == nil && identity != "" && identity != w.identity
}

// prepare prepares the index. queued means that the run of a new index is already in the queue.
func (w *indexWatch) prepare(ctx context.Context, queued bool) error {
	stored, revision, err := w.cells.Cell(ctx, w.cell)
	if err != nil {
		return err
	}
	if err := w.Probe.Prepare(ctx, stored); err != nil {
		return err
	}
	if err := w.initFillCell(ctx); err != nil {
		return err
	}
	w.prepared, w.missingSince, w.changed = true, time.Time{}, false
	if err := w.store(ctx, stored, revision, queued); err != nil {
		w.log.Warn("storing the identity of the index; the next check retries", "index", w.IndexName, "err", err)
	}
	return nil
}

// store stores the identity of the index. Where it differs from the stored one, the index is not the one that the repository
// was written to, so its run is queued first. Without a stored identity no run is queued.
func (w *indexWatch) store(ctx context.Context, stored string, revision uint64, queued bool) error {
	identity, err := w.Probe.Identity(ctx)
	if err != nil || identity == "" {
		return err
	}
	if identity != stored {
		if stored != "" && !queued {
			if err := w.RunAgain(ctx); err != nil {
				return err
			}
			w.log.Warn("the index was replaced; the repository is run again", "index", w.IndexName)
		}
		if err := w.cells.SetCell(ctx, w.cell, identity, revision); err != nil {
			return err
		}
	}
	w.identity = identity
	return nil
}
