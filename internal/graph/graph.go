package graph

import (
	"context"

	"tutti/internal/catalogue"
	"tutti/internal/core"
	"tutti/internal/search"
)

// Config is what a Service may have.
type Config struct{}

// Service executes GraphQL operations.
type Service struct{}

// New makes a Service.
func New(searches *search.Service, cfg Config) *Service { return &Service{} }

// Accept gives an error when no schema can be made of a catalogue (catalogue.Config.Accept); the schema is kept for Execute.
func (s *Service) Accept(m *catalogue.Model) error { return nil }

// Execute answers one operation on a catalogue for a caller. Whatever is wrong with it is in the response; the end of ctx ends
// the work on it.
func (s *Service) Execute(ctx context.Context, m *catalogue.Model, who core.Principal, r core.GraphQLRequest) core.GraphQLResponse {
	return core.GraphQLResponse{}
}
