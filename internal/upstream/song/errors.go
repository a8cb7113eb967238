package song

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// Sentinels in the Err of a *core.Error: the Song server's error documents.
var (
	// ErrAnalysisAbsent: errorId analysis.id.not.found, with CodeAbsent.
	ErrAnalysisAbsent = fmt.Errorf("song: analysis.id.not.found: %w", core.ErrRecordAbsent)
	// ErrStudyAbsent: errorId study.id.does.not.exist, with CodeAbsent. Callers treat the study as absent only if Organizations omits it too.
	ErrStudyAbsent = fmt.Errorf("song: study.id.does.not.exist: %w", core.ErrOrganizationAbsent)
	// ErrOtherStudy: errorId entity.not.related.to.study, with CodeUpstream: the analysis exists in another study.
	ErrOtherStudy = fmt.Errorf("song: entity.not.related.to.study: %w", core.ErrOtherOrganization)
)

// protocolError converts a status error whose body is Song's error document. Other errors are returned unchanged.
func protocolError(err error) error {
	var status *upstream.StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch id := errorID(status.Body); {
	case status.Status == http.StatusNotFound && id == "analysis.id.not.found":
		return core.WrapError(core.CodeAbsent, "the analysis does not exist upstream", errors.Join(ErrAnalysisAbsent, status))
	case status.Status == http.StatusNotFound && id == "study.id.does.not.exist":
		return core.WrapError(core.CodeAbsent, "the study does not exist upstream", errors.Join(ErrStudyAbsent, status))
	case status.Status == http.StatusBadRequest && id == "entity.not.related.to.study":
		return core.WrapError(core.CodeUpstream, "the analysis belongs to another study", errors.Join(ErrOtherStudy, status))
	default:
		return err
	}
}

// errorID returns the member errorId of Song's error document. body may be truncated: the document's last member is a stack trace.
func errorID(body []byte) string {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return "" // a page of a proxy, in which gjson would look for an object
	}
	return gjson.GetBytes(body, "errorId").Str
}
