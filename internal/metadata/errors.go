package metadata

import (
	"errors"

	"tutti/internal/core"
)

// Error ids that Song's clients know (CONTRACT sections 7 and 8).
const (
	idMalformed     = "malformed.parameter"
	idNoStudy       = "study.id.does.not.exist"
	idStudyExists   = "study.already.exists"
	idNoAnalysis    = "analysis.id.not.found"
	idSuppressed    = "suppressed.state.transition"
	idNoEntity      = "legacy.entity.not.found"
	idNoFile        = "file.not.found"
	idIllegalUpdate = "illegal.file.update.request"
	idSearchTerm    = "search.term.syntax"

	idMissingObjects = "missing.storage.objects"
	idObjectSizes    = "mismatching.storage.object.sizes"
	idObjectMD5s     = "mismatching.storage.object.checksums"
	idStorage        = "storage.service.error"
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

func studyNotFound() *core.Error {
	return newError(core.CodeNotFound, idNoStudy, "the study does not exist")
}

func analysisNotFound() *core.Error {
	return newError(core.CodeNotFound, idNoAnalysis, "the study has no analysis of this id")
}

func suppressedError() *core.Error {
	return newError(core.CodeConflict, idSuppressed, "the analysis is suppressed, which is final")
}
