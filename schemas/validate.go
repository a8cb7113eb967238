package schemas

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas/jsontree"
	"tutti/schemas/violation"
)

// Validate validates an analysis of a study against the analysis type that it names: first with the rendered schema and the file
// types and, if there are no violations, with the external validations. It returns the version that was used. Errors: CodeInvalid
// with ErrorID payload.parsing for text that is not JSON, with ErrorID schema.violation and Violations for an invalid analysis;
// CodeNotFound with ErrorID analysis.type.not.found; CodeConflict with ErrorID analysis.type.incorrect.version for a version that
// is not the latest; CodeUnavailable if ctx ends.
func (s *Service) Validate(ctx context.Context, study, analysis string) (datamodel.AnalysisTypeRef, error) {
	ref, err := s.validate(ctx, study, analysis)
	s.cfg.Metrics.validated(err)
	return ref, err
}

func (s *Service) validate(ctx context.Context, study, analysis string) (datamodel.AnalysisTypeRef, error) {
	tree, err := jsontree.Parse(analysis)
	if err != nil {
		return datamodel.AnalysisTypeRef{}, &core.Error{
			Code: core.CodeInvalid, ErrorID: errorIDPayload, Message: "the analysis is not JSON: " + err.Error(),
		}
	}
	named, err := s.named(&tree)
	if err != nil {
		return datamodel.AnalysisTypeRef{}, err
	}
	ref, types, err := s.versions.find(ctx, named)
	if errors.Is(err, errOverdue) {
		return datamodel.AnalysisTypeRef{}, s.versions.overdueError(ref)
	}
	if err != nil {
		return datamodel.AnalysisTypeRef{}, err
	}
	what := "the analysis does not match version " + strconv.Itoa(ref.Version) + " of " + violation.Quoted(ref.Name)
	found, err := s.versions.check(ctx, ref, types, &tree)
	switch {
	case errors.Is(err, errOverdue):
		return datamodel.AnalysisTypeRef{}, s.versions.overdueError(ref)
	case errors.Is(err, jsontree.ErrTooMuchWork):
		return datamodel.AnalysisTypeRef{}, violation.NewList("", "schema", err.Error()).Invalid(errorIDViolation, what)
	case err != nil:
		return datamodel.AnalysisTypeRef{}, err
	}
	fileTypes(found, types.fileTypes, &tree)
	if len(found.Violations) == 0 && len(types.externals) > 0 {
		if err := s.external.Check(ctx, found, types.externals, study, &tree); err != nil {
			return datamodel.AnalysisTypeRef{}, err
		}
	}
	if len(found.Violations) > 0 {
		return datamodel.AnalysisTypeRef{}, found.Invalid(errorIDViolation, what)
	}
	return ref, nil
}

// CheckVersion checks that an analysis of a version may be published: CodeConflict with ErrorID analysis.type.incorrect.version
// for a version that is not the latest, unless Config.AllowOlder is set.
func (s *Service) CheckVersion(ctx context.Context, ref datamodel.AnalysisTypeRef) error {
	if s.cfg.AllowOlder {
		return nil
	}
	latest, err := s.versions.latestOf(ctx, ref)
	if e, ok := errors.AsType[*core.Error](err); ok && e.ErrorID == errorIDIncorrectVersion {
		// The version is that of the stored analysis: the request has no body that could name another one.
		e.Hint = "replace or patch the analysis so that it matches version " + strconv.Itoa(latest) +
			", then publish it; schemas.enforceLatest: false accepts older versions"
	}
	return err
}

// named returns the type and version that an analysis names; version 0 if it names no version.
func (s *Service) named(tree *jsontree.Value) (datamodel.AnalysisTypeRef, error) {
	analysisType := tree.Member("analysisType")
	name, version := analysisType.Member("name"), analysisType.Member("version")
	ref := datamodel.AnalysisTypeRef{}
	ok := name != nil && name.Kind == jsontree.KindString
	if ok && version != nil && version.Kind != jsontree.KindNull {
		ref.Version, ok = positive(version)
	}
	if ok {
		ref.Name = name.Text
		return ref, nil
	}
	// Without a type only the base schema applies, which requires a type.
	found, err := s.base.Validate(tree)
	if err != nil && !errors.Is(err, jsontree.ErrTooMuchWork) {
		return ref, givenUp(err)
	}
	if err != nil || len(found.Violations) == 0 {
		found = violation.NewList("/analysisType", "analysisType", "must name an analysis type and, if at all, a version of it that exists")
	}
	return ref, found.Invalid(errorIDViolation, "the analysis does not match the base schema")
}

// positive returns a version number, and the largest int32 for larger numbers: no version has it.
func positive(v *jsontree.Value) (int, bool) {
	if v.Kind != jsontree.KindNumber || !jsontree.IsInteger(v.Text) {
		return 0, false
	}
	r := jsontree.Rational(v.Text)
	if r.Sign() <= 0 {
		return 0, false
	}
	if n := r.Num(); n.Cmp(big.NewInt(1<<31)) < 0 {
		return int(n.Int64()), true
	}
	return 1<<31 - 1, true
}

// retryable reports whether all violations may disappear without a change of the analysis.
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

// fileTypes adds the files whose type is not allowed; an empty list allows every type. Types are compared exactly.
func fileTypes(found *violation.List, allowed []string, tree *jsontree.Value) {
	files := tree.Member("files")
	if len(allowed) == 0 || files == nil {
		return
	}
	shown := make([]string, 0, len(allowed))
	for _, t := range allowed {
		shown = append(shown, violation.Quoted(t))
	}
	for i := range files.Items() {
		fileType := files.Items()[i].Member("fileType")
		if fileType == nil || fileType.Kind != jsontree.KindString || slices.Contains(allowed, fileType.Text) {
			continue
		}
		message := violation.Quoted(fileType.Text) + " is not one of the file types of this analysis type: " + violation.Listed(shown)
		if near := slices.IndexFunc(allowed, func(t string) bool { return strings.EqualFold(t, fileType.Text) }); near >= 0 {
			message += "; only the case differs from " + violation.Quoted(allowed[near])
		}
		found.Add(core.Violation{Pointer: "/files/" + strconv.Itoa(i) + "/fileType", Message: message, Keyword: "fileTypes"})
	}
}
