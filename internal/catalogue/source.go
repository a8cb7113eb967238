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
	// The pause before a failed catalogue is looked at again begins with firstRetry and doubles up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 60 * time.Second
	// recheckAfter is the pause after a check of an available catalogue that failed; it is failed after maxMisses in a row.
	recheckAfter = 5 * time.Second
	maxMisses    = 3
	// jitter is the greatest part of a pause that is left out by chance, so that what failed together is not tried together.
	jitter = 0.2
)

// built is what became of one catalogue with one mapping: a model or a problem.
type built struct {
	model   *Model
	problem *core.CatalogueProblem
	err     error
}

// source is one index, and the catalogues that search it, which share the reading of its mapping.
type source struct {
	index   string
	entries []*entry
	// raw is the mapping as last read, nil before, and results what became of the entries with it.
	raw     json.RawMessage
	results []built
	// multiValued are the paths of which the last sample showed several values; sample is when to read the next one.
	multiValued map[string]bool
	sample      time.Time

	// due is when to look next, began when the last look began; busy is true while that is done, again asks for another one
	// right after it.
	due, began   time.Time
	busy, repeat bool
	answered     bool
	// reading tells that the last reading succeeded, or failed too few times to count: misses in a row.
	reading bool
	misses  int
	// tries is how often the pause has doubled.
	tries int
	// unreached is true when the last look did not reach the engine.
	unreached bool
}

// unused tells that no catalogue is left that searches the index.
func (s *source) unused() bool {
	return !slices.ContainsFunc(s.entries, func(e *entry) bool { return !e.replaced })
}

// probeBy looks not later than at a time, but no sooner than firstRetry after the last look. An index that is being read is not
// hastened: its catalogues are available, and fail by the number of their checks.
func (s *source) probeBy(at time.Time) {
	if rested := s.began.Add(firstRetry); rested.After(at) {
		at = rested
	}
	if s.unreached && !s.reading && s.due.After(at) {
		s.due = at
	}
}

// nextProbe looks one pause after a look that has ended. A look that hung was a part of the pause, so that an index that hangs is
// asked as often as one that refuses, but for a moment of rest.
func (s *source) nextProbe(now time.Time, pause time.Duration) time.Time {
	return now.Add(max(pause-now.Sub(s.began), min(pause, firstRetry)))
}

// probeResult is what came of one look at an index.
type probeResult struct {
	source *source
	// raw and results are what is known now, the same as before when the mapping has not changed.
	raw     json.RawMessage
	results []built
	// multiValued and sample are the source's, or as of a sample that was read.
	multiValued map[string]bool
	sample      time.Time
	// problem is nil when the mapping was read.
	problem *core.CatalogueProblem
	err     error
}

// unreached reports whether the engine was not reached.
func (a probeResult) unreached() bool {
	return a.problem != nil && a.problem.Code == core.CatalogueConnectionError
}

// probe reads the mapping and builds what has changed. It only reads s, which nobody changes while it is busy.
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

// sampling reports whether a sample of the documents is due: only of an index whose catalogues are available, or they would wait
// for it.
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

// readSample reads a sample of the documents, and reports whether it shows other fields with several values than the last one did.
// A sample that fails shows the same.
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
