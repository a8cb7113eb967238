package view

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tutti/internal/base/span"
	"tutti/internal/index"
)

// summary is what one request has requested of the index, for its log line.
type summary struct {
	mu sync.Mutex
	// kind is that of the first search; "" before it.
	kind    Kind
	clauses int
	hits    int64
	// counted is set once hits is known: a search for facets need not count.
	counted bool
}

func (s *summary) note(kind Kind, clauses int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kind == "" {
		s.kind = kind
	}
	s.clauses = max(s.clauses, clauses)
}

// found notes the results of a search, nil for a failed one.
func (s *summary) found(reqs []index.SearchRequest, results []index.SearchResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range min(len(reqs), len(results)) {
		if reqs[i].Total || reqs[i].Hits != nil {
			s.hits, s.counted = max(s.hits, results[i].Total, int64(len(results[i].Hits))), true
		}
	}
}

// read notes n documents of a stream.
func (s *summary) read(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hits, s.counted = s.hits+int64(n), true
}

// clausesOf returns the clauses of the longest filter of reqs: those of facets lack the clauses on their own field.
func clausesOf(reqs []index.SearchRequest) int {
	most := 0
	for i := range reqs {
		most = max(most, reqs[i].Filter.Clauses())
	}
	return most
}

// Log adds the catalogue and the kind to the span of ctx, and writes the log line of the caller's request once it has ended: its catalogue, kind, clauses without those of access control,
// matching or written documents if they were counted, and duration. A request that needed no search, such as introspection, has none.
func (v *View) Log(ctx context.Context) {
	v.asked.mu.Lock()
	defer v.asked.mu.Unlock()
	s := span.Of(ctx)
	s.Text("catalogue", v.model.Definition().ID)
	s.Text("kind", string(v.asked.kind))
	log := v.service.cfg.Logger
	if v.asked.kind == "" || !log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	attrs := []slog.Attr{
		slog.String("catalogue", v.model.Definition().ID), slog.String("kind", string(v.asked.kind)), slog.Int("clauses", v.asked.clauses),
	}
	if v.asked.counted {
		attrs = append(attrs, slog.Int64("hits", v.asked.hits))
	}
	log.LogAttrs(ctx, slog.LevelInfo, "query", append(attrs, slog.Duration("duration", time.Since(v.began)))...)
}
