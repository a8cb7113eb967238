package graphql

import (
	"context"
	"sync"

	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql/execute"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/plan"
	"tutti/internal/search/graphql/request"
	"tutti/internal/search/graphql/response"
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
}

// Service executes GraphQL operations. It is safe for concurrent use.
type Service struct {
	searches *view.Service
	cfg      Config

	executor execute.Executor
	// bodies are buffers for responses, writers has a *Writer for each response that is complete.
	bodies  output.BufferPool
	writers sync.Pool

	mu sync.Mutex
	// served holds the catalogues by ID, newest first: while a new model replaces an old one, both are in use.
	served map[string][]*servedCatalogue
	// invalidations counts calls of Forget: a schema built before the last one is not stored.
	invalidations int
}

// New returns a Service.
func New(searches *view.Service, cfg Config) *Service {
	return &Service{searches: searches, cfg: cfg, served: map[string][]*servedCatalogue{}}
}

// Accept builds the schema of a catalogue and keeps it for Execute. It returns an error if there is no valid schema
// (catalogue.Config.Accept).
func (s *Service) Accept(m *catalogue.Model) error {
	_, err := s.schemaFor(m)
	return err
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
	v := s.searches.View(m, who)
	key := planKey{query: r.Query, operation: r.OperationName, variables: string(r.Variables), identity: v.Identity().Field.Path}
	p, ok := sv.plans.Get(key)
	if !ok {
		op, faults := sv.parser.Parse(r)
		if len(faults) > 0 {
			return output.Rejection(faults...)
		}
		p = s.plan(ctx, sv, op, v)
		if p.Reusable {
			key.identity = p.Identity
			sv.plans.put(key, p)
		}
	}
	return s.execute(ctx, v, p)
}

// plan plans an operation.
func (s *Service) plan(ctx context.Context, sv *servedCatalogue, op *request.Operation, v *view.View) *plan.Plan {
	return plan.New(ctx, sv.planned, op, v, (&resolver{service: s, served: sv}).resolve)
}

// execute executes a plan and writes the response.
func (s *Service) execute(ctx context.Context, v *view.View, p *plan.Plan) core.GraphQLResponse {
	if p.Rejected {
		return output.Rejection(p.Response.Errors...)
	}
	run := s.executor.Execute(ctx, v, p)
	w, _ := s.writers.Get().(*response.Writer)
	if w == nil {
		w = response.NewWriter()
	}
	body := w.Write(s.bodies.Get(response.EstimateSize(run.Results.Searches)), &p.Response, run.Results)
	s.writers.Put(w)
	run.Release()
	return core.GraphQLResponse{Body: body, Release: func() { s.bodies.Put(body) }}
}
