package schemas

import (
	"context"
	"errors"
	"strconv"

	"tutti/internal/core"
	"tutti/schemas/violation"
)

// ErrorIDs of this package's errors, as Song's clients know them (CONTRACT sections 7 and 8).
const (
	errorIDParameter        = "malformed.parameter"
	errorIDIllegalName      = "illegal.analysis.type.name"
	errorIDMalformedSchema  = "malformed.json.schema"
	errorIDViolation        = "schema.violation"
	errorIDNotFound         = "analysis.type.not.found"
	errorIDIncorrectVersion = "analysis.type.incorrect.version"
	errorIDPayload          = "payload.parsing"
)

// notFound is the error of an analysis type, or of a version of it, that does not exist. It replaces the store's
// CodeNotFound; other errors are returned unchanged.
func notFound(name string, version int, err error) error {
	if err != nil && core.CodeOf(err) != core.CodeNotFound {
		return err
	}
	e := &core.Error{Code: core.CodeNotFound, ErrorID: errorIDNotFound, Err: err}
	if version == 0 {
		e.Message = "there is no analysis type " + violation.Quoted(name)
	} else {
		e.Message = "the analysis type " + violation.Quoted(name) + " has no version " + strconv.Itoa(version)
	}
	return e
}

// givenUp is the error of work for which its caller no longer waits.
func givenUp(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return core.WrapError(core.CodeUnavailable, "the check was canceled", err)
	}
	return core.WrapError(core.CodeInternal, "the check failed", err)
}
