package catalogue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
)

const (
	// maxConcurrentProbes limits the probes started at the same time. A probe that takes longer than slowProbe is no longer
	// counted: it may hang and must not delay the others.
	maxConcurrentProbes = 32
	slowProbe           = 500 * time.Millisecond
	// spread is the time over which the probes are distributed if more than maxConcurrentProbes are due because their engine is
	// available again.
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
	// reachedAgain is the time of the last retryUnreached.
	reachedAgain time.Time
	reloads      reloadState
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
	pause, room, free := never, slowProbe, maxConcurrentProbes
	var due []*source
	for _, s := range w.sources {
		switch {
		case !s.busy && s.unused():
		case s.busy && now.Sub(s.began) < slowProbe:
			free--
			room = min(room, slowProbe-now.Sub(s.began))
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
	_, all := asked[allIndices]
	for _, s := range w.sources {
		if _, wanted := asked[s.index]; !wanted && !all {
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
	reached := s.unreached && !a.unreached()
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
	case w.reachedAgain.After(s.began): // while this probe hung
		s.probeBy(now)
	}
	if reached && now.Sub(w.reachedAgain) >= spread { // otherwise they have just been rescheduled
		w.retryUnreached(now)
	}
}

// retryUnreached schedules early probes of all catalogues whose engine was not reached, because one of them was reached: it may
// be the same engine.
func (w *watch) retryUnreached(now time.Time) {
	w.reachedAgain = now
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

const (
	// The pause before a retry of a failed catalogue starts with firstRetry and doubles up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 60 * time.Second
	// recheckAfter is the pause after a failed check of an available catalogue; after maxMisses consecutive failures the
	// catalogue fails.
	recheckAfter = 5 * time.Second
	maxMisses    = 3
	// jitter is the maximum part of a pause that is randomly subtracted, so that simultaneous failures are not retried
	// simultaneously.
	jitter = 0.2
)

// built is the build result of one catalogue with one mapping: a model or a problem.
type built struct {
	model   *Model
	problem *core.CatalogueProblem
	err     error
}

// source is one index with the catalogues that use it, which share the reading of its mapping.
type source struct {
	index   string
	entries []*entry
	// raw is the last mapping, nil before the first; results are the build results of the entries with it.
	raw     json.RawMessage
	results []built
	// multiValued are the paths with several values in the last sample; sample is the time of the next one.
	multiValued map[string]bool
	sample      time.Time

	// due is the time of the next probe, began the start of the last one; busy is set during a probe, repeat requests another one
	// right after it.
	due, began   time.Time
	busy, repeat bool
	answered     bool
	// reading is set if the last probe succeeded, or fewer than maxMisses in a row failed: misses.
	reading bool
	misses  int
	// tries is the number of times the pause has doubled.
	tries int
	// unreached is set if the last probe did not reach the engine.
	unreached bool
}

// unused reports whether no catalogue uses the index any more.
func (s *source) unused() bool {
	return !slices.ContainsFunc(s.entries, func(e *entry) bool { return !e.replaced })
}

// probeBy schedules the next probe at a time at the latest, but not before firstRetry after the last one. An index that is being
// read is not affected: its catalogues are available, and fail after a number of checks.
func (s *source) probeBy(at time.Time) {
	if rested := s.began.Add(firstRetry); rested.After(at) {
		at = rested
	}
	if s.unreached && !s.reading && s.due.After(at) {
		s.due = at
	}
}

// nextProbe returns the time of the next probe, one pause after a probe that has ended. The time of a probe that hung counts
// towards the pause, so that an index that hangs is probed as often as one that rejects, except for a minimum pause.
func (s *source) nextProbe(now time.Time, pause time.Duration) time.Time {
	return now.Add(max(pause-now.Sub(s.began), min(pause, firstRetry)))
}

// probeResult is the result of one probe of an index.
type probeResult struct {
	source *source
	// raw and results are the current values, the same as before if the mapping has not changed.
	raw     json.RawMessage
	results []built
	// multiValued and sample are those of the source, or of a new sample.
	multiValued map[string]bool
	sample      time.Time
	// problem is nil if the mapping was read.
	problem *core.CatalogueProblem
	err     error
}

// unreached reports whether the engine was not reached.
func (a probeResult) unreached() bool {
	return a.problem != nil && a.problem.Code == core.CatalogueConnectionError
}

// probe reads the mapping and builds what has changed. It only reads s, which is not changed while it is busy.
func (s *source) probe(ctx context.Context, m Mappings, cfg Config) probeResult {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	raw, err := m.Mapping(ctx, s.index)
	if err != nil {
		return probeResult{source: s, problem: readingProblem(ctx, s.index, err), err: err}
	}
	a := probeResult{source: s, raw: s.raw, results: s.results, multiValued: s.multiValued, sample: s.sample}
	if s.raw != nil && bytes.Equal(raw, s.raw) {
		if !s.sampling(cfg) || !a.readSample(ctx, cfg) {
			return a
		}
	} else if soon := time.Now().Add(cfg.SampleSoon); a.sample.After(soon) {
		a.sample = soon
	}
	whole, unread := parse(raw)
	if unread != nil {
		return probeResult{source: s, problem: unread}
	}
	whole.multiValued = a.multiValued
	results := make([]built, len(s.entries))
	for i, e := range s.entries {
		b := &results[i]
		if b.model, b.problem = build(e.definition, whole); b.problem != nil {
			continue
		}
		names, err := cfg.Accept(b.model)
		if err != nil {
			*b = built{problem: problem(core.CatalogueSchemaBuild, core.MessageOf(err)), err: err}
			continue
		}
		b.model.nameGraphQL(names)
	}
	a.raw, a.results = raw, results
	return a
}

// sampling reports whether a sample is due: only for an index whose catalogues are available, because they would have to wait for
// it.
func (s *source) sampling(cfg Config) bool {
	return s.reading && cfg.Documents != nil && !time.Now().Before(s.sample) && modelOf(s.results) != nil
}

// modelOf returns the first Model of results, nil for none.
func modelOf(results []built) *Model {
	for _, b := range results {
		if b.model != nil {
			return b.model
		}
	}
	return nil
}

// readSample reads a sample of the documents, and reports whether its fields with several values differ from those of the last
// one. A failed sample counts as the same.
func (a *probeResult) readSample(ctx context.Context, cfg Config) bool {
	found, err := sampleOf(ctx, cfg.Documents, a.source.index, modelOf(a.results).whole)
	pause := cfg.SampleSoon
	if found.full || found.documents >= cfg.SampleFew {
		pause = cfg.SampleEvery
	}
	a.sample = time.Now().Add(pause)
	if err != nil || maps.Equal(found.multiValued, a.multiValued) {
		return false
	}
	a.multiValued = found.multiValued
	return true
}

// reloadState is the state of reloading definitions that have, or had, an Err and follow their folders at run time.
type reloadState struct {
	// reread receives the result of Config.Reload; busy is true during the call.
	reread chan []definition.Definition
	busy   bool
	// due is the time of the next reload, tries the number of times the pause has doubled.
	due   time.Time
	tries int
	// seen is the last result, settled the time when it is applied unless it changes before.
	seen    []definition.Definition
	settled time.Time
}

// reload starts a reload in the background if a definition follows its folder and it is due, and returns the time to the next
// one. Nothing waits for it: a folder that hangs must not delay Stop, and its result is then dropped.
func (w *watch) reload(ctx context.Context, now time.Time) time.Duration {
	m := &w.reloads
	if w.cfg.Reload == nil || m.busy || w.cfg.ReloadEvery == 0 && !slices.ContainsFunc(w.entries, (*entry).reloadable) {
		return never
	}
	if m.due.IsZero() { // they have just been read
		m.due = now.Add(w.reloadPause())
	}
	if m.due.After(now) {
		return m.due.Sub(now)
	}
	m.busy = true
	go func() {
		defs := w.cfg.Reload()
		select {
		case m.reread <- defs:
		case <-ctx.Done():
		}
	}()
	return never
}

// adopt applies a reloaded result to the definitions that follow their folders, once it has been unchanged for Config.Settle: a
// file may be incomplete, and the file that restricts a catalogue may be the last one written. If a folder is gone, its catalogue
// is removed; an empty result is ignored.
func (w *watch) adopt(defs []definition.Definition, now time.Time) {
	m := &w.reloads
	m.busy = false
	if !reflect.DeepEqual(defs, m.seen) {
		m.seen, m.settled = defs, now.Add(w.cfg.Settle)
	}
	changes, added := w.changes(defs)
	changed := len(changes)+len(added) > 0
	if changed && now.Before(m.settled) {
		m.due = m.settled
		return
	}
	if !now.Before(m.settled) {
		w.reject(defs)
	}
	if changed {
		m.tries = 0
		w.change(changes, added, now)
	}
	m.due = now.Add(w.reloadPause())
}

// reloadPause returns the pause before the next reload.
func (w *watch) reloadPause() time.Duration {
	pause := backoff(&w.reloads.tries)
	if w.cfg.ReloadEvery > 0 {
		pause = min(pause, w.cfg.ReloadEvery)
	}
	return w.jittered(pause)
}

// follows reports whether an entry follows its folder.
func (w *watch) follows(e *entry) bool { return w.cfg.ReloadEvery > 0 || e.reloadable() }

// keeps reports whether a sound entry stays although its folder has changed, because the change is not sound.
func (w *watch) keeps(e *entry, d definition.Definition) bool {
	return w.cfg.ReloadEvery > 0 && e.definition.Err == nil && d.Err != nil
}

// reject publishes why entries stay although their folders have changed, and logs what is new.
func (w *watch) reject(defs []definition.Definition) {
	var reasons []string
	for _, e := range w.entries {
		for _, d := range defs {
			if d.Folder != e.definition.Folder || !w.keeps(e, d) {
				continue
			}
			reason := "catalogue " + e.definition.ID + ": a change of its folder is not taken up: " + d.Err.Message
			if !slices.Contains(w.Rejected(), reason) {
				w.cfg.Logger.Warn("a catalogue stays as it was, because its folder has an error", "catalogue", e.definition.ID, "err", d.Err)
			}
			reasons = append(reasons, reason)
		}
	}
	w.rejected.Store(&reasons)
}

// added returns the definitions of folders that no entry has.
func (w *watch) added(defs []definition.Definition, taken map[string]bool) []definition.Definition {
	if w.cfg.ReloadEvery == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(defs), func(d definition.Definition) bool {
		return taken[d.ID] || slices.ContainsFunc(w.entries, func(e *entry) bool { return e.definition.Folder == d.Folder })
	})
}

// changes returns the new definitions of the entries whose folders have changed, nil if the folder is gone, and those of new folders.
func (w *watch) changes(defs []definition.Definition) (changes map[*entry]*definition.Definition, added []definition.Definition) {
	changes = map[*entry]*definition.Definition{}
	if len(defs) == 0 {
		return changes, nil
	}
	staying := map[string]bool{}
	for _, e := range w.entries {
		in := slices.DeleteFunc(slices.Clone(defs), func(d definition.Definition) bool { return d.Folder != e.definition.Folder })
		switch {
		case w.follows(e) && len(in) == 0:
			changes[e] = nil
		case w.follows(e) && len(in) == 1 && e.differs(in[0]) && !w.keeps(e, in[0]):
			changes[e] = &in[0]
		default:
			staying[e.definition.ID] = true
		}
	}
	for e, d := range changes {
		if d != nil && staying[d.ID] { // the ID of a running catalogue is not reassigned
			delete(changes, e)
		}
	}
	return changes, w.added(defs, staying)
}

// change replaces the changed entries. Results of probes in flight are dropped for the old ones.
func (w *watch) change(changes map[*entry]*definition.Definition, added []definition.Definition, now time.Time) {
	var kept []*entry
	for _, e := range w.entries {
		d, changed := changes[e]
		if !changed {
			kept = append(kept, e)
			continue
		}
		e.replaced = true
		w.cfg.Metrics.forget(e.definition.ID)
		if d == nil {
			w.cfg.Logger.Info("the folder of a catalogue is gone", "catalogue", e.definition.ID)
			continue
		}
		next := newEntry(*d)
		next.hadError = e.reloadable()
		if e.definition.Err == nil && d.ID == e.definition.ID {
			next.catalogue, next.model, next.logged = e.catalogue, e.model, e.logged // until its index was read
			w.cfg.Logger.Info("the folder of a catalogue has changed", "catalogue", d.ID)
		}
		kept = append(kept, w.begin(next, now))
	}
	for _, d := range added {
		w.cfg.Logger.Info("a catalogue was added", "catalogue", d.ID)
		kept = append(kept, w.begin(newEntry(d), now))
	}
	w.entries = kept
	w.sources = slices.DeleteFunc(w.sources, func(s *source) bool { return s.answered && !s.busy && s.unused() })
	slices.SortFunc(w.entries, func(a, b *entry) int { return cmp.Compare(a.definition.ID, b.definition.ID) })
	w.publish()
}

// begin logs the warnings of a new entry and follows its index.
func (w *watch) begin(e *entry, now time.Time) *entry {
	e.logWarnings(w.cfg.Logger)
	if e.definition.Err == nil {
		w.follow(e, now)
	}
	return e
}

// follow probes the index of an entry that was fixed, together with others that were.
func (w *watch) follow(e *entry, now time.Time) {
	for _, s := range w.sources {
		if s.index == e.definition.Index && s.began.IsZero() { // no probe yet
			s.entries = append(s.entries, e)
			return
		}
	}
	w.sources = append(w.sources, &source{index: e.definition.Index, entries: []*entry{e}, due: now, answered: true})
}

// backoff returns the pause before the next try, and doubles the following one.
func backoff(tries *int) time.Duration {
	pause := lastRetry
	if *tries < 10 {
		pause = min(firstRetry<<*tries, lastRetry)
	}
	*tries++
	return pause
}
