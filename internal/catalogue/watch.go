package catalogue

import (
	"context"
	"slices"
	"sync"
	"time"

	"tutti/internal/catalogue/definition"
	"tutti/internal/core"
)

const (
	// sparing is how long an engine that was not reached is left alone.
	sparing = time.Second
	// never is the pause when nothing is due.
	never = time.Hour
)

// watch is the background work of a Registry. One goroutine owns all state; looks are made by others, which tell it their
// answers.
type watch struct {
	*Registry
	sources []*source
	answers chan answer
	looks   sync.WaitGroup
	waiting int // sources that have not answered yet

	// An engine that is not reached is looked for through one index at a time, whose answer counts for all that were not
	// reached either: many catalogues cost it no more than one.
	down  bool
	since time.Time
	last  answer
	probe *source

	mending mending
}

func newWatch(r *Registry) *watch {
	w := &watch{Registry: r, answers: make(chan answer), mending: mending{reread: make(chan []definition.Definition)}}
	byIndex := map[string]*source{}
	for _, e := range r.entries {
		if e.definition.Fault != nil {
			continue // until it is mended
		}
		s := byIndex[e.definition.Index]
		if s == nil {
			s = &source{index: e.definition.Index}
			byIndex[s.index] = s
			w.sources = append(w.sources, s)
		}
		s.entries = append(s.entries, e)
	}
	w.waiting = len(w.sources)
	return w
}

// run works until ctx ends, and waits for the looks under way then.
func (w *watch) run(ctx context.Context) {
	defer close(w.stopped)
	defer w.looks.Wait()
	w.begin()
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
				w.take(a, time.Now())
			}
		case defs := <-w.mending.reread:
			w.adopt(defs, time.Now())
		}
	}
}

// begin tells of what the definitions say by themselves.
func (w *watch) begin() {
	for _, e := range w.entries {
		e.tell(w.cfg.Logger)
	}
	if w.waiting == 0 {
		close(w.answered)
	}
}

// dispatch begins the looks that are due and gives the time to the next one.
func (w *watch) dispatch(ctx context.Context, now time.Time) time.Duration {
	pause := never
	for _, s := range w.sources {
		switch {
		case s.busy:
			continue
		case s.due.After(now):
			pause = min(pause, s.due.Sub(now))
			continue
		case w.down && s.unreached && w.probe != nil:
			continue // the answer that is awaited counts for this one too
		case w.down && s.unreached && now.Sub(w.since) < sparing:
			w.settle(s, w.last, now)
			pause = min(pause, max(0, s.due.Sub(now)))
			continue
		case w.down && s.unreached:
			w.probe = s
		}
		s.busy = true
		w.looks.Go(func() {
			a := s.look(ctx, w.mappings, w.cfg)
			select {
			case w.answers <- a:
			case <-ctx.Done():
			}
		})
	}
	return pause
}

// refresh makes due what Refresh was called for, be the engine spared or not.
func (w *watch) refresh() {
	asked := w.takeAsked()
	for _, s := range w.sources {
		if _, wanted := asked[s.index]; !wanted {
			continue
		}
		if s.busy {
			s.again = true // what is under way may have begun before the change
			continue
		}
		s.due, s.unreached = time.Time{}, false
	}
}

// take takes the answer of a look that has ended.
func (w *watch) take(a answer, now time.Time) {
	s := a.source
	s.busy = false
	if w.probe == s {
		w.probe = nil
	}
	if a.problem != nil && a.problem.Code == core.CatalogueConnectionError {
		w.down, w.since, w.last = true, now, a
	} else if w.down {
		w.down = false
		for _, other := range w.sources {
			if other.unreached {
				other.due = now
			}
		}
	}
	w.settle(s, a, now)
	if s.again {
		s.again, s.due = false, now
	}
}

// settle brings a source and its catalogues to what an answer says, its own or that of another index of an engine that was
// not reached.
func (w *watch) settle(s *source, a answer, now time.Time) {
	s.unreached = a.problem != nil && a.problem.Code == core.CatalogueConnectionError
	if a.problem != nil {
		s.due = now.Add(w.unread(s, a))
	} else {
		s.due = now.Add(w.read(s, a))
	}
	if !s.answered {
		s.answered = true
		if w.waiting--; w.waiting == 0 {
			defer close(w.answered)
		}
	}
	w.publish()
}

// read takes a mapping, and gives the pause to the next check.
func (w *watch) read(s *source, a answer) time.Duration {
	if !s.reading {
		s.tries = 0
	}
	s.raw, s.results, s.reading, s.misses = a.raw, a.results, true, 0
	for i, e := range s.entries {
		e.become(w.cfg.Logger, a.results[i], a.results[i].err)
	}
	fails := func(b built) bool { return b.problem != nil }
	switch {
	case !slices.ContainsFunc(a.results, fails):
		s.tries = 0
		return w.jittered(w.cfg.CheckEvery)
	case slices.ContainsFunc(a.results, func(b built) bool { return !fails(b) }):
		return w.jittered(min(backoff(&s.tries), w.cfg.CheckEvery))
	default:
		return w.jittered(backoff(&s.tries))
	}
}

// unread takes a failure to read the mapping, and gives the pause to the next try. Catalogues that are available stay so
// until it is certain.
func (w *watch) unread(s *source, a answer) time.Duration {
	if s.reading {
		s.misses++
		if s.misses < maxMisses && !definite(a.problem.Code) {
			return min(recheckAfter, w.cfg.CheckEvery)
		}
		s.reading, s.tries = false, 0
	}
	for _, e := range s.entries {
		e.become(w.cfg.Logger, built{problem: a.problem}, a.err)
	}
	return w.jittered(backoff(&s.tries))
}

// jittered shortens a pause by chance.
func (w *watch) jittered(pause time.Duration) time.Duration {
	return pause - time.Duration(w.cfg.Random()*jitter*float64(pause))
}
