package schemas

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"strings"
	"sync"

	"tutti/internal/core"
)

// compiled is what analyses of one version of an analysis type are checked by.
type compiled struct {
	rules     *rules
	fileTypes []string
	externals []external
	// overdue is closed, once, when a validation took too long.
	overdue chan struct{}
	once    sync.Once
}

// cost is about what it takes in memory; schema is the length of its text.
func (c *compiled) cost(schema int) int64 {
	return int64(schema) + schemaCost*int64(len(c.rules.known)) + instructionBytes*int64(c.rules.weight)
}

// Validate checks an analysis of a study by the analysis type that it names: by the rendered schema and the file types,
// and then, when these have nothing to say against it, by the external validations. It gives the version by which the
// analysis is valid. Errors: CodeInvalid with ErrorID payload.parsing for what is not JSON, with ErrorID schema.violation
// and Violations for what is not valid; CodeNotFound with ErrorID analysis.type.not.found; CodeConflict with ErrorID
// analysis.type.incorrect.version for a version that is not the latest; CodeUnavailable when ctx ends.
func (s *Service) Validate(ctx context.Context, study, analysis string) (core.AnalysisTypeRef, error) {
	ref, err := s.validate(ctx, study, analysis)
	s.cfg.Metrics.validated(err)
	return ref, err
}

func (s *Service) validate(ctx context.Context, study, analysis string) (core.AnalysisTypeRef, error) {
	tree, err := parse(analysis)
	if err != nil {
		return core.AnalysisTypeRef{}, &core.Error{
			Code: core.CodeInvalid, ErrorID: errorIDPayload, Message: "the analysis is not JSON: " + err.Error(),
		}
	}
	named, err := s.named(&tree)
	if err != nil {
		return core.AnalysisTypeRef{}, err
	}
	ref, types, err := s.typeOf(ctx, named)
	if errors.Is(err, errOverdue) {
		return core.AnalysisTypeRef{}, s.overdueError(ref)
	}
	if err != nil {
		return core.AnalysisTypeRef{}, err
	}
	what := "the analysis does not match version " + decimal(ref.Version) + " of " + quoted(ref.Name)
	found, err := s.check(ctx, ref, types, &tree)
	switch {
	case errors.Is(err, errOverdue):
		return core.AnalysisTypeRef{}, s.overdueError(ref)
	case errors.Is(err, errTooMuchWork):
		return core.AnalysisTypeRef{}, oneFault("", "schema", err.Error()).invalid(errorIDViolation, what)
	case err != nil:
		return core.AnalysisTypeRef{}, err
	}
	fileTypes(found, types.fileTypes, &tree)
	if len(found.list) == 0 && len(types.externals) > 0 {
		if err := s.asker.check(ctx, found, types.externals, study, &tree); err != nil {
			return core.AnalysisTypeRef{}, err
		}
	}
	if len(found.list) > 0 {
		return core.AnalysisTypeRef{}, found.invalid(errorIDViolation, what)
	}
	return ref, nil
}

// named gives the type and version that an analysis names, version 0 where it names none.
func (s *Service) named(tree *value) (core.AnalysisTypeRef, error) {
	analysisType := tree.member("analysisType")
	name, version := analysisType.member("name"), analysisType.member("version")
	ref := core.AnalysisTypeRef{}
	ok := name != nil && name.kind == kindString
	if ok && version != nil && version.kind != kindNull {
		ref.Version, ok = positive(version)
	}
	if ok {
		ref.Name = name.text
		return ref, nil
	}
	// Without a type only the base schema can be asked, and it has something to say against this.
	found, err := s.base.check(tree)
	if err != nil && !errors.Is(err, errTooMuchWork) {
		return ref, givenUp(err)
	}
	if err != nil || len(found.list) == 0 {
		found = oneFault("/analysisType", "analysisType", "must name an analysis type and, if at all, a version of it that exists")
	}
	return ref, found.invalid(errorIDViolation, "the analysis does not match the base schema")
}

// positive gives a version number. One that is too large for an int is given as the largest, which nothing has.
func positive(v *value) (int, bool) {
	if v.kind != kindNumber || !integral(v.text) {
		return 0, false
	}
	r := exactly(v.text)
	if r.Sign() <= 0 {
		return 0, false
	}
	if n := r.Num(); n.Cmp(big.NewInt(1<<31)) < 0 {
		return int(n.Int64()), true
	}
	return 1<<31 - 1, true
}

// typeOf gives the version that an analysis is checked by.
func (s *Service) typeOf(ctx context.Context, named core.AnalysisTypeRef) (core.AnalysisTypeRef, *compiled, error) {
	if named.Version > 0 && s.cfg.AllowOlder {
		types, err := s.compiled(ctx, named)
		return named, types, err
	}
	latest, err := s.latestVersion(ctx, named.Name)
	switch {
	case err != nil:
		return named, nil, err
	case named.Version > latest:
		return named, nil, notFound(named.Name, named.Version, nil)
	case named.Version > 0 && named.Version < latest:
		return named, nil, &core.Error{
			Code: core.CodeConflict, ErrorID: errorIDIncorrectVersion,
			Message: "version " + decimal(named.Version) + " of the analysis type " + quoted(named.Name) +
				" is not its latest, which is " + decimal(latest),
			Hint: "leave analysisType.version out, or set it to " + decimal(latest),
		}
	}
	named.Version = latest
	if !s.cfg.AllowOlder {
		s.quarantine.release(named.Name, latest) // another process may have registered it
	}
	types, err := s.compiled(ctx, named)
	return named, types, err
}

// latestVersion gives the number of the latest version of a name.
func (s *Service) latestVersion(ctx context.Context, name string) (int, error) {
	if s.shared.Load() {
		t, err := s.store.AnalysisType(ctx, name, 0)
		if err != nil {
			return 0, notFound(name, 0, err)
		}
		return t.Version, nil
	}
	if version, ok := s.latest.get(name); ok {
		return version, nil
	}
	generation := s.latest.now()
	return together(ctx, &s.flights, flightKey("latest", generation, bodyKey{name: name}), func(ctx context.Context) (int, error) {
		t, err := s.store.AnalysisType(ctx, name, 0)
		if err != nil {
			return 0, notFound(name, 0, err)
		}
		s.latest.put(generation, name, t.Version, 1)
		return t.Version, nil
	})
}

// compiled gives what a version checks by, compiled once.
func (s *Service) compiled(ctx context.Context, ref core.AnalysisTypeRef) (*compiled, error) {
	if s.quarantine.has(ref) {
		return nil, errOverdue
	}
	if types, ok := s.rules.get(ref); ok {
		return types, nil
	}
	key := flightKey("rules", s.wholes.now(), bodyKey{name: ref.Name, version: ref.Version})
	return together(ctx, &s.flights, key, func(ctx context.Context) (*compiled, error) {
		t, err := s.store.AnalysisType(ctx, ref.Name, ref.Version)
		if err != nil {
			return nil, notFound(ref.Name, ref.Version, err)
		}
		types, err := s.compile(t)
		if err != nil {
			return nil, core.WrapError(core.CodeInternal, "the stored schema of "+quoted(ref.Name)+" cannot be applied", err)
		}
		s.rules.put(0, ref, types, types.cost(len(t.Schema)))
		return types, nil
	})
}

func (s *Service) compile(t core.AnalysisType) (*compiled, error) {
	rendered, err := render(string(t.Schema))
	if err != nil {
		return nil, err
	}
	r, found, err := compile(string(rendered))
	if err != nil {
		return nil, err
	}
	if found != nil {
		return nil, found.invalid(errorIDMalformedSchema, "the schema")
	}
	options := s.effective(t.Options)
	externals, found := parseExternals(options.ExternalValidations)
	if len(found.list) > 0 {
		return nil, found.invalid(errorIDParameter, "the external validations")
	}
	return &compiled{rules: r, fileTypes: slices.Clone(options.FileTypes), externals: externals, overdue: make(chan struct{})}, nil
}

// retryable tells whether all that is wrong may be right later.
func retryable(err error) bool {
	e, ok := errors.AsType[*core.Error](err)
	if !ok || len(e.Violations) == 0 {
		return false
	}
	for _, v := range e.Violations {
		if !v.Retryable {
			return false
		}
	}
	return true
}

// fileTypes finds the files whose type is not allowed; no allowed types allow any. Types are compared exactly.
func fileTypes(found *faults, allowed []string, tree *value) {
	files := tree.member("files")
	if len(allowed) == 0 || files == nil {
		return
	}
	shown := make([]string, 0, len(allowed))
	for _, t := range allowed {
		shown = append(shown, quoted(t))
	}
	for i := range files.items() {
		fileType := files.items()[i].member("fileType")
		if fileType == nil || fileType.kind != kindString || slices.Contains(allowed, fileType.text) {
			continue
		}
		message := quoted(fileType.text) + " is not one of the file types of this analysis type: " + listed(shown)
		if near := slices.IndexFunc(allowed, func(t string) bool { return strings.EqualFold(t, fileType.text) }); near >= 0 {
			message += "; only the case differs from " + quoted(allowed[near])
		}
		found.add(core.Violation{Pointer: "/files/" + decimal(i) + "/fileType", Message: message, Keyword: "fileTypes"})
	}
}
