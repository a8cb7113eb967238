package graphql

import (
	"context"
	"encoding/json"
	"sync"

	"tutti/internal/base/cache"
	"tutti/internal/base/span"
	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql/execute"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
	"tutti/internal/search/graphql/schema"
	"tutti/internal/search/view"
)

// Config is the optional configuration of a Service.
type Config struct {
	// Sets stores saved sets; nil disables them.
	Sets Sets
	// AllowAnonymousSets lists the sets of callers without an ID too.
	AllowAnonymousSets bool
	// Network queries the other nodes of federations; nil for none.
	Network Network
	// Memory bounds the memory of large responses; nil for no bound.
	Memory core.ResponseMemory
}

// Service executes GraphQL operations. It is safe for concurrent use.
type Service struct {
	searches *view.Service
	cfg      Config

	executor execute.Executor

	mu sync.Mutex
	// served holds the catalogues by ID, newest first: while a new model replaces an old one, both are in use.
	served map[string][]*servedCatalogue
	// invalidations counts calls of Forget: a schema built before the last one is not stored.
	invalidations int
}

// New returns a Service.
func New(searches *view.Service, cfg Config) *Service {
	return &Service{searches: searches, cfg: cfg, executor: execute.Executor{Memory: cfg.Memory}, served: map[string][]*servedCatalogue{}}
}

// Accept builds the schema of a catalogue and keeps it for Execute. It returns the names that do not follow from those of the fields, and an error if
// there is no valid schema (catalogue.Config.Accept).
func (s *Service) Accept(m *catalogue.Model) (map[string]core.GraphQLNames, error) {
	sv, err := s.schemaFor(m)
	if err != nil {
		return nil, err
	}
	return sv.schema.OddNames(), nil
}

// Schema returns the schema of a catalogue in the GraphQL schema definition language. Errors are those of Accept.
func (s *Service) Schema(m *catalogue.Model) (string, error) {
	sv, err := s.schemaFor(m)
	if err != nil {
		return "", err
	}
	return sv.schema.Text, nil
}

// Execute executes one operation on a catalogue. All errors are in the response; it stops when ctx is done.
func (s *Service) Execute(ctx context.Context, m *catalogue.Model, who core.Principal, r core.GraphQLRequest) core.GraphQLResponse {
	sv, err := s.schemaFor(m)
	if err != nil {
		return output.Rejection(output.ErrorOf(err))
	}
	ctx, operation := span.Start(ctx, "graphql")
	defer func() { operation.End(nil) }()
	v := s.searches.View(m, who)
	defer v.Log(ctx)
	key := planKey{query: r.Query, operation: r.OperationName, variables: string(r.Variables), identity: v.Identity().Field.Path, readOnly: r.ReadOnly}
	p, ok := sv.plans.Get(key)
	if !ok {
		op, faults := sv.parser.Parse(r)
		if len(faults) > 0 {
			operation.Text("error.type", string(core.CodeInvalid))
			return output.Rejection(faults...)
		}
		p = execute.New(ctx, sv.planned, op, v, (&resolver{service: s, served: sv}).resolve)
		if size := len(key.query) + len(key.variables); p.Reusable && p.Weight <= maxPlanWeight && size <= maxKeyBytes {
			key.identity = p.Identity
			sv.plans.Put(key, p, int64(p.Weight+size/keyWeight))
		}
	}
	return s.executor.Execute(ctx, v, p, r.Caller)
}

// maxModels is the number of models kept per catalogue: the current one and its replacements.
const maxModels = 3

// servedCatalogue is a catalogue model with its schema and caches.
type servedCatalogue struct {
	model   *catalogue.Model
	schema  *schema.Schema
	parser  *request.Parser
	planned *execute.Catalogue
	// plans are cached, so that the same operation with the same variables is not parsed and planned again.
	plans *cache.LRU[planKey, *execute.Plan]
	// fields and config are the results of configs, computed on first use.
	fields func() []fieldDescription
	config func() json.RawMessage
}

// schemaFor returns the servedCatalogue of a model, and builds it if necessary.
func (s *Service) schemaFor(m *catalogue.Model) (*servedCatalogue, error) {
	id := m.Definition().ID
	s.mu.Lock()
	sv, before := s.cached(id, m), s.invalidations
	s.mu.Unlock()
	if sv != nil {
		return sv, nil
	}
	built, err := s.build(m)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sv := s.cached(id, m); sv != nil {
		return sv, nil
	}
	if s.invalidations == before {
		all := append([]*servedCatalogue{built}, s.served[id]...)
		s.served[id] = all[:min(len(all), maxModels)]
	}
	return built, nil
}

// cached returns the servedCatalogue of a model, nil for none. The caller holds the lock.
func (s *Service) cached(id string, m *catalogue.Model) *servedCatalogue {
	for _, sv := range s.served[id] {
		if sv.model == m {
			return sv
		}
	}
	return nil
}

func (s *Service) build(m *catalogue.Model) (*servedCatalogue, error) {
	options := schema.Options{}
	if s.cfg.Network != nil {
		options.Network, options.Remote = s.cfg.Network.Membership(m)
	}
	built, err := schema.Build(m, options)
	if err != nil {
		return nil, err
	}
	d := m.Definition()
	sv := &servedCatalogue{
		model: m, schema: built, planned: execute.NewCatalogue(m, built), plans: cache.NewLRU[planKey, *execute.Plan](maxPlansWeight),
		parser: request.NewParser(built.AST, request.Limits{Aliases: d.MaxAliases, Depth: d.MaxDepth, Introspection: d.GraphQLIntrospection}),
	}
	sv.fields = sync.OnceValue(sv.describedFields)
	sv.config = sync.OnceValue(func() json.RawMessage { return sv.configuration(sv.fields()) })
	return sv, nil
}

// Forget discards the schema of a catalogue, so that it is built again on the next use. Call it when the result of
// Network.Membership has changed.
func (s *Service) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.served, id)
	s.invalidations++
}

// Limits of the cached plans of a catalogue, in units of Plan.Weight.
const (
	maxPlanWeight  = 2_000
	maxPlansWeight = 20_000
	// maxKeyBytes limits the query and the variables of a cached plan, keyWeight is how many of their bytes count as one unit.
	maxKeyBytes = 16 << 10
	keyWeight   = 600
)

// planKey is everything that a plan depends on. Caching pays off because every visit of a portal's first page sends the same
// operation.
type planKey struct {
	query, operation, variables string
	// identity is the field that identifies documents; another field may be used later.
	identity string
	readOnly bool
}
