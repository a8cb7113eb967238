package consumers

import (
	"context"
	"errors"
	"time"

	"tutti/internal/core"
)

// Bounds of the time between two checks of an index.
const (
	// probeEvery and probeEveryMax are for an index that takes no writes.
	probeEvery    = 100 * time.Millisecond
	probeEveryMax = 2 * time.Second
	// checkEvery is for an index that does: without a write, only that tells that it has gone.
	checkEvery = 30 * time.Second
	// missingFor is how long every check must find the index missing before it is made again: an alias that is swapped in
	// two steps is missing for a moment.
	missingFor = 2 * time.Second
)

// watchIndex prepares the repository's index, then opens the gate whenever the index takes writes again and no pause for
// rejections is left.
func (r *repository) watchIndex() {
	ctx := r.c.draining
	w := &indexWatch{r: r}
	for w.waitForPause(ctx) == nil {
		for try := 0; ; try++ {
			err := w.check(ctx)
			pause, why := r.rejections.left(time.Now())
			if err == nil && pause == 0 {
				break
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				pause, why = growing(try, probeEvery, probeEveryMax), core.DisplayOf(err)
			}
			r.pauseFor(why, err)
			if sleep(ctx, pause) != nil {
				return
			}
		}
		r.gate.resume()
		r.log.Info("index takes writes")
		if pause, why := r.rejections.left(time.Now()); pause > 0 { // it began before the gate was open
			r.pauseFor(why, nil)
		}
	}
}

// indexWatch is what a process knows of a repository's index from one check to the next.
type indexWatch struct {
	r        *repository
	prepared bool
	// missing is since when every check found the index missing, zero when the last one did not. changed is true from
	// then on until the index is prepared anew: what is there afterwards may be another index.
	missing time.Time
	changed bool
}

// waitForPause returns nil once the gate is shut or a check has failed, and ctx's error when that ends first.
func (w *indexWatch) waitForPause(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.r.gate.open().Done():
			return ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if w.r.Probe.Check(ctx) != nil {
				return ctx.Err()
			}
		}
	}
}

// check prepares the index before it is used for the first time, and checks afterwards that it takes writes. An index
// that stays missing is made again, once the run that fills it is stored in the queue.
func (w *indexWatch) check(ctx context.Context) error {
	if !w.prepared {
		return w.prepare(ctx)
	}
	err := w.r.Probe.Check(ctx)
	if !errors.Is(err, core.ErrIndexMissing) {
		w.missing = time.Time{}
		if err == nil && w.changed {
			return w.prepare(ctx)
		}
		return err
	}
	w.changed = true
	now := time.Now()
	if w.missing.IsZero() {
		w.missing = now
	}
	if now.Sub(w.missing) < missingFor {
		return err
	}
	if runErr := w.r.RunAgain(ctx); runErr != nil {
		w.r.log.Warn("queueing a run for the index that is missing", "err", runErr)
		return err
	}
	w.r.log.Warn("the index was deleted; it is made again and the repository run again", "index", w.r.IndexName)
	w.prepared = false
	return w.prepare(ctx)
}

func (w *indexWatch) prepare(ctx context.Context) error {
	err := w.r.Probe.Prepare(ctx)
	if err == nil {
		w.prepared, w.missing, w.changed = true, time.Time{}, false
	}
	return err
}
