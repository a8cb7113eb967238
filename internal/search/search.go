package search

import (
	"context"
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
	// Members gives the members of a set of the owner; CodeNotFound for one that is unknown, another's or expired.
	Members(ctx context.Context, owner, id string) ([]string, error)
}

// Config is what a Service may have.
type Config struct {
	// Sets are what set_id: names; nil means that all are unknown.
	Sets Sets
	// Identity gives the path of the keyword field of an alias that holds the id of each of its documents, which is cheaper to
	// order by than the id itself; "" where there is none. Nil means none anywhere.
	Identity func(alias string) string
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
	return &Service{engine: engine, cfg: cfg}
}

// View gives the catalogue of m as who sees it; the zero Principal is nobody.
func (s *Service) View(m *catalogue.Model, who core.Principal) *View {
	return &View{service: s, model: m, who: who, fields: fieldsOf(m), granted: granted(m, who)}
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
		narrowed[i] = req
	}
	start := time.Now()
	results, err := v.service.engine.Search(ctx, v.alias(), narrowed)
	v.service.cfg.Metrics.observe(v.model.Definition().ID, kind, time.Since(start))
	return results, err
}

// Stream gives each all documents that match and that the caller may see.
func (v *View) Stream(ctx context.Context, kind Kind, req index.StreamRequest, each func([]index.Hit) error) error {
	req.Filter = query.Both(v.granted, req.Filter)
	start := time.Now()
	err := v.service.engine.Stream(ctx, v.alias(), req, each)
	v.service.cfg.Metrics.observe(v.model.Definition().ID, kind, time.Since(start))
	return err
}

func (v *View) alias() string { return v.model.Definition().Index }
