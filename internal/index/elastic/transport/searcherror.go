package transport

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"tutti/internal/core"
)

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
	switch f.Type {
	case TypeTooManyBuckets:
		return core.CodeInvalid, "the result would have too many values"
	case typeTooManyClauses, typeTooManyNested:
		return core.CodeInvalid, "the filter has more clauses than the index allows"
	case typeTaskCancelled, typeNoShardAvailable:
		return core.CodeUnavailable, "the index returned incomplete search results"
	case typeNoSearchContext:
		return core.CodeUnavailable, "the search took too long, and the index has discarded its snapshot of the documents"
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
