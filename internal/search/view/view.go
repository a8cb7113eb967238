package view

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tutti/internal/base/span"
	"tutti/internal/base/spelling"
	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
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

// View returns the catalogue of m with the permissions of the caller who; the zero Principal is anonymous.
func (s *Service) View(m *catalogue.Model, who core.Principal) *View {
	return &View{service: s, model: m, who: who, fields: clientFields(m), granted: accessFilter(m, who), began: time.Now()}
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
	v.asked.note(kind, clausesOf(reqs))
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
	call, s := v.call(within, kind)
	results, err := v.service.engine.Search(call, v.alias(), narrowed)
	s.End(err)
	v.finish(ctx, kind, time.Since(start), err)
	v.asked.found(narrowed, results)
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
	v.asked.note(kind, req.Filter.Clauses())
	req.Filter = query.Both(v.granted, req.Filter)
	start := time.Now()
	var taken time.Duration // spent by the reader, which may be a slow client
	call, s := v.call(ctx, kind)
	err := v.service.engine.Stream(call, v.alias(), req, func(hits []index.Hit) error {
		given := time.Now()
		defer func() { taken += time.Since(given) }()
		v.asked.read(len(hits))
		return each(hits)
	})
	s.End(err)
	v.finish(ctx, kind, time.Since(start)-taken, err)
	return err
}

// call starts the span of a request to the index.
func (v *View) call(ctx context.Context, kind Kind) (context.Context, span.Span) {
	ctx, s := span.Call(ctx, "search")
	s.Text("catalogue", v.model.Definition().ID)
	s.Text("kind", string(kind))
	return ctx, s
}

// finish records a finished search. It logs errors that the request did not cause.
func (v *View) finish(ctx context.Context, kind Kind, took time.Duration, err error) {
	id := v.model.Definition().ID
	v.service.cfg.Metrics.observe(id, kind, took)
	if code := core.CodeOf(err); err == nil || ctx.Err() != nil || code == core.CodeInvalid {
		return
	}
	v.service.cfg.Logger.WarnContext(ctx, "a search failed", "catalogue", id, "kind", string(kind), "err", err)
}

func (v *View) alias() string { return v.model.Definition().Index }

// View is a catalogue with the permissions of one caller. It is safe for concurrent use, for one request of that caller.
type View struct {
	service *Service
	model   *catalogue.Model
	who     core.Principal
	fields  fields
	// granted is the caller's access filter; nil for all documents.
	granted *query.Node
	// began is when the request began, and asked what it has requested of the index, for its log line.
	began time.Time
	asked summary
	// usedSets is set if a filter used one of the caller's saved sets.
	usedSets atomic.Bool
}

// Model returns the catalogue.
func (v *View) Model() *catalogue.Model { return v.model }

// Who returns the caller.
func (v *View) Who() core.Principal { return v.who }

// Parse parses and validates a client's SQON (sqon.ParseLenient), which may use IDField. Errors are of CodeInvalid with
// Violations that point into raw, also if the catalogue disables filters.
func (v *View) Parse(raw json.RawMessage) (sqon.Filter, error) {
	f, err := sqon.ParseLenient(raw)
	if err != nil {
		return sqon.Filter{}, err
	}
	if err := f.Check(v.fields); err != nil {
		return sqon.Filter{}, err
	}
	empty := f.Root == nil || f.Root.Op == sqon.And && len(f.Root.Content) == 0 // as clients send it without a selection
	if !empty && v.model.Definition().DisableFilters {
		return sqon.Filter{}, core.NewError(core.CodeInvalid, "filters are disabled for this catalogue")
	}
	return f, nil
}

// Lower translates a filter from Parse into an index query, with the members of the caller's saved sets.
func (v *View) Lower(ctx context.Context, f sqon.Filter) (*query.Node, error) {
	return query.Lower(ctx, f, v.fields, v.members)
}

// Facet returns the filters of a facet (query.Facet).
func (v *View) Facet(ctx context.Context, f sqon.Filter, name string, themselves bool) (query.FacetFilters, error) {
	return query.Facet(ctx, f, name, themselves, v.fields, v.members)
}

// members returns the members of one of the caller's sets. Anonymous callers have no sets.
func (v *View) members(ctx context.Context, id string) ([]string, error) {
	v.usedSets.Store(true)
	if v.service.cfg.Sets == nil {
		return nil, unknownSet(id)
	}
	return v.service.cfg.Sets.Members(ctx, v.who.ID, id)
}

// UsedSets reports whether a translated filter used saved sets: then it is valid only for this caller and only now.
func (v *View) UsedSets() bool { return v.usedSets.Load() }

func unknownSet(id string) error {
	return core.NewError(core.CodeNotFound, "there is no saved set "+shown(id)+", or it is not yours, or it has expired")
}

// maxShown is the maximum length of an unknown name in a message, in bytes.
const maxShown = 64

func shown(name string) string {
	if len(name) > maxShown {
		return strings.ToValidUTF8(name[:maxShown], "") + "…"
	}
	return name
}

// Field returns the index field of a name, which may be IDField; false for unknown names and containers.
func (v *View) Field(name string) (query.Field, bool) { return v.fields.Lookup(name) }

// Identity returns the sort key that is unique per document, for the end of each Sort.
func (v *View) Identity() index.Sort {
	if path := v.service.cfg.Identity(v.alias()); path != "" {
		if f, ok := mappingFields(v.model).Lookup(path); ok && f.Type == "keyword" && f.Row() == "" && v.Uncounted(f) == "" {
			return index.Sort{Field: f}
		}
	}
	return index.Sort{Field: query.Field{Path: "_id", Type: "keyword"}}
}

// SortKey returns key with the field of a name, which may be IDField. CodeInvalid if there is no such field, or if documents cannot
// be sorted by it in that mode.
func (v *View) SortKey(name string, key index.Sort) (index.Sort, error) {
	wrong := func(format string, with ...any) (index.Sort, error) {
		return key, core.NewError(core.CodeInvalid, fmt.Sprintf(format, with...))
	}
	field, known := v.Field(name)
	if _, container := v.model.Field(name); !known && container {
		return wrong("%q is an object, not a value", shown(name))
	}
	switch {
	case !known:
		message := fmt.Sprintf("there is no field %q", shown(name))
		if meant := spelling.Suggest(name, v.model.Names()); meant != "" {
			message += fmt.Sprintf(", did you mean %q?", meant)
		}
		return wrong("%s", message)
	case !query.Countable(field.Type):
		return wrong("type %s, the type of %q, is not sortable", field.Type, name)
	case v.Uncounted(field) != "":
		return wrong("%q is not sortable: %s", name, v.Uncounted(field))
	case !query.Keyed(field.Type) && key.Mode != "" && key.Mode != "min" && key.Mode != "max":
		return wrong("mode %s is for numeric fields, but %q has type %s", key.Mode, name, field.Type)
	}
	key.Field = field
	return key, nil
}

// Metrics records search durations (CONTRACT section 9); nil disables it. The label catalogue is a configured ID, kind one of
// Kind.
type Metrics struct {
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	return &Metrics{duration: promauto.With(reg).NewHistogramVec(prometheus.HistogramOpts{
		Name: "tutti_search_duration_seconds", Help: "Duration of a search in the index.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
	}, []string{"catalogue", "kind"})}
}

func (m *Metrics) observe(catalogue string, kind Kind, took time.Duration) {
	if m != nil {
		m.duration.WithLabelValues(catalogue, string(kind)).Observe(took.Seconds())
	}
}

// valuePlaceholder is replaced by the granted value in the template of a scope.
const valuePlaceholder = "{value}"

// accessFilter returns the filter of the documents that the caller who may see: nil for all, a node that matches nothing without a
// grant. The values in scopes are exact terms, whatever characters they contain.
func accessFilter(m *catalogue.Model, who core.Principal) *query.Node {
	rule, nothing := m.Access(), &query.Node{Op: query.Nothing}
	switch {
	case who.System || rule == nil && m.Definition().DefaultAccess.Allows(who):
		return nil
	case rule == nil:
		return nothing
	}
	seen := nothing
	whole := mappingFields(m)
	if f, ok := whole.Lookup(rule.Field); ok && rule.Field != "" {
		seen = query.Exactly(f, grantedValues(rule.Scope, who.Scopes))
	}
	return query.Either(seen, publicFilter(rule, whole))
}

// publicFilter returns the filter of the documents that everyone may see. A filter that cannot be translated matches nothing, and
// so does a saved set, because there is no owner.
func publicFilter(rule *catalogue.Access, whole fields) *query.Node {
	nothing := &query.Node{Op: query.Nothing}
	if rule.Field == "" || rule.Public == nil {
		return nothing
	}
	noSets := func(context.Context, string) ([]string, error) { return nil, nil }
	n, err := query.Lower(context.Background(), *rule.Public, whole, noSets)
	switch {
	case err != nil:
		return nothing
	case n == nil:
		return &query.Node{Op: query.Everything}
	default:
		return n
	}
}

// grantedValues returns the values that scopes grant by a template.
func grantedValues(template string, scopes []string) []string {
	before, after, ok := strings.Cut(template, valuePlaceholder)
	if !ok {
		return nil
	}
	var values []string
	for _, scope := range scopes {
		rest, found := strings.CutPrefix(scope, before)
		value, ends := strings.CutSuffix(rest, after)
		if found && ends && value != "" && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values
}
