package transport

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
	TypeVersionConflict   = "version_conflict_engine_exception"
	TypeDocumentParsing   = "document_parsing_exception"
	TypeMapperParsing     = "mapper_parsing_exception"
	TypeIllegalArgument   = "illegal_argument_exception"
	TypeRequestValidation = "action_request_validation_exception"
	TypeStrictMapping     = "strict_dynamic_mapping_exception"
	TypeIndexClosed       = "index_closed_exception"
	TypeClusterBlock      = "cluster_block_exception"
	// TypeCreateBlock is OpenSearch's error for a new index while all nodes are over the high watermark of their disks.
	TypeCreateBlock       = "index_create_block_exception"
	TypeIndexNotFound     = "index_not_found_exception"
	TypeIllegalState      = "illegal_state_exception"
	TypeAlreadyExists     = "resource_already_exists_exception"
	TypeInvalidAlias      = "invalid_alias_name_exception"
	typeInvalidIndex      = "invalid_index_name_exception"
	TypeSecurity          = "security_exception"
	TypeUnavailableShards = "unavailable_shards_exception"
	TypeRejectedExecution = "es_rejected_execution_exception"
	// TypeRejectedExecutionOpenSearch is OpenSearch's name of TypeRejectedExecution.
	TypeRejectedExecutionOpenSearch = "rejected_execution_exception"
	TypeCircuitBreaking             = "circuit_breaking_exception"
)

// ErrOverLimit is the cause of the error of a response over the limit of bytes.
var ErrOverLimit = errors.New("the response is over the limit of bytes")

// IsOverLimit reports whether err is due to a response over the limit of bytes.
func IsOverLimit(err error) bool { return errors.Is(err, ErrOverLimit) }

// TooLarge returns the error of a result that is over the limit even when requested in the smallest parts.
func TooLarge(err error) error {
	return &core.Error{
		Code: core.CodeInvalid, Message: "a part of the result is larger than the index can return at once",
		Hint: "request only ids, or fewer facet values", Err: err,
	}
}

// EngineError is an error in a response of the cluster.
type EngineError struct {
	Type     string       `json:"type"`
	Reason   string       `json:"reason"`
	CausedBy *EngineError `json:"caused_by"`
}

// FullReason returns the reason with that of its cause, at most maxReasonBytes.
func (e *EngineError) FullReason() string {
	if e.CausedBy == nil || e.CausedBy.Reason == "" || strings.Contains(e.Reason, e.CausedBy.Reason) {
		return TruncateReason(e.Reason)
	}
	cause := truncate(e.CausedBy.Reason, maxReasonBytes/2) // Elasticsearch 8 quotes the whole value before it
	return truncate(e.Reason, maxReasonBytes-len(cause)) + ": " + cause
}

// RootReason returns the reason of the innermost cause, after that of the error around it if this says more, at most maxReasonBytes.
func (e *EngineError) RootReason() string {
	around := ""
	for ; e.CausedBy != nil && e.CausedBy.Reason != ""; e = e.CausedBy {
		around = e.Reason
	}
	if around == "" || strings.Contains(around, e.Reason) || strings.Contains(around, "composite mappings") {
		return TruncateReason(e.Reason)
	}
	return TruncateReason(around + ": " + e.Reason)
}

// TruncateReason returns s, cut to the length of a stored reason.
func TruncateReason(s string) string { return truncate(s, maxReasonBytes) }

func truncate(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return s
	}
	end := maxBytes
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// ResponseError is a response with a status other than 2xx, of the cluster, or of a proxy and then without Type.
type ResponseError struct {
	Status int
	EngineError
}

// Error returns the cluster's text, which is for logs and dead letters only.
func (f *ResponseError) Error() string {
	if f.Type == "" {
		return fmt.Sprintf("status %d", f.Status)
	}
	return fmt.Sprintf("status %d, %s: %s", f.Status, f.Type, f.FullReason())
}

// Is maps the cluster's errors to the port's sentinels. Blocks of an index or of the cluster also have status 403, but are
// unrelated to credentials.
func (f *ResponseError) Is(target error) bool {
	switch target {
	case core.ErrIndexMissing:
		return f.Type == TypeIndexNotFound
	case core.ErrIndexForbidden:
		refused := f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden
		return f.Type == TypeSecurity || refused && f.Type != TypeClusterBlock && f.Type != TypeCreateBlock
	case core.ErrIndexUnreachable:
		return fromGateway(f.Status)
	default:
		return false
	}
}

// fromGateway reports whether a status is that of a gateway without a node, or of a cluster without a master.
func fromGateway(status int) bool {
	return status >= http.StatusBadGateway && status <= http.StatusGatewayTimeout
}

// ErrorOf returns the *ResponseError in err's chain, nil when there is none.
func ErrorOf(err error) *ResponseError {
	f, _ := errors.AsType[*ResponseError](err)
	return f
}

// TypeOf returns the error type of the cluster's response in err's chain, "" when there is none.
func TypeOf(err error) string {
	if f := ErrorOf(err); f != nil {
		return f.Type
	}
	return ""
}

// RejectsFields reports whether err is the cluster's response that fields cannot be added to a mapping. The type depends on the engine
// and on the reason: a mapping that is too deep is TypeMapperParsing from Elasticsearch 8, and TypeIllegalArgument from others.
func RejectsFields(err error) bool {
	kind := TypeOf(err)
	return kind == TypeIllegalArgument || kind == TypeMapperParsing
}

// newResponseError returns the error of a response with a status other than 2xx.
func newResponseError(status int, header http.Header, body []byte) *core.Error {
	f := &ResponseError{Status: status}
	var answer struct {
		Error json.RawMessage `json:"error"`
		// Message is from AWS, also as Message.
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &answer) == nil {
		var told searchError
		if answer.Error == nil && answer.Message != "" {
			f.Reason = answer.Message
		} else if json.Unmarshal(answer.Error, &told) == nil {
			f.EngineError = told.cause()
		} else {
			_ = json.Unmarshal(answer.Error, &f.Reason) // some APIs return a plain string
		}
	}
	code, message := classify(f)
	refused := &core.Error{Code: code, Message: message, RetryAfter: retryAfter(header), Err: f}
	switch {
	case f.Unprivileged():
		refused.Hint = f.PrivilegeHint()
	case f.Type == "" && status == http.StatusForbidden && isSignatureReason(f.Reason):
		refused.Message = "AWS rejected the signature of requests to the index"
		refused.Hint = "check index.aws, the credentials, and this machine's clock"
	case f.FloodStage(f.Status):
		refused.Hint = FloodStageHint
	case f.Type == TypeCreateBlock:
		refused.Hint = createBlockHint
	}
	return refused
}

// isSignatureReason reports whether AWS's reason concerns the signature or the session of a request.
func isSignatureReason(reason string) bool {
	reason = strings.ToLower(reason)
	return strings.Contains(reason, "signature") || strings.Contains(reason, "security token")
}

// DocumentError returns the error of one document of a multi-get, whose status is 200 nevertheless.
func DocumentError(raw json.RawMessage) error {
	f := &ResponseError{Status: http.StatusOK}
	if err := json.Unmarshal(raw, &f.EngineError); err != nil {
		return core.WrapError(core.CodeUnavailable, "the response of the index cannot be parsed", err)
	}
	code, message := classify(f)
	return &core.Error{Code: code, Message: message, Hint: f.PrivilegeHint(), Err: f}
}

// UnexpectedResponse returns the error of a response that does not match the request.
func UnexpectedResponse() error {
	return core.NewError(core.CodeUnavailable, "the index returned an unexpected response")
}

// classify returns the code and the message of a complete response. A 400 without an error type comes from a proxy and says
// nothing about the documents.
func classify(f *ResponseError) (core.Code, string) {
	if f.FloodStage(f.Status) {
		return core.CodeIndexBlocked, FloodStageMessage
	}
	if f.Unprivileged() {
		return core.CodeIndexBlocked, f.UnprivilegedMessage()
	}
	if code := BlockCode(f.Type, f.Status, f.Reason); code != "" {
		return code, blockMessage(f.Type)
	}
	switch {
	case f.Status == http.StatusUnauthorized, f.Status == http.StatusForbidden:
		return core.CodeIndexBlocked, "the index rejected the credentials"
	case f.Status == http.StatusRequestEntityTooLarge:
		return core.CodeTooLarge, "the request is too large for the index"
	case f.Status == http.StatusTooManyRequests, f.Status == http.StatusServiceUnavailable:
		return core.CodeOverloaded, "the index is overloaded"
	case f.Status == http.StatusBadRequest && f.Type != "":
		return core.CodeInvalid, "the index rejected the request"
	default:
		return core.CodeUnavailable, "the index returned an unexpected response"
	}
}

// Texts for the block that the cluster sets on the indices of a node whose disk is nearly full.
const (
	FloodStageMessage = "a disk of the index engine is over its flood-stage watermark"
	FloodStageHint    = "free disk space on the engine's nodes or add a node; where the engine does not lift the block by itself " +
		"afterwards, set index.blocks.read_only_allow_delete to null"
)

// createBlockHint is for the block of a cluster all of whose disks are nearly full.
const createBlockHint = "free disk space on the engine's nodes or add a node; where the engine does not lift the block by itself " +
	"afterwards, set cluster.blocks.create_index to null"

// FloodStage reports whether e is that block: a 429 in current releases, a 403 that names it in others or when set manually.
func (e *EngineError) FloodStage(status int) bool {
	return e.Type == TypeClusterBlock && (status == http.StatusTooManyRequests ||
		strings.Contains(e.Reason, "read-only-allow-delete") || strings.Contains(e.Reason, "read-only / allow delete"))
}

// BlockCode returns core.CodeIndexBlocked for an error that blocks all writes to the index until an operator resolves it,
// core.CodeOverloaded for a block that ends within moments, and "" for any other error.
func BlockCode(kind string, status int, reason string) core.Code {
	switch kind {
	case TypeClusterBlock:
		if status == http.StatusServiceUnavailable {
			return core.CodeOverloaded
		}
		return core.CodeIndexBlocked
	case TypeIndexClosed, TypeIndexNotFound, TypeCreateBlock, TypeSecurity:
		return core.CodeIndexBlocked
	case TypeIllegalArgument:
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
	case TypeClusterBlock:
		return "the index is blocked"
	case TypeIndexClosed:
		return "the index is closed"
	case TypeIndexNotFound:
		return "the index is missing"
	case TypeCreateBlock:
		return "the index engine allows no new indices"
	case TypeSecurity:
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

// Error types of searches that are handled.
const (
	typeSearchPhase      = "search_phase_execution_exception"
	TypeTooManyBuckets   = "too_many_buckets_exception"
	typeTooManyClauses   = "too_many_clauses"
	typeTooManyNested    = "too_many_nested_clauses"
	typeTaskCancelled    = "task_cancelled_exception"
	typeNoSearchContext  = "search_context_missing_exception"
	typeNoShardAvailable = "no_shard_available_action_exception"
)

// Parts of reasons, where the type is ambiguous.
const (
	maxClausesReason  = "maxClauseCount is set to"
	searchAfterReason = "search_after"
)

// searchError is the error of a search; the shards' errors contain the cause.
type searchError struct {
	EngineError
	RootCause    []EngineError `json:"root_cause"`
	FailedShards []struct {
		Reason EngineError `json:"reason"`
	} `json:"failed_shards"`
}

// cause returns the error that says what is wrong.
func (e *searchError) cause() EngineError {
	if e.Type != typeSearchPhase && e.Type != "" {
		return e.EngineError
	}
	for _, shard := range e.FailedShards {
		if shard.Reason.Type != "" {
			return shard.Reason
		}
	}
	for _, root := range e.RootCause {
		if root.Type != "" {
			return root
		}
	}
	if e.CausedBy != nil && e.CausedBy.Type != "" {
		return *e.CausedBy
	}
	return e.EngineError
}

// SearchErrorOf returns the error of one search whose error object is raw.
func SearchErrorOf(status int, raw []byte) error {
	f := &ResponseError{Status: status}
	var told searchError
	if json.Unmarshal(raw, &told) == nil {
		f.EngineError = told.cause()
	}
	code, message := classifySearch(f)
	return &core.Error{Code: code, Message: message, Err: f}
}

// AsSearchError reclassifies an error response as that of a search.
func AsSearchError(err error) error {
	f := ErrorOf(err)
	if f == nil {
		return err
	}
	code, message := classifySearch(f)
	out := &core.Error{Code: code, Message: message, Err: f}
	if whole, ok := errors.AsType[*core.Error](err); ok {
		out.RetryAfter = whole.RetryAfter
	}
	return out
}

// classifySearch returns the code and the message of a search's error.
func classifySearch(f *ResponseError) (core.Code, string) {
	if f.Unprivileged() {
		return core.CodeIndexBlocked, unprivilegedMessage // it reaches clients
	}
	switch f.Type {
	case TypeTooManyBuckets:
		return core.CodeInvalid, "the result would have too many values"
	case typeTooManyClauses, typeTooManyNested:
		return core.CodeInvalid, "the filter has more clauses than the index allows"
	case typeTaskCancelled, typeNoShardAvailable:
		return core.CodeUnavailable, "the index returned incomplete search results"
	case typeNoSearchContext:
		return core.CodeUnavailable, "the index has discarded its snapshot of the documents: the search took too long, or the engine was restarted"
	case typeSearchPhase:
		if f.Status >= http.StatusInternalServerError {
			return core.CodeUnavailable, "the index returned incomplete search results"
		}
	}
	if f.Status == http.StatusBadRequest {
		switch {
		case strings.Contains(f.FullReason(), maxClausesReason):
			return core.CodeInvalid, "the filter has more clauses than the index allows"
		case strings.Contains(f.FullReason(), searchAfterReason):
			return core.CodeInvalid, "the cursor does not match the sort order"
		}
	}
	return classify(f)
}
