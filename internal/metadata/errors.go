package metadata

import (
	"errors"

	"tutti/internal/core"
)

// Error ids that Song's clients know (CONTRACT sections 7 and 8).
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
	idNoEntity      = "legacy.entity.not.found"
	idNoFile        = "file.not.found"
	idInvalidUpdate = "invalid.file.update.request"
	idIllegalUpdate = "illegal.file.update.request"
	idSearchTerm    = "search.term.syntax"

	idMissingObjects = "missing.storage.objects"
	idObjectSizes    = "mismatching.storage.object.sizes"
	idObjectMD5s     = "mismatching.storage.object.checksums"
	idStorage        = "storage.service.error"
)

const (
	// maxQuoted bounds the client's text quoted in a message, in bytes.
	maxQuoted = 100
	// maxViolations is how many violations an error lists.
	maxViolations = 100
)

// errChanged: the analysis was changed between read and write.
var errChanged = errors.New("metadata: the analysis was changed concurrently")

// errUnchanged: an edit leaves the analysis as it is.
var errUnchanged = errors.New("metadata: the analysis is not changed")

func newError(code core.Code, errorID, message string) *core.Error {
	return &core.Error{Code: code, ErrorID: errorID, Message: message}
}

func parameterError(message string) *core.Error {
	return newError(core.CodeInvalid, idMalformed, message)
}

func parsingError(message string) *core.Error { return newError(core.CodeInvalid, idParsing, message) }

func studyNotFound() *core.Error {
	return newError(core.CodeNotFound, idNoStudy, "the study does not exist")
}

func analysisNotFound() *core.Error {
	return newError(core.CodeNotFound, idNoAnalysis, "the study has no analysis of this id")
}

func suppressedError() *core.Error {
	return newError(core.CodeConflict, idSuppressed, "the analysis is suppressed, which is final")
}

// truncated returns a client's text shortened for a message.
func truncated(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	cut := maxQuoted
	for cut > 0 && text[cut]&0xc0 == 0x80 { // not within a character
		cut--
	}
	return text[:cut] + "…"
}
