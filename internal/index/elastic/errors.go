package elastic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tutti/internal/core"
)

// maxReasonBytes limits the stored part of a reason, which may quote a whole value of the document.
const maxReasonBytes = 4 << 10

// Error types of the cluster that are handled.
const (
	typeVersionConflict   = "version_conflict_engine_exception"
	typeDocumentParsing   = "document_parsing_exception"
	typeMapperParsing     = "mapper_parsing_exception"
	typeIllegalArgument   = "illegal_argument_exception"
	typeRequestValidation = "action_request_validation_exception"
	typeStrictMapping     = "strict_dynamic_mapping_exception"
	typeIndexClosed       = "index_closed_exception"
	typeClusterBlock      = "cluster_block_exception"
	typeIndexNotFound     = "index_not_found_exception"
	typeIllegalState      = "illegal_state_exception"
	typeAlreadyExists     = "resource_already_exists_exception"
	typeInvalidAlias      = "invalid_alias_name_exception"
	typeInvalidIndex      = "invalid_index_name_exception"
	typeSecurity          = "security_exception"
	typeUnavailableShards = "unavailable_shards_exception"
	typeRejectedExecution = "es_rejected_execution_exception"
	typeCircuitBreaking   = "circuit_breaking_exception"
)

// errOverLimit is the cause of the error of a response over the limit of bytes.
var errOverLimit = errors.New("the response is over the limit of bytes")

// isOverLimit reports whether err is due to a response over the limit of bytes.
func isOverLimit(err error) bool { return errors.Is(err, errOverLimit) }

// tooLarge returns the error of a result that is over the limit even when requested in the smallest parts.
func tooLarge(err error) error {
	return &core.Error{
		Code: core.CodeInvalid, Message: "a part of the result is larger than the index can return at once",
		Hint: "request only ids, or fewer facet values", Err: err,
	}
}

// engineError is an error in a response of the cluster.
type engineError struct {
	Type     string       `json:"type"`
	Reason   string       `json:"reason"`
	CausedBy *engineError `json:"caused_by"`
}

// fullReason returns the reason with that of its cause, at most maxReasonBytes.
func (e *engineError) fullReason() string {
	reason := e.Reason
	if e.CausedBy != nil && e.CausedBy.Reason != "" && !strings.Contains(reason, e.CausedBy.Reason) {
		reason += ": " + e.CausedBy.Reason
	}
	return truncate(reason)
}

func truncate(s string) string {
	if len(s) <= maxReasonBytes {
		return s
	}
	end := maxReasonBytes
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// responseError is a response with a status other than 2xx, of the cluster, or of a proxy and then without Type.
type responseError struct {
	status int
	engineError
}

// Error returns the cluster's text, which is for logs and dead letters only.
func (f *responseError) Error() string {
	if f.Type == "" {
		return fmt.Sprintf("status %d", f.status)
	}
	return fmt.Sprintf("status %d, %s: %s", f.status, f.Type, f.fullReason())
}

// Is maps the cluster's errors to the port's sentinels. Blocks of an index or of the cluster also have status 403, but are
// unrelated to credentials.
func (f *responseError) Is(target error) bool {
	switch target {
	case core.ErrIndexMissing:
		return f.Type == typeIndexNotFound
	case core.ErrIndexForbidden:
		refused := f.status == http.StatusUnauthorized || f.status == http.StatusForbidden
		return f.Type == typeSecurity || refused && f.Type != typeClusterBlock
	case core.ErrIndexUnreachable: // from a gateway, or from a cluster without a master
		return f.status >= http.StatusBadGateway && f.status <= http.StatusGatewayTimeout
	default:
		return false
	}
}

// responseErrorOf returns the *responseError in err's chain, nil when there is none.
func responseErrorOf(err error) *responseError {
	f, _ := errors.AsType[*responseError](err)
	return f
}

// typeOf returns the error type of the cluster's response in err's chain, "" when there is none.
func typeOf(err error) string {
	if f := responseErrorOf(err); f != nil {
		return f.Type
	}
	return ""
}

// newResponseError returns the error of a response with a status other than 2xx.
func newResponseError(status int, header http.Header, body []byte) *core.Error {
	f := &responseError{status: status}
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &answer) == nil {
		var told searchError
		if json.Unmarshal(answer.Error, &told) == nil {
			f.engineError = told.cause()
		} else {
			_ = json.Unmarshal(answer.Error, &f.Reason) // some APIs return a plain string
		}
	}
	code, message := classify(f)
	refused := &core.Error{Code: code, Message: message, RetryAfter: retryAfter(header), Err: f}
	if f.floodStage(f.status) {
		refused.Hint = floodStageHint
	}
	return refused
}

// classify returns the code and the message of a complete response. A 400 without an error type comes from a proxy and says
// nothing about the documents.
func classify(f *responseError) (core.Code, string) {
	if f.floodStage(f.status) {
		return core.CodeIndexBlocked, floodStageMessage
	}
	if code := blockCode(f.Type, f.status, f.Reason); code != "" {
		return code, blockMessage(f.Type)
	}
	switch {
	case f.status == http.StatusUnauthorized, f.status == http.StatusForbidden:
		return core.CodeIndexBlocked, "the index rejected the credentials"
	case f.status == http.StatusRequestEntityTooLarge:
		return core.CodeTooLarge, "the request is too large for the index"
	case f.status == http.StatusTooManyRequests, f.status == http.StatusServiceUnavailable:
		return core.CodeOverloaded, "the index is overloaded"
	case f.status == http.StatusBadRequest && f.Type != "":
		return core.CodeInvalid, "the index rejected the request"
	default:
		return core.CodeUnavailable, "the index returned an unexpected response"
	}
}

// Texts for the block that the cluster sets on the indices of a node whose disk is nearly full.
const (
	floodStageMessage = "a disk of the index engine is over its flood-stage watermark"
	floodStageHint    = "free disk space on the engine's nodes or add a node; where the engine does not lift the block by itself " +
		"afterwards, set index.blocks.read_only_allow_delete to null"
)

// floodStage reports whether e is that block: a 429 in current releases, a 403 that names it in others or when set manually.
func (e *engineError) floodStage(status int) bool {
	return e.Type == typeClusterBlock && (status == http.StatusTooManyRequests ||
		strings.Contains(e.Reason, "read-only-allow-delete") || strings.Contains(e.Reason, "read-only / allow delete"))
}

// blockCode returns core.CodeIndexBlocked for an error that blocks all writes to the index until an operator resolves it,
// core.CodeOverloaded for a block that ends within moments, and "" for any other error.
func blockCode(kind string, status int, reason string) core.Code {
	switch kind {
	case typeClusterBlock:
		if status == http.StatusServiceUnavailable {
			return core.CodeOverloaded
		}
		return core.CodeIndexBlocked
	case typeIndexClosed, typeIndexNotFound, typeSecurity:
		return core.CodeIndexBlocked
	case typeIllegalArgument:
		// Errors of documents have this type as well; these reasons concern the index.
		if strings.HasPrefix(reason, "no write index is defined for alias") ||
			strings.HasPrefix(reason, "Number of documents in the index can't exceed") {
			return core.CodeIndexBlocked
		}
	}
	return ""
}

func blockMessage(kind string) string {
	switch kind {
	case typeClusterBlock:
		return "the index is blocked"
	case typeIndexClosed:
		return "the index is closed"
	case typeIndexNotFound:
		return "the index is missing"
	case typeSecurity:
		return "the index rejected the credentials"
	default:
		return "the index accepts no writes"
	}
}

func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 3600)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(time.Until(at), time.Hour))
	}
	return 0
}
