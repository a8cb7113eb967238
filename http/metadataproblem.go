package http

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tutti/internal/core"
)

// Error ids that this package gives, or decides by, itself.
const (
	errorIDParameter       = "malformed.parameter"
	errorIDPayload         = "payload.parsing"
	errorIDStudyMismatch   = "study.id.mismatch"
	errorIDAnalysisMissing = "analysis.id.not.found"
)

// metadataFailure is what a problem of /schemas, /studies and /submit has beside the others, for clients that know Song's
// answers (CONTRACT section 0).
type metadataFailure struct {
	ErrorID        string `json:"errorId"`
	HTTPStatusCode int    `json:"httpStatusCode"`
	// HTTPStatusName is in Song's form, such as NOT_FOUND.
	HTTPStatusName string `json:"httpStatusName"`
	RequestURL     string `json:"requestUrl"`
	// Timestamp is in milliseconds since 1970.
	Timestamp int64 `json:"timestamp"`
}

// withMetadataMembers adds what /schemas, /studies and /submit have beside the others.
func (p problem) withMetadataMembers(errorID, requestURL string, now time.Time) problem {
	p.Message = p.Detail
	p.metadataFailure = &metadataFailure{
		ErrorID: errorID, HTTPStatusCode: p.Status, RequestURL: requestURL, Timestamp: now.UnixMilli(),
		HTTPStatusName: strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(p.Title)),
	}
	return p
}

// onMetadataSurface reports whether the request is for a route that Song's clients use.
func (h *Handler) onMetadataSurface(r *http.Request) bool {
	return h.isBelow(r, "/schemas") || h.isBelow(r, "/studies") || h.isBelow(r, "/submit")
}

// errorIDOf names the fault as Song's clients know it: in the words of who found it, else by its code.
func errorIDOf(err error) string {
	if e, ok := errors.AsType[*core.Error](err); ok && e.ErrorID != "" {
		return e.ErrorID
	}
	switch core.CodeOf(err) {
	case core.CodeInvalid, codeNotUnderstood:
		return errorIDParameter
	case core.CodeUnauthenticated:
		return "unauthorized.token"
	case core.CodeForbidden:
		return "forbidden.token"
	case core.CodeNotFound, core.CodeAbsent:
		return "not.found"
	case core.CodeConflict:
		return "conflict"
	case core.CodeTooLarge:
		return "payload.too.large"
	case core.CodeUnsupportedMedia:
		return "unsupported.media.type"
	case core.CodeUnsupported:
		return "not.supported"
	case core.CodeOverloaded, core.CodeUnavailable, core.CodeIndexBlocked:
		return "service.unavailable"
	case core.CodeUpstream:
		return "bad.gateway"
	case codeMethodNotAllowed:
		return "method.not.allowed"
	case codeNotAcceptable:
		return "not.acceptable"
	case codeMisdirected:
		return "misdirected.request"
	case codeHeaderTooLarge:
		return "header.too.large"
	default:
		return "unknown.error"
	}
}

// requestURL returns the URL that was asked, as far as this server sees it, without its query, which may hold anything.
func requestURL(r *http.Request) string {
	if r.Host == "" {
		return instanceOf(r)
	}
	u := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	return u.String()
}
