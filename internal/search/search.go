package search

import (
	"context"
	"encoding/json"

	"tutti/internal/catalogue"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/query"
	"tutti/internal/sqon"
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
	// Metrics may be nil.
	Metrics *Metrics
}

// Service searches catalogues.
type Service struct {
	engine Engine
	cfg    Config
}

// New makes a Service.
func New(engine Engine, cfg Config) *Service { return &Service{engine: engine, cfg: cfg} }

// Metrics are what is measured of searches.
type Metrics struct{}

// View is a catalogue as one caller sees it. It may be used concurrently, and for one request of that caller.
type View struct{}

// View gives the catalogue of m as who sees it; the zero Principal is nobody.
func (s *Service) View(m *catalogue.Model, who core.Principal) *View { return nil }

// Model gives the catalogue.
func (v *View) Model() *catalogue.Model { return nil }

// Who gives the caller.
func (v *View) Who() core.Principal { return core.Principal{} }

// Parse reads and checks a SQON; nil and null match everything. Errors are of CodeInvalid with Violations that point into raw.
func (v *View) Parse(raw json.RawMessage) (sqon.Filter, error) { return sqon.Filter{}, nil }

// Lower gives the tree of a filter from Parse, with the members of the caller's saved sets.
func (v *View) Lower(ctx context.Context, f sqon.Filter) (*query.Node, error) { return nil, nil }

// Facet gives the filters of a facet, for documents and for elements (query.Facet).
func (v *View) Facet(ctx context.Context, f sqon.Filter, name string, themselves bool) (documents, elements *query.Node, err error) {
	return nil, nil, nil
}

// Field gives the field of a name as the index knows it; false when there is none, and for containers.
func (v *View) Field(name string) (query.Field, bool) { return query.Field{}, false }

// Identity gives the order that tells any two documents apart, for the end of each Sort.
func (v *View) Identity() index.Sort { return index.Sort{} }

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

// Search answers reqs about the documents that the caller may see.
func (v *View) Search(ctx context.Context, kind Kind, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	return nil, nil
}

// Stream gives each all documents that match and that the caller may see.
func (v *View) Stream(ctx context.Context, kind Kind, req index.StreamRequest, each func([]index.Hit) error) error {
	return nil
}
