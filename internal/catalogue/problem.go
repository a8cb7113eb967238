package catalogue

import (
	"context"
	"errors"

	"tutti/internal/core"
)

// problem makes a CatalogueProblem.
func problem(code core.CatalogueCode, message string) *core.CatalogueProblem {
	return &core.CatalogueProblem{Code: code, Message: message}
}

// pendingProblem is the problem of a catalogue whose index was not heard of yet.
func pendingProblem() *core.CatalogueProblem {
	return problem(core.CatalogueConnectionError, "the index has not answered yet")
}

// readingProblem says why a mapping could not be read. What the engine said stays out of it; the message of core.CodeConflict is
// about names that the mapping chose.
func readingProblem(ctx context.Context, err error) *core.CatalogueProblem {
	switch {
	case errors.Is(err, core.ErrIndexMissing):
		return problem(core.CatalogueIndexNotFound, "the index of the catalogue does not exist")
	case errors.Is(err, core.ErrIndexForbidden):
		return problem(core.CataloguePermissionDenied, "the index does not let this server read its mapping")
	case errors.Is(err, core.ErrIndexUnreachable), errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		return problem(core.CatalogueConnectionError, "the index does not answer")
	}
	switch core.CodeOf(err) {
	case core.CodeInvalid:
		if refused, is := errors.AsType[*core.Error](err); is && refused.Err != nil {
			break // the engine's refusal, which is not about the name: that is looked at before it is asked
		}
		return problem(core.CatalogueSchemaBuild, "the name that the catalogue gives for its index is not one of an index")
	case core.CodeConflict:
		return problem(core.CatalogueSchemaBuild, core.MessageOf(err))
	case core.CodeInternal:
		return problem(core.CatalogueUnknown, "the catalogue could not be loaded")
	default:
	}
	return problem(core.CatalogueMappingFetch, "the mapping of the index could not be read")
}

// conclusive reports whether a problem is the engine's clear word, or the configuration's fault: asking again soon would say the
// same, so that it counts at once. An alias is swapped in one step, so an index that is said to be missing is missing.
func conclusive(code core.CatalogueCode) bool {
	switch code {
	case core.CatalogueIndexNotFound, core.CataloguePermissionDenied, core.CatalogueSchemaBuild:
		return true
	default:
		return false
	}
}
