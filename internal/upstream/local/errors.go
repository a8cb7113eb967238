package local

import (
	"errors"
	"fmt"

	"tutti/internal/core"
)

// Sentinels in the Err of a *core.Error: the repository's error ids, which are Song's.
var (
	// ErrAnalysisAbsent: errorId analysis.id.not.found, with CodeAbsent.
	ErrAnalysisAbsent = fmt.Errorf("local: %s: %w", analysisAbsent, core.ErrRecordAbsent)
	// ErrStudyAbsent: errorId study.id.does.not.exist, with CodeAbsent. Callers treat the study as absent only if Organizations omits it too.
	ErrStudyAbsent = fmt.Errorf("local: %s: %w", studyAbsent, core.ErrOrganizationAbsent)
)

// ErrorIDs of CONTRACT section 8.
const (
	analysisAbsent = "analysis.id.not.found"
	studyAbsent    = "study.id.does.not.exist"
)

// upstreamError converts err to the codes of an upstream.
func upstreamError(err error) error {
	if err == nil {
		return nil
	}
	switch core.CodeOf(err) {
	case core.CodeNotFound:
		switch errorID(err) {
		case analysisAbsent:
			return core.WrapError(core.CodeAbsent, "the analysis does not exist", errors.Join(ErrAnalysisAbsent, err))
		case studyAbsent:
			return core.WrapError(core.CodeAbsent, "the study does not exist", errors.Join(ErrStudyAbsent, err))
		}
	case core.CodeUnavailable, core.CodeOverloaded, core.CodeInvalid:
		return err
	default:
	}
	return core.WrapError(core.CodeUpstream, "the built-in repository failed to read the record", err)
}

// down reports whether a call failed because the repository is not available.
func down(err error) bool {
	switch core.CodeOf(err) {
	case "", core.CodeNotFound, core.CodeInvalid:
		return false
	default:
		return true
	}
}

func errorID(err error) string {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.ErrorID
	}
	return ""
}
