package catalogue

import (
	"context"
	"errors"

	"tutti/internal/core"
)

// problem returns a CatalogueProblem.
func problem(code core.CatalogueCode, message string) *core.CatalogueProblem {
	return &core.CatalogueProblem{Code: code, Message: message}
}

// pendingProblem is the problem of a catalogue whose index has not responded yet.
func pendingProblem() *core.CatalogueProblem {
	return problem(core.CatalogueConnectionError, "the index has not answered yet")
}

// readingProblem returns why a mapping could not be read, without the engine's text; the message of core.CodeConflict is about
// names in the mapping.
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
			break // the engine's rejection, which is not about the name: that is validated before the request
		}
		return problem(core.CatalogueSchemaBuild, "the configured index name of the catalogue is not valid")
	case core.CodeConflict:
		return problem(core.CatalogueSchemaBuild, core.MessageOf(err))
	case core.CodeInternal:
		return problem(core.CatalogueUnknown, "the catalogue could not be loaded")
	default:
	}
	return problem(core.CatalogueMappingFetch, "the mapping of the index could not be read")
}

// conclusive reports whether a problem is a clear response of the engine or a configuration error: an immediate retry would
// return the same, so it applies at once. An alias is swapped atomically, so an index reported as missing is missing.
func conclusive(code core.CatalogueCode) bool {
	switch code {
	case core.CatalogueIndexNotFound, core.CataloguePermissionDenied, core.CatalogueSchemaBuild:
		return true
	default:
		return false
	}
}
