package view

import (
	"context"
	"log/slog"
	"time"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
)

// Engine is the search interface of the index.
type Engine interface {
	Search(ctx context.Context, alias string, reqs []index.SearchRequest) ([]index.SearchResult, error)
	Stream(ctx context.Context, alias string, req index.StreamRequest, each func([]index.Hit) error) error
}

// Sets stores the saved sets.
type Sets interface {
	// Members returns the members of a set of the owner; CodeNotFound if the set is unknown, expired or another owner's.
	Members(ctx context.Context, owner, id string) ([]string, error)
}

// Config is the optional configuration of a Service.
type Config struct {
	// Sets resolves set_id:; nil means that all sets are unknown.
	Sets Sets
	// Identity returns the path of the keyword field of an alias that holds the ID of each document, which is cheaper to sort by
	// than the ID itself; "" for none. Nil means none for all aliases.
	Identity func(alias string) string
	// Logger receives engine errors whose details callers do not see; nil disables logging.
	Logger *slog.Logger
	// Timeout limits one Search; 30 s by default.
	Timeout time.Duration
	// Metrics may be nil.
	Metrics *Metrics
}

// Service searches catalogues.
type Service struct {
	engine Engine
	cfg    Config
}

// New returns a Service.
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

// View returns the catalogue of m as who may see it; the zero Principal is anonymous.
func (s *Service) View(m *catalogue.Model, who core.Principal) *View {
	return &View{service: s, model: m, who: who, fields: clientFields(m), granted: accessFilter(m, who)}
}

// Kind is the purpose of a search, for the metrics.
type Kind string

// Kinds of searches.
const (
	KindHits     Kind = "hits"
	KindFacets   Kind = "facets"
	KindMixed    Kind = "mixed"
	KindDownload Kind = "download"
	KindSet      Kind = "set"
)

// Search executes reqs on the documents that the caller may see. Only Search and Stream send requests to the index.
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
			Code: core.CodeUnavailable, Message: "search timed out after " + v.service.cfg.Timeout.String(), Err: err,
			Hint: "request less at once: fewer patterns, buckets or documents",
		}
	}
	return results, err
}

// Stream calls each with all matching documents that the caller may see.
func (v *View) Stream(ctx context.Context, kind Kind, req index.StreamRequest, each func([]index.Hit) error) error {
	req.Filter = query.Both(v.granted, req.Filter)
	start := time.Now()
	var taken time.Duration // spent by the reader, which may be a slow client
	err := v.service.engine.Stream(ctx, v.alias(), req, func(hits []index.Hit) error {
		given := time.Now()
		defer func() { taken += time.Since(given) }()
		return each(hits)
	})
	v.finish(ctx, kind, time.Since(start)-taken, err)
	return err
}

// finish records a finished search. It logs errors that the request did not cause.
func (v *View) finish(ctx context.Context, kind Kind, took time.Duration, err error) {
	id := v.model.Definition().ID
	v.service.cfg.Metrics.observe(id, kind, took)
	if code := core.CodeOf(err); err == nil || ctx.Err() != nil || code == core.CodeInvalid {
		return
	}
	v.service.cfg.Logger.Warn("a search failed", "catalogue", id, "kind", string(kind), "err", err)
}

func (v *View) alias() string { return v.model.Definition().Index }
