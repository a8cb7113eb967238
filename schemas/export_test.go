package schemas

import (
	"context"

	"tutti/internal/core"
)

// ParseTemplate and Fill are those of URL templates.
func ParseTemplate(text string) (func(study, value string) (string, error), error) {
	t, err := parseTemplate(text)
	return t.fill, err
}

// Canonical gives the full form of a path.
func Canonical(path string) (string, error) {
	p, err := parseJSONPath(path)
	return p.String(), err
}

// FindAt gives the pointers of what a path finds.
func FindAt(path, text string) ([]string, error) {
	p, err := parseJSONPath(path)
	if err != nil {
		return nil, err
	}
	v, err := parse(text)
	if err != nil {
		return nil, err
	}
	var pointers []string
	p.find(&v, func(l located) bool {
		pointers = append(pointers, l.pointer)
		return true
	})
	return pointers, nil
}

// Parse tells whether a text is read.
func Parse(text string) error {
	_, err := parse(text)
	return err
}

// Check compiles a schema and reports whether a text is valid by it, and the violations.
func Check(schema, text string) (valid bool, compileError string, violations []string, err error) {
	r, found, err := compile(schema)
	if err != nil {
		return false, "", nil, err
	}
	if found != nil && len(found.list) > 0 {
		return false, found.list[0].Pointer + ": " + found.list[0].Message, nil, nil
	}
	v, err := parse(text)
	if err != nil {
		return false, "", nil, err
	}
	if found, err = r.check(&v); err != nil {
		return false, "", nil, err
	}
	for _, f := range found.list {
		violations = append(violations, f.Pointer+" | "+f.Keyword+" | "+f.Message)
	}
	return len(found.list) == 0, "", violations, nil
}

// Validating reports whether an analysis is being validated.
func (s *Service) Validating() bool {
	if !s.inFlight.TryAcquire(maxInFlight) {
		return true
	}
	s.inFlight.Release(maxInFlight)
	return false
}

// RulesCost is what the compiled schemas that are kept count for.
func RulesCost(s *Service) int64 {
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	return s.rules.cost
}

// Public tells whether an address is public.
var Public = public

// TypeWhole is Type with the pieces put together.
func (s *Service) TypeWhole(ctx context.Context, name string, version int, unrendered bool) ([]byte, error) {
	return collected(func(each func([]byte) error) error { return s.Type(ctx, name, version, unrendered, each) })
}

// ListWhole is List with the pieces put together.
func (s *Service) ListWhole(ctx context.Context, query core.AnalysisTypeQuery, hideSchema, unrendered bool) ([]byte, error) {
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
