package schemas

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"tutti/internal/core"
)

// propertyExperiment is what every dynamic schema describes and requires.
const propertyExperiment = "experiment"

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
	r, found, err := compile(ctx, string(rendered))
	if err != nil {
		return givenUp(err)
	}
	if found == nil {
		found = experimentFault(r)
	}
	if found != nil {
		return found.within("/schema").invalid(errorIDMalformedSchema, "the registration is not valid")
	}
	return nil
}

// experimentFault tells whether the rule of a whole schema takes something else than an object for an experiment. The
// meta-schema cannot say it: it does not know where a $ref leads.
func experimentFault(r *rule) *faults {
	if r.object != nil {
		if experiment := r.object.properties[propertyExperiment]; experiment != nil && experiment.onlyObjects(map[*rule]bool{}) {
			return nil
		}
	}
	return oneFault("/properties/"+propertyExperiment, "type",
		`must be the schema of an object: its type, or the type of what its $ref leads to, must be "object"`)
}

// onlyObjects tells whether r says in so many words that a value must be an object. known holds what was asked before: rules
// may share parts.
func (r *rule) onlyObjects(known map[*rule]bool) bool {
	only, asked := known[r]
	if asked {
		return only
	}
	is := func(part *rule) bool { return part.onlyObjects(known) }
	only = r.types == 1<<kindObject || slices.ContainsFunc(r.refs, is) || slices.ContainsFunc(r.allOf, is)
	for _, alternatives := range [][]*rule{r.anyOf, r.oneOf} {
		only = only || alternatives != nil && !slices.ContainsFunc(alternatives, func(part *rule) bool { return !is(part) })
	}
	known[r] = only
	return only
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
