package schemas

import (
	"context"

	"tutti/internal/core/datamodel"
)

// Validating reports whether an analysis is being validated.
func (s *Service) Validating() bool {
	if !s.versions.inFlight.TryAcquire(maxInFlight) {
		return true
	}
	s.versions.inFlight.Release(maxInFlight)
	return false
}

// RulesCost is what the compiled schemas that are kept count for.
func RulesCost(s *Service) int64 { return s.versions.rules.Cost() }

// TypeWhole is Type with the pieces put together.
func (s *Service) TypeWhole(ctx context.Context, name string, version int, unrendered bool) ([]byte, error) {
	return collected(func(each func([]byte) error) error { return s.Type(ctx, name, version, unrendered, each) })
}

// ListWhole is List with the pieces put together.
func (s *Service) ListWhole(ctx context.Context, query datamodel.AnalysisTypeQuery, hideSchema, unrendered bool) ([]byte, error) {
	return collected(func(each func([]byte) error) error { return s.List(ctx, query, hideSchema, unrendered, each) })
}

func collected(stream func(each func([]byte) error) error) ([]byte, error) {
	var body []byte
	err := stream(func(piece []byte) error {
		body = append(body, piece...)
		return nil
	})
	return body, err
}
