package write

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/elastic/transport"
)

// outcome returns the Result of one item. It decides by the type of the error, because the status is ambiguous: a closed index is
// 400 and a full disk 429.
func (d *resultDecoder) outcome(alias string, op core.WriteOp, item *bulkItem) core.Result {
	if item.Error.Type == "" {
		return d.successOutcome(alias, op, item.Status)
	}
	result := core.Result{Type: item.Error.Type, Reason: item.Error.FullReason()}
	if code := transport.BlockCode(item.Error.Type, item.Status, item.Error.Reason); code != "" {
		result.Outcome, result.Code = core.OutcomeRetry, code
		return result
	}
	switch item.Error.Type {
	case transport.TypeVersionConflict:
		result.Outcome, result.CurrentVersion = core.OutcomeStale, currentVersion(item.Error.Reason)
	case transport.TypeDocumentParsing, transport.TypeMapperParsing, transport.TypeIllegalArgument, transport.TypeRequestValidation, transport.TypeStrictMapping:
		result.Outcome, result.Hint = core.OutcomeRejected, rejectionHint(&item.Error)
	case transport.TypeUnavailableShards:
		// A shard that reopens has lost the versions of deletions, so the document must be fetched again instead of sent again.
		// Waiting for the shard would delay other documents of the index.
		result.Outcome, result.Code = core.OutcomeRetry, core.CodeUnavailable
	case transport.TypeRejectedExecution, transport.TypeRejectedExecutionOpenSearch, transport.TypeCircuitBreaking:
		result.Outcome, result.Code = core.OutcomeRetry, core.CodeOverloaded
	default:
		result.Outcome, result.Code = core.OutcomeRetry, core.CodeOverloaded
		if item.Status != http.StatusTooManyRequests && item.Status < http.StatusInternalServerError {
			d.warn(alias, item.Error.Type, item.Status)
		}
	}
	return result
}

// rejectionHint returns the hint for a rejected document, "" where its reason is not one of those with a hint.
func rejectionHint(e *transport.EngineError) string {
	for ; e != nil; e = e.CausedBy {
		if hint := document.RejectionHint(e.Reason); hint != "" {
			return hint
		}
	}
	return ""
}

// successOutcome returns the result of an item without an error. A deletion of an absent document is a 404 without an error;
// Elasticsearch still stores its version.
func (d *resultDecoder) successOutcome(alias string, op core.WriteOp, status int) core.Result {
	switch {
	case op == core.OpDelete && (status/100 == 2 || status == http.StatusNotFound):
		return core.Result{Outcome: core.OutcomeRemoved}
	case op == core.OpIndex && status/100 == 2:
		return core.Result{Outcome: core.OutcomeIndexed}
	default:
		d.warn(alias, "none", status)
		return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded}
	}
}

// currentVersion parses the stored version from the reason of a version conflict, the only place of the response that has it; 0 if
// the reason has none.
func currentVersion(reason string) core.Version {
	const before = "current version ["
	at := strings.LastIndex(reason, before) // the text starts with the id, which may contain it
	if at < 0 {
		return 0
	}
	digits, _, closed := strings.Cut(reason[at+len(before):], "]")
	version, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !closed {
		return 0
	}
	return core.Version(version)
}

// resultDecoder decodes bulk responses. It logs unexpected error types, each at most once a minute.
type resultDecoder struct {
	logger *slog.Logger
	now    func() time.Time

	mu   sync.Mutex
	last map[string]time.Time
}

const (
	unknownEvery = time.Minute
	// maxUnknownTypes limits memory, as a misconfigured proxy may return any number of types.
	maxUnknownTypes = 256
)

func newResultDecoder(logger *slog.Logger, now func() time.Time) *resultDecoder {
	return &resultDecoder{logger: logger, now: now, last: make(map[string]time.Time)}
}

func (d *resultDecoder) warn(alias, kind string, status int) {
	now := d.now()
	d.mu.Lock()
	last, seen := d.last[kind]
	due := !seen && len(d.last) < maxUnknownTypes || seen && now.Sub(last) >= unknownEvery
	if due {
		d.last[kind] = now
	}
	d.mu.Unlock()
	if due {
		d.logger.Warn("the index returned an unknown error, the documents are retried",
			"index", alias, "error_type", kind, "status", status)
	}
}
