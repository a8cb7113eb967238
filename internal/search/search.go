package search

import (
	"context"
	"log/slog"
	"time"

	"tutti/internal/catalogue"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/query"
)

// Engine is the part of the index that is searched.
type Engine interface {
	Search(ctx context.Context, alias string, reqs []index.SearchRequest) ([]index.SearchResult, error)
	Stream(ctx context.Context, alias string, req index.StreamRequest, each func([]index.Hit) error) error
}

// Sets are the saved sets.
type Sets interface {
	// Members returns the members of a set of the owner; CodeNotFound for one that is unknown, another's or expired.
	Members(ctx context.Context, owner, id string) ([]string, error)
}

// Config is what a Service may have.
type Config struct {
	// Sets are what set_id: names; nil means that all are unknown.
	Sets Sets
	// Identity returns the path of the keyword field of an alias that holds the id of each of its documents, which is cheaper to
	// order by than the id itself; "" where there is none. Nil means none anywhere.
	Identity func(alias string) string
	// Logger gets what callers are not told of engines that fail; nil means nothing is logged.
	Logger *slog.Logger
	// Timeout bounds one Search; 30 s by default.
	Timeout time.Duration
	// Metrics may be nil.
	Metrics *Metrics
}

// Service searches catalogues.
type Service struct {
	engine Engine
	cfg    Config
}

// New makes a Service.
func New(engine Engine, cfg Config) *Service {
	if cfg.Identity == nil {
		cfg.Identity = func(string) string { return "" }
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{engine: engine, cfg: cfg}
}

// View returns the catalogue of m as who sees it; the zero Principal is nobody.
func (s *Service) View(m *catalogue.Model, who core.Principal) *View {
	return &View{service: s, model: m, who: who, fields: clientFields(m), granted: accessFilter(m, who)}
}

// Kind is what a search is for, in the metrics.
type Kind string

// Kinds of searches.
const (
	KindHits     Kind = "hits"
	KindFacets   Kind = "facets"
	KindMixed    Kind = "mixed"
	KindDownload Kind = "download"
	KindSet      Kind = "set"
)

// Search answers reqs about the documents that the caller may see. It is the one place, with Stream, where a question goes to
// the index.
func (v *View) Search(ctx context.Context, kind Kind, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	narrowed := make([]index.SearchRequest, len(reqs))
	for i, req := range reqs {
		req.Filter = query.Both(v.granted, req.Filter)
		if req.Hits != nil && v.granted != nil {
			hits := *req.Hits
			hits.Restricted = true
			req.Hits = &hits
		}
		narrowed[i] = req
	}
	within, cancel := context.WithTimeout(ctx, v.service.cfg.Timeout)
	defer cancel()
	start := time.Now()
	results, err := v.service.engine.Search(within, v.alias(), narrowed)
	v.finish(ctx, kind, time.Since(start), err)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, &core.Error{
			Code: core.CodeUnavailable, Message: "the search took longer than " + v.service.cfg.Timeout.String(), Err: err,
			Hint: "ask for less at once: fewer patterns, buckets or documents",
		}
	}
	return results, err
}

// Stream returns each all documents that match and that the caller may see.
func (v *View) Stream(ctx context.Context, kind Kind, req index.StreamRequest, each func([]index.Hit) error) error {
	req.Filter = query.Both(v.granted, req.Filter)
	start := time.Now()
	var taken time.Duration // by who reads, which may be a slow client
	err := v.service.engine.Stream(ctx, v.alias(), req, func(hits []index.Hit) error {
		given := time.Now()
		defer func() { taken += time.Since(given) }()
		return each(hits)
	})
	v.finish(ctx, kind, time.Since(start)-taken, err)
	return err
}

// finish notes a search that has ended. What fails for another reason than what was asked is the operator's to know.
func (v *View) finish(ctx context.Context, kind Kind, took time.Duration, err error) {
	id := v.model.Definition().ID
	v.service.cfg.Metrics.observe(id, kind, took)
	if code := core.CodeOf(err); err == nil || ctx.Err() != nil || code == core.CodeInvalid {
		return
	}
	v.service.cfg.Logger.Warn("a search failed", "catalogue", id, "kind", string(kind), "err", err)
}

func (v *View) alias() string { return v.model.Definition().Index }
