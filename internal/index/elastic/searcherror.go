package elastic

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"tutti/internal/core"
)

// Error types of searches that are acted upon.
const (
	typeSearchPhase      = "search_phase_execution_exception"
	typeTooManyBuckets   = "too_many_buckets_exception"
	typeTooManyClauses   = "too_many_clauses"
	typeTooManyNested    = "too_many_nested_clauses"
	typeTaskCancelled    = "task_cancelled_exception"
	typeNoSearchContext  = "search_context_missing_exception"
	typeNoShardAvailable = "no_shard_available_action_exception"
)

// What reasons hold where the type is that of many faults.
const (
	maxClausesReason  = "maxClauseCount is set to"
	searchAfterReason = "search_after"
)

// searchError is an error of a search as the cluster writes it: what is wrong is told by the shards.
type searchError struct {
	engineError
	RootCause    []engineError `json:"root_cause"`
	FailedShards []struct {
		Reason engineError `json:"reason"`
	} `json:"failed_shards"`
}

// cause gives the error that says what is wrong.
func (e *searchError) cause() engineError {
	if e.Type != typeSearchPhase && e.Type != "" {
		return e.engineError
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
	return e.engineError
}

// searchErrorOf gives the error of one search whose answer is raw.
func searchErrorOf(status int, raw []byte) error {
	f := &responseError{status: status}
	var told searchError
	if json.Unmarshal(raw, &told) == nil {
		f.engineError = told.cause()
	}
	code, message := classifySearch(f)
	return &core.Error{Code: code, Message: message, Err: f}
}

// asSearchError gives the error of a search for one that the cluster refused as a whole.
func asSearchError(err error) error {
	f := responseErrorOf(err)
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

// classifySearch says what the refusal of a search means.
func classifySearch(f *responseError) (core.Code, string) {
	switch f.Type {
	case typeTooManyBuckets:
		return core.CodeInvalid, "the answer would hold too many values"
	case typeTooManyClauses, typeTooManyNested:
		return core.CodeInvalid, "the filter has more clauses than the index takes"
	case typeTaskCancelled, typeNoShardAvailable:
		return core.CodeUnavailable, "the index did not answer a search in whole"
	case typeNoSearchContext:
		return core.CodeUnavailable, "the index no longer holds the documents as they were when the search began"
	case typeSearchPhase:
		if f.status >= http.StatusInternalServerError {
			return core.CodeUnavailable, "the index did not answer a search in whole"
		}
	}
	if f.status == http.StatusBadRequest {
		switch {
		case strings.Contains(f.fullReason(), maxClausesReason):
			return core.CodeInvalid, "the filter has more clauses than the index takes"
		case strings.Contains(f.fullReason(), searchAfterReason):
			return core.CodeInvalid, "the place from which to go on does not fit the order"
		}
	}
	return classify(f)
}
