package graphql

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
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
}

// Service executes GraphQL operations. It is safe for concurrent use.
type Service struct {
	searches *view.Service
	cfg      Config

	// chunks are buffers for documents, bodies for whole responses.
	chunks, bodies bufferPool

	mu sync.Mutex
	// served holds the catalogues by ID, newest first: while a new model replaces an old one, both are in use.
	served map[string][]*servedCatalogue
	// invalidations counts calls of Forget: a schema built before the last one is not stored.
	invalidations int
}

// maxModels is the number of models kept per catalogue: the current one and its replacements.
const maxModels = 3

// servedCatalogue is a catalogue model with its schema and caches.
type servedCatalogue struct {
	model  *catalogue.Model
	schema *schema.Schema
	// leaves is the number of values of a document; prefix is the path of the objects that contain the catalogue's fields.
	leaves  int
	prefix  []string
	queries queryCache
	plans   planCache
	// fields and config are the results of configs, computed on first use.
	fields func() []fieldDescription
	config func() json.RawMessage
	// window is the maximum number of documents per page.
	window int
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

// schemaFor returns the servedCatalogue of a model, and builds it if necessary.
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

// cached returns the servedCatalogue of a model, nil for none, and the current value of invalidations.
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

// Execute executes one operation on a catalogue. All errors are in the response; it stops when ctx is done.
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
	if !response.Rejected && x.reusable() {
		x.reset()
		sv.plans.put(key, x)
	}
	return response
}

// checkMethod rejects mutations in read-only requests. Subscriptions are not in the schema.
func checkMethod(op *ast.OperationDefinition, readOnly bool) *gqlError {
	if op.Operation == ast.Mutation && readOnly {
		return (&gqlError{message: "a mutation must be sent by POST", code: codeRequest}).at(op.Position)
	}
	return nil
}

// execution executes one operation: it plans all requests, sends them to the index at once, and writes the response.
type execution struct {
	service *Service
	served  *servedCatalogue
	cfg     Config
	view    *view.View
	// identity is the sort key that is unique per document.
	identity  index.Sort
	op        *ast.OperationDefinition
	vars      variables
	collector collector
	batch     batch
	edges     *edgeCache
	// warnings are those of the plan.
	warnings []warning
	// members are the planned members of the response, plannedFields counts the fields of all objects.
	members       []member
	plannedFields int
	// weight is the size of the plan, set when it is cached.
	weight int
	// uncacheable is set if the plan depends on more than the index.
	uncacheable bool
	// writers write documents while the index reads them.
	writers []*documentWriter
	// chunks are the buffers of the documents.
	chunks [][]byte
	// bytesRead is the number of bytes written for documents so far.
	bytesRead int
	w         responseWriter
	// rejected is set if the request is invalid.
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

// respond executes the planned requests and writes the response.
func (x *execution) respond(ctx context.Context) core.GraphQLResponse {
	x.batch.execute(ctx, x.view)
	w := &x.w
	w.dst = append(x.service.bodies.get(x.batch.estimateSize()), `{"data":`...)
	w.object(x.members)
	if len(w.errors) > 0 {
		if w.dropped > 0 {
			w.errors[maxErrors-1] = &gqlError{message: fmt.Sprintf("%d more errors were omitted", w.dropped+1), code: codeInternal}
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
	for _, chunk := range x.chunks { // the body has a copy
		x.service.chunks.put(chunk)
	}
	body := append(w.dst, '}')
	return core.GraphQLResponse{Body: body, Release: func() { x.service.bodies.put(body) }}
}

// collect returns the selected fields of a type.
func (x *execution) collect(typeName string, set ast.SelectionSet) []*ast.Field {
	fields := x.collector.collect(typeName, set)
	x.plannedFields += len(fields)
	return fields
}

// below returns the selected fields of the value of f.
func (x *execution) below(f *ast.Field) []*ast.Field {
	return x.collect(f.Definition.Type.Name(), f.SelectionSet)
}

func (x *execution) args(f *ast.Field) arguments { return arguments{field: f, vars: x.vars} }

// plan returns the members of an object. do plans one field and returns an error if the client's request is invalid.
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

// objectOf plans the object of field f.
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

// meta writes an introspection field.
func (x *execution) meta(f *ast.Field) writeFunc {
	return func(w *responseWriter) bool {
		start := len(w.dst)
		w.dst = x.served.schema.AppendMeta(w.dst, f, x.values(), x.collect)
		return string(w.dst[start:]) != "null"
	}
}

// values returns the decoded variables.
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
