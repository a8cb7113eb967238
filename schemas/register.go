package schemas

import (
	"context"
	"encoding/json"
	"time"

	"tutti/internal/core"
)

// registerTimeout bounds the writing of a registration, which goes on when its client has left: a version that was
// stored without this process knowing would be missing from its answers.
const registerTimeout = 30 * time.Second

// Register adds a version of an analysis type and gives it, rendered. body is that of a registration (CONTRACT section
// 7). CodeInvalid with ErrorID malformed.parameter, illegal.analysis.type.name or malformed.json.schema and Violations
// when the body is at fault.
func (s *Service) Register(ctx context.Context, body []byte) ([]byte, error) {
	given, err := s.parseRegistration(ctx, body)
	if err != nil {
		return nil, err
	}
	if err := compiles(ctx, given.schema); err != nil {
		return nil, err
	}
	added, err := s.add(ctx, given)
	if err != nil {
		return nil, err
	}
	s.cfg.Logger.InfoContext(ctx, "analysis type registered", "name", added.Name, "version", added.Version)
	return s.element(added, false)
}

// compiles tells what is wrong with a dynamic schema that is rendered.
func compiles(ctx context.Context, dynamic string) error {
	rendered, err := render(dynamic)
	if err != nil {
		return core.WrapError(core.CodeInternal, "rendering a schema", err)
	}
	_, found, err := compile(ctx, string(rendered))
	if err != nil {
		return givenUp(err)
	}
	if found != nil {
		return found.within("/schema").invalid(errorIDMalformedSchema, "the registration is not valid")
	}
	return nil
}

// add stores a registration.
func (s *Service) add(ctx context.Context, given registration) (core.AnalysisType, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), registerTimeout)
	defer cancel()
	// The clock of a database is coarser than Go's; the answer must be what later answers say.
	at := s.cfg.Now().UTC().Truncate(time.Millisecond)
	added, err := s.store.AddAnalysisType(ctx, given.name, func(previous *core.AnalysisType) (core.AnalysisType, error) {
		next := core.AnalysisType{
			Name: given.name, Version: 1, CreatedAt: at, Options: given.options, Schema: json.RawMessage(given.schema),
		}
		if previous != nil {
			next.Version = previous.Version + 1
			next.Options = merged(given.options, previous.Options)
		}
		return next, nil
	})
	s.forget(given.name)
	if err == nil {
		return added, nil
	}
	// Whether it was stored is not known, so that what this process knows of the latest version may be wrong from now on.
	if !s.shared.Swap(true) {
		s.cfg.Logger.WarnContext(ctx, "what is the latest version is read from the store from now on: a registration failed there")
	}
	return core.AnalysisType{}, err
}

// merged gives the options with those of the previous version where none was given.
func merged(given, previous core.AnalysisOptions) core.AnalysisOptions {
	if given.FileTypes == nil {
		given.FileTypes = previous.FileTypes
	}
	if given.ExternalValidations == nil {
		given.ExternalValidations = previous.ExternalValidations
	}
	return given
}
