package catalogue

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"tutti/internal/core"
)

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
		return probeResult{source: s, problem: readingProblem(ctx, err), err: err}
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
		if err := cfg.Accept(b.model); err != nil {
			*b = built{problem: problem(core.CatalogueSchemaBuild, core.MessageOf(err)), err: err}
		}
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
