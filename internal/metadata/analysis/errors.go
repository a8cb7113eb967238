package analysis

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"tutti/internal/core"
)

// Error ids that Song's clients know (CONTRACT sections 7 and 8).
const (
	idMalformed     = "malformed.parameter"
	idViolation     = "schema.violation"
	idParsing       = "payload.parsing"
	idStudyMismatch = "study.id.mismatch"
	idDuplicateFile = "duplicate.file"
	idInvalidUpdate = "invalid.file.update.request"
)

const (
	// maxQuoted bounds the client's text quoted in a message, in bytes.
	maxQuoted = 100
	// maxViolations is how many violations an error lists.
	maxViolations = 100
)

func newError(code core.Code, errorID, message string) *core.Error {
	return &core.Error{Code: code, ErrorID: errorID, Message: message}
}

func parameterError(message string) *core.Error {
	return newError(core.CodeInvalid, idMalformed, message)
}

func parsingError(message string) *core.Error { return newError(core.CodeInvalid, idParsing, message) }

func studyMismatch() *core.Error {
	return newError(core.CodeConflict, idStudyMismatch, "the payload's studyId is not that of the path")
}

// ViolationError returns the CodeInvalid (schema.violation) of an analysis with violations, of which the message has the first. There must
// be one.
func ViolationError(what string, faults []core.Violation) *core.Error {
	err := newError(core.CodeInvalid, idViolation, what+": "+faults[0].Pointer+" "+faults[0].Message)
	err.Violations = faults[:min(len(faults), maxViolations)]
	return err
}

// DuplicateFilesError returns the error for duplicate files, nil when there are none.
func DuplicateFilesError(message string, names []string, faults []core.Violation) error {
	list := make([]string, 0, len(names))
	for _, name := range names {
		list = append(list, strconv.Quote(Shortened(name)))
	}
	return FilesError(idDuplicateFile, message, list, faults)
}

// FilesError returns the CodeConflict of some files, whose names follow message; nil when there are no faults.
func FilesError(errorID, message string, names []string, faults []core.Violation) error {
	if len(faults) == 0 {
		return nil
	}
	const named = 5
	message += strings.Join(names[:min(len(names), named)], ", ")
	if more := len(names) - named; more > 0 {
		message += " and " + strconv.Itoa(more) + " more"
	}
	err := newError(core.CodeConflict, errorID, message)
	err.Violations = faults[:min(len(faults), maxViolations)]
	return err
}

// Shortened returns a client's text shortened for a message.
func Shortened(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	cut := maxQuoted
	for cut > 0 && text[cut]&0xc0 == 0x80 { // not within a character
		cut--
	}
	return text[:cut] + "…"
}

// Storable reports whether both databases accept text as a value.
func Storable(text string) bool { return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 }
