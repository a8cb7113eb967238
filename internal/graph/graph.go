package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/catalogue"
	"tutti/internal/core"
	"tutti/internal/graph/schema"
	"tutti/internal/index"
	"tutti/internal/search"
)

// Config is what a Service may have.
type Config struct {
	// Sets keeps saved sets; nil means that none can be saved and there are none.
	Sets Sets
	// AllowAnonymousSets tells that sets of a caller without an ID are kept too, so that there are some to list.
	AllowAnonymousSets bool
	// Network asks the other nodes of federations; nil means that there are none.
	Network Network
}

// Service executes GraphQL operations. It may be used concurrently.
type Service struct {
	searches *search.Service
	cfg      Config

	// chunks are for documents that are read, bodies for whole answers.
	chunks, bodies bufferPool

	mu sync.Mutex
	// served are by the ids of the catalogues, the newest first: while one takes the place of another, both are asked.
	served map[string][]*servedCatalogue
	// invalidations counts calls of Forget: a schema that was being made then may be of before, and is not kept.
	invalidations int
}

// maxModels is how many models of a catalogue are kept: that which is asked, and those that take its place.
const maxModels = 3

// servedCatalogue is a catalogue that operations are executed on.
type servedCatalogue struct {
	model  *catalogue.Model
	schema *schema.Schema
	// leaves is how many values a document has, prefix the names of the objects around what the catalogue shows of it.
	leaves  int
	prefix  []string
	queries queryCache
	plans   planCache
	// fields and config are what configs gives, made when it is asked for.
	fields func() []fieldDescription
	config func() json.RawMessage
	// window is how many documents a page has at most.
	window int
}

// New makes a Service.
func New(searches *search.Service, cfg Config) *Service {
	return &Service{searches: searches, cfg: cfg, served: map[string][]*servedCatalogue{}}
}

// Accept returns an error when no schema can be made of a catalogue (catalogue.Config.Accept); the schema is kept for Execute.
func (s *Service) Accept(m *catalogue.Model) error {
	_, err := s.schemaFor(m)
	return err
}

// Schema returns the text of the schema of a catalogue, in GraphQL's own language. Errors are those of Accept.
func (s *Service) Schema(m *catalogue.Model) (string, error) {
	sv, err := s.schemaFor(m)
	if err != nil {
		return "", err
	}
	return sv.schema.Text, nil
}

// schemaFor returns what is kept of a model, and makes it where there is nothing.
func (s *Service) schemaFor(m *catalogue.Model) (*servedCatalogue, error) {
	id := m.Definition().ID
	sv, before := s.cached(id, m)
	if sv != nil {
		return sv, nil
	}
	built, err := s.build(m)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sv := range s.served[id] {
		if sv.model == m {
			return sv, nil
		}
	}
	if s.invalidations != before {
		return built, nil
	}
	all := append([]*servedCatalogue{built}, s.served[id]...)
	s.served[id] = all[:min(len(all), maxModels)]
	return built, nil
}

// cached returns what is kept of a model, nil for nothing, and how often Forget was called before.
func (s *Service) cached(id string, m *catalogue.Model) (*servedCatalogue, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sv := range s.served[id] {
		if sv.model == m {
			return sv, s.invalidations
		}
	}
	return nil, s.invalidations
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
	sv := &servedCatalogue{model: m, schema: built, leaves: countLeaves(built, built.Document+"Node")}
	sv.window = sv.maxPage()
	sv.fields = sync.OnceValue(sv.describedFields)
	sv.config = sync.OnceValue(func() json.RawMessage { return sv.configuration(sv.fields()) })
	if prefix := m.Definition().NestingPrefix; prefix != "" {
		sv.prefix = strings.Split(prefix, ".")
	}
	return sv, nil
}

// Execute answers one operation on a catalogue for a caller. Whatever is wrong with it is in the response; the end of ctx ends
// the work on it.
func (s *Service) Execute(ctx context.Context, m *catalogue.Model, who core.Principal, r core.GraphQLRequest) core.GraphQLResponse {
	sv, err := s.schemaFor(m)
	if err != nil {
		return errorResponse(errorOf(err))
	}
	doc, faults := sv.document(r.Query)
	if len(faults) > 0 {
		return errorResponse(faults...)
	}
	op, bad := operation(doc.QueryDocument, r.OperationName)
	if bad == nil {
		bad = checkMethod(op, r.ReadOnly)
	}
	if bad != nil {
		return errorResponse(bad)
	}
	view := s.searches.View(m, who)
	identity := view.Identity()
	key := planKey{doc: doc, operation: r.OperationName, variables: string(r.Variables), identity: identity.Field.Path}
	var response core.GraphQLResponse
	x := sv.plans.takeIdle(key)
	if x != nil {
		response = x.rerun(ctx, view)
	} else {
		vars, faults := variablesOf(sv.schema.AST, op, r.Variables)
		if len(faults) > 0 {
			return errorResponse(faults...)
		}
		x = &execution{
			service: s, served: sv, cfg: s.cfg, view: view, identity: identity, op: op, vars: vars,
			collector: collector{types: sv.schema.AST, vars: vars}, edges: &doc.edges,
		}
		response = x.run(ctx)
	}
	if !response.Refused && x.reusable() {
		x.reset()
		sv.plans.put(key, x)
	}
	return response
}

// checkMethod refuses operations of a kind that cannot be asked here. Subscriptions are in no schema.
func checkMethod(op *ast.OperationDefinition, readOnly bool) *gqlError {
	if op.Operation == ast.Mutation && readOnly {
		return (&gqlError{message: "a mutation must be sent by POST", code: codeRequest}).at(op.Position)
	}
	return nil
}

// execution is the work on one operation: everything that it asks is planned, asked of the index at once, and then written.
type execution struct {
	service *Service
	served  *servedCatalogue
	cfg     Config
	view    *search.View
	// identity is the order that tells any two documents apart.
	identity  index.Sort
	op        *ast.OperationDefinition
	vars      variables
	collector collector
	batch     batch
	edges     *edgeCache
	// warnings are those of the plan.
	warnings []warning
	// members are those of the answer, as planned, planned how many there are of all objects.
	members       []member
	plannedFields int
	// weight is how much there is to the plan, once it has been kept.
	weight int
	// uncacheable is set when there is something in the plan that is asked of others than the index.
	uncacheable bool
	// writers are what documents are read by.
	writers []*documentWriter
	// chunks are the chunks that documents were read into.
	chunks [][]byte
	// bytesRead is how many bytes were written of documents that were read.
	bytesRead int
	w         responseWriter
	// rejected is set when what the client sent is at fault.
	rejected bool
}

func (x *execution) run(ctx context.Context) core.GraphQLResponse {
	root := x.served.schema.AST.Query
	if x.op.Operation == ast.Mutation {
		root = x.served.schema.AST.Mutation
	}
	x.members = x.root(ctx, root, x.op.SelectionSet)
	if x.rejected {
		return errorResponse(x.w.errors...)
	}
	return x.respond(ctx)
}

// respond asks what was planned, and writes the answer.
func (x *execution) respond(ctx context.Context) core.GraphQLResponse {
	x.batch.execute(ctx, x.view)
	w := &x.w
	w.dst = append(x.service.bodies.get(x.batch.estimateSize()), `{"data":`...)
	w.object(x.members)
	if len(w.errors) > 0 {
		if w.dropped > 0 {
			w.errors[maxErrors-1] = &gqlError{message: fmt.Sprintf("%d more errors are not told", w.dropped+1), code: codeInternal}
		}
		w.dst = appendErrors(append(w.dst, ','), w.errors)
	}
	w.warn(x.warnings...)
	for _, r := range x.writers {
		w.warn(r.w.warnings...)
	}
	if len(w.warnings) > 0 {
		w.dst = appendWarnings(append(w.dst, ','), w.warnings)
	}
	for _, chunk := range x.chunks { // the body has a copy of all
		x.service.chunks.put(chunk)
	}
	body := append(w.dst, '}')
	return core.GraphQLResponse{Body: body, Release: func() { x.service.bodies.put(body) }}
}

// collect returns the fields that a selection set asks of a type.
func (x *execution) collect(typeName string, set ast.SelectionSet) []*ast.Field {
	fields := x.collector.collect(typeName, set)
	x.plannedFields += len(fields)
	return fields
}

// below returns the fields that are asked of what a field gives.
func (x *execution) below(f *ast.Field) []*ast.Field {
	return x.collect(f.Definition.Type.Name(), f.SelectionSet)
}

func (x *execution) args(f *ast.Field) arguments { return arguments{field: f, vars: x.vars} }

// plan makes the members of an object, each by do, which returns a fault where the client is at fault with the field.
func (x *execution) plan(fields []*ast.Field, do func(f *ast.Field) (writeFunc, *gqlError)) []member {
	all := make([]member, 0, len(fields))
	for _, f := range fields {
		if f.Name == "__typename" {
			all = append(all, memberOf(f, writeText(f.ObjectDefinition.Name)))
			continue
		}
		x.w.push(f.Alias)
		writes, bad := do(f)
		if bad != nil {
			x.w.addError(bad)
			x.rejected = x.rejected || bad.code == codeInput
			writes = writeNull
		}
		x.w.pop()
		all = append(all, memberOf(f, writes))
	}
	return all
}

// objectOf plans an object of the fields that are asked of what f gives.
func (x *execution) objectOf(f *ast.Field, do func(f *ast.Field) (writeFunc, *gqlError)) writeFunc {
	members := x.plan(x.below(f), do)
	return func(w *responseWriter) bool { return w.object(members) }
}

// root plans the fields of the query or the mutation.
func (x *execution) root(ctx context.Context, of *ast.Definition, set ast.SelectionSet) []member {
	if of == nil {
		return nil
	}
	return x.plan(x.collect(of.Name, set), func(f *ast.Field) (writeFunc, *gqlError) {
		if f.Name == x.served.schema.Document {
			return x.document(ctx, f), nil
		}
		x.uncacheable = true
		switch f.Name {
		case "__schema", "__type":
			return x.meta(f), nil
		case "sets":
			return x.sets(ctx, f)
		case "saveSet":
			return x.saveSet(ctx, f)
		case "network":
			return x.network(ctx, f)
		case "hasValidConfig":
			return x.validConfig(f), nil
		default:
			return writeNull, nil
		}
	})
}

// meta writes a field of introspection.
func (x *execution) meta(f *ast.Field) writeFunc {
	return func(w *responseWriter) bool {
		start := len(w.dst)
		w.dst = x.served.schema.AppendMeta(w.dst, f, x.values(), x.collect)
		return string(w.dst[start:]) != "null"
	}
}

// values returns the variables decoded.
func (x *execution) values() map[string]any {
	values := make(map[string]any, len(x.vars))
	for name, raw := range x.vars {
		var v any
		if json.Unmarshal(raw, &v) == nil {
			values[name] = v
		}
	}
	return values
}

// document plans the fields of the catalogue.
func (x *execution) document(ctx context.Context, f *ast.Field) writeFunc {
	return x.objectOf(f, func(f *ast.Field) (writeFunc, *gqlError) {
		switch f.Name {
		case "hits":
			return x.hits(ctx, f)
		case "aggregations":
			return x.aggregations(ctx, f)
		case "configs":
			x.uncacheable = true
			return x.configs(f)
		case "mapping":
			x.uncacheable = true
			return x.mapping(), nil
		default:
			return writeNull, nil
		}
	})
}
