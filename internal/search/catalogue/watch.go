package catalogue

import (
	"context"
	"slices"
	"sync"
	"time"

	"tutti/internal/search/catalogue/definition"
)

const (
	// maxConcurrentProbes limits the probes started at the same time. A probe that takes longer than patience does not count any
	// more: it may hang and must not delay the others.
	maxConcurrentProbes = 32
	patience            = 500 * time.Millisecond
	// spread is the time over which more probes than that are spread when their engine is available again.
	spread = time.Second
	// sampleDelay is the pause between a probe after which a sample is due and the one that reads it.
	sampleDelay = 100 * time.Millisecond
	// never is the pause if nothing is due.
	never = time.Hour
)

// watch is the background work of a Registry. One goroutine owns all state; other goroutines run the probes and send it the
// results.
type watch struct {
	*Registry
	sources []*source
	answers chan probeResult
	probes  sync.WaitGroup
	waiting int // sources without a response yet
	// back is the time of the last retryUnreached.
	back    time.Time
	reloads reloadState
}

func newWatch(r *Registry) *watch {
	w := &watch{Registry: r, answers: make(chan probeResult), reloads: reloadState{reread: make(chan []definition.Definition)}}
	byIndex := map[string]*source{}
	for _, e := range r.entries {
		if e.definition.Err != nil {
			continue // until it is fixed
		}
		s := byIndex[e.definition.Index]
		if s == nil {
			s = &source{index: e.definition.Index, due: time.Now()}
			byIndex[s.index] = s
			w.sources = append(w.sources, s)
		}
		s.entries = append(s.entries, e)
	}
	w.waiting = len(w.sources)
	return w
}

// run works until ctx ends, and then waits for the probes in flight.
func (w *watch) run(ctx context.Context) {
	defer close(w.stopped)
	defer w.probes.Wait()
	w.logDefinitions()
	timer := time.NewTimer(never)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		timer.Reset(min(w.dispatch(ctx, now), w.reload(ctx, now)))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-w.wake:
			w.refresh()
		case a := <-w.answers:
			if ctx.Err() == nil {
				w.handle(a, time.Now())
			}
		case defs := <-w.reloads.reread:
			w.adopt(defs, time.Now())
		}
	}
}

// logDefinitions logs errors and warnings of the definitions.
func (w *watch) logDefinitions() {
	for _, e := range w.entries {
		e.logWarnings(w.cfg.Logger)
	}
	if w.waiting == 0 {
		close(w.answered)
	}
}

// dispatch starts the probes that are due, those that have waited longest first, and returns the time to the next one.
func (w *watch) dispatch(ctx context.Context, now time.Time) time.Duration {
	pause, room, free := never, patience, maxConcurrentProbes
	var due []*source
	for _, s := range w.sources {
		switch {
		case !s.busy && s.unused():
		case s.busy && now.Sub(s.began) < patience:
			free--
			room = min(room, patience-now.Sub(s.began))
		case s.busy:
		case s.due.After(now):
			pause = min(pause, s.due.Sub(now))
		default:
			due = append(due, s)
		}
	}
	slices.SortStableFunc(due, func(a, b *source) int { return a.due.Compare(b.due) })
	if len(due) > free {
		due, pause = due[:free], min(pause, room)
	}
	for _, s := range due {
		s.busy, s.began = true, now
		w.probes.Go(func() {
			a := s.probe(ctx, w.mappings, w.cfg)
			select {
			case w.answers <- a:
			case <-ctx.Done():
			}
		})
	}
	return pause
}

// refresh makes the probes for Refresh due, regardless of their pause.
func (w *watch) refresh() {
	asked := w.takeRefreshes()
	for _, s := range w.sources {
		if _, wanted := asked[s.index]; !wanted {
			continue
		}
		if s.busy {
			s.repeat = true // the probe in flight may have started before the change
			continue
		}
		s.due = time.Time{}
	}
}

// handle applies the result of a probe to the source and its catalogues.
func (w *watch) handle(a probeResult, now time.Time) {
	s := a.source
	back := s.unreached && !a.unreached()
	s.busy, s.unreached = false, a.unreached()
	if a.problem != nil {
		s.due = w.failed(s, a, now)
	} else {
		s.due = now.Add(w.succeeded(s, a))
	}
	if !s.answered {
		s.answered = true
		if w.waiting--; w.waiting == 0 {
			defer close(w.answered)
		}
	}
	w.publish()
	switch {
	case s.repeat:
		s.repeat, s.due = false, now
	case w.back.After(s.began): // while this probe hung
		s.probeBy(now)
	}
	if back && now.Sub(w.back) >= spread { // otherwise they have just been rescheduled
		w.retryUnreached(now)
	}
}

// retryUnreached schedules early probes of all catalogues whose engine was not reached, because one of them was reached: it may
// be the same engine.
func (w *watch) retryUnreached(now time.Time) {
	w.back = now
	var failed []*source
	for _, s := range w.sources {
		if s.unreached && !s.busy {
			failed = append(failed, s)
		}
	}
	for i, s := range failed {
		at := now
		if len(failed) > maxConcurrentProbes {
			at = at.Add(spread * time.Duration(i) / time.Duration(len(failed)))
		}
		s.probeBy(at)
	}
}

// succeeded applies a mapping, and returns the pause to the next check.
func (w *watch) succeeded(s *source, a probeResult) time.Duration {
	if !s.reading {
		s.tries = 0
	}
	s.raw, s.results, s.reading, s.misses = a.raw, a.results, true, 0
	for i, e := range s.entries {
		e.update(w.cfg.Logger, a.results[i], a.results[i].err)
	}
	s.multiValued, s.sample = a.multiValued, a.sample
	fails := func(b built) bool { return b.problem != nil }
	switch {
	case s.sampling(w.cfg):
		return min(sampleDelay, w.cfg.CheckEvery) // the sample is read after the catalogues are published as available
	case !slices.ContainsFunc(a.results, fails):
		s.tries = 0
		return w.jittered(w.cfg.CheckEvery)
	case slices.ContainsFunc(a.results, func(b built) bool { return !fails(b) }):
		return w.jittered(min(backoff(&s.tries), w.cfg.CheckEvery))
	default:
		return w.jittered(backoff(&s.tries))
	}
}

// failed applies a failure to read the mapping, and returns the time of the next try. Available catalogues stay available until
// the failure is certain.
func (w *watch) failed(s *source, a probeResult, now time.Time) time.Time {
	if s.reading {
		s.misses++
		if s.misses < maxMisses && !conclusive(a.problem.Code) {
			return now.Add(min(recheckAfter, w.cfg.CheckEvery))
		}
		s.reading, s.tries = false, 0
	}
	for _, e := range s.entries {
		e.update(w.cfg.Logger, built{problem: a.problem}, a.err)
	}
	return s.nextProbe(now, w.jittered(backoff(&s.tries)))
}

// jittered randomly shortens a pause.
func (w *watch) jittered(pause time.Duration) time.Duration {
	return pause - time.Duration(w.cfg.Random()*jitter*float64(pause))
}
