package metadata

import (
	"errors"

	"tutti/internal/core"
)

// Names of faults as Song's clients know them (CONTRACT sections 7 and 8).
const (
	idMalformed     = "malformed.parameter"
	idViolation     = "schema.violation"
	idParsing       = "payload.parsing"
	idNoStudy       = "study.id.does.not.exist"
	idStudyExists   = "study.already.exists"
	idStudyMismatch = "study.id.mismatch"
	idNoAnalysis    = "analysis.id.not.found"
	idDuplicateFile = "duplicate.file"
	idSuppressed    = "suppressed.state.transition"
)

const (
	// maxQuoted is how many bytes of a client's own text stand in a message.
	maxQuoted = 100
	// maxViolations is how many faults an error lists.
	maxViolations = 100
)

// errChanged: somebody else changed the analysis between its reading and its writing.
var errChanged = errors.New("metadata: the analysis was changed meanwhile")

func fault(code core.Code, errorID, message string) *core.Error {
	return &core.Error{Code: code, ErrorID: errorID, Message: message}
}

func malformed(message string) *core.Error { return fault(core.CodeInvalid, idMalformed, message) }

func unparsed(message string) *core.Error { return fault(core.CodeInvalid, idParsing, message) }

func noStudy() *core.Error {
	return fault(core.CodeNotFound, idNoStudy, "the study does not exist")
}

func noAnalysis() *core.Error {
	return fault(core.CodeNotFound, idNoAnalysis, "the study has no analysis of this id")
}

func suppressed() *core.Error {
	return fault(core.CodeConflict, idSuppressed, "the analysis is suppressed, which is final")
}

// shortened returns a client's text as it is quoted in a message.
func shortened(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	cut := maxQuoted
	for cut > 0 && text[cut]&0xc0 == 0x80 { // not inside a character
		cut--
	}
	return text[:cut] + "…"
}
