package graphql

import (
	"encoding/json"
	"sync"

	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql/plan"
	"tutti/internal/search/graphql/request"
	"tutti/internal/search/graphql/schema"
)

// maxModels is the number of models kept per catalogue: the current one and its replacements.
const maxModels = 3

// servedCatalogue is a catalogue model with its schema and caches.
type servedCatalogue struct {
	model   *catalogue.Model
	schema  *schema.Schema
	parser  *request.Parser
	planned *plan.Catalogue
	plans   planCache
	// fields and config are the results of configs, computed on first use.
	fields func() []fieldDescription
	config func() json.RawMessage
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
	d := m.Definition()
	sv := &servedCatalogue{
		model: m, schema: built, planned: plan.NewCatalogue(m, built), plans: newPlanCache(),
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
