package schemas

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"tutti/internal/core"
)

// maxViolations is how many faults of one body are told.
const maxViolations = 100

// faults collects violations in the order in which they are found, each once.
type faults struct {
	list []core.Violation
	// more is true when there were further ones than are told.
	more bool
}

func (f *faults) add(v core.Violation) {
	if f.more || slices.Contains(f.list, v) {
		return
	}
	if len(f.list) == maxViolations {
		f.more = true
		return
	}
	f.list = append(f.list, v)
}

// within gives the faults with their pointers moved below prefix.
func (f *faults) within(prefix string) *faults {
	moved := &faults{more: f.more}
	for _, v := range f.list {
		v.Pointer = prefix + v.Pointer
		moved.list = append(moved.list, v)
	}
	return moved
}

// join adds those of another.
func (f *faults) join(other *faults) {
	for _, v := range other.list {
		f.add(v)
	}
	f.more = f.more || other.more
}

// invalid makes the error of what has faults. what begins its message: "the analysis does not match …".
func (f *faults) invalid(errorID, what string) error {
	e := &core.Error{Code: core.CodeInvalid, ErrorID: errorID, Message: what, Violations: f.list}
	if len(f.list) > 0 {
		first := f.list[0]
		where := first.Pointer
		if where == "" {
			where = "the whole"
		}
		e.Message += ": " + where + ": " + first.Message
	}
	switch {
	case f.more:
		e.Message += ", and more; only the first " + strconv.Itoa(maxViolations) + " faults are listed"
		e.Hint = "mend these and send it again to see the others"
	case len(f.list) > 1:
		e.Message += ", and " + counted(len(f.list)-1, "more fault", "more faults")
	}
	return e
}

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

// notFound is the error of an analysis type, or of a version of it, that does not exist. The store's own CodeNotFound
// becomes it; other errors stay.
func notFound(name string, version int, err error) error {
	if err != nil && core.CodeOf(err) != core.CodeNotFound {
		return err
	}
	e := &core.Error{Code: core.CodeNotFound, ErrorID: errorIDNotFound, Err: err}
	if version == 0 {
		e.Message = "there is no analysis type " + quoted(name)
	} else {
		e.Message = "the analysis type " + quoted(name) + " has no version " + decimal(version)
	}
	return e
}

// givenUp is the error of work that its caller no longer waits for.
func givenUp(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return core.WrapError(core.CodeUnavailable, "the check was given up", err)
	}
	return core.WrapError(core.CodeInternal, "the check could not be made", err)
}
