package natsconn

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// RetryAfter of the errors.
const (
	RetryWhenFull = 5 * time.Second
	retryWhenDown = 2 * time.Second
)

// Error codes of JetStream that the library does not name; server/errors.json of nats-server lists them all.
const (
	errCodeNoPeers               jetstream.ErrorCode = 10005
	errCodeInsufficientResources jetstream.ErrorCode = 10023
	errCodeMemoryExceeded        jetstream.ErrorCode = 10028
	errCodeStorageExceeded       jetstream.ErrorCode = 10047
	errCodeNotClustered          jetstream.ErrorCode = 10074
	errCodeStoreFailed           jetstream.ErrorCode = 10077
	errCodeRollupFailed          jetstream.ErrorCode = 10111
)

// WrapError turns err, an error of the server or the connection, into a core.Error. doing says what was being done,
// as in "publishing a request".
func WrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*core.Error](err); ok {
		if known.Err != nil { // its message is part of the new one
			err = known.Err
		}
		return &core.Error{
			Code: known.Code, Message: doing + ": " + known.Message, Hint: known.Hint, RetryAfter: known.RetryAfter, Err: err,
		}
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return wrapAPIError(doing, api, err)
	}
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return core.WrapError(core.CodeTooLarge, doing+": the message is too large for the queue", err)
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch), errors.Is(err, jetstream.ErrKeyExists):
		return core.WrapError(core.CodeConflict, doing+": it was changed by another process", err)
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrMsgNotFound):
		return core.WrapError(core.CodeNotFound, doing+": not found", err)
	case errors.Is(err, context.Canceled):
		return core.WrapError(core.CodeUnavailable, doing+": cancelled", err)
	default:
		// Everything else is an error of the connection: a timeout, no server, no stream for the subject.
		return &core.Error{
			Code: core.CodeUnavailable, Message: doing + ": the queue does not answer", RetryAfter: retryWhenDown, Err: err,
		}
	}
}

func wrapAPIError(doing string, api *jetstream.APIError, err error) error {
	switch api.ErrorCode {
	case errCodeStoreFailed, errCodeInsufficientResources, errCodeMemoryExceeded, errCodeStorageExceeded:
		return &core.Error{
			Code: core.CodeOverloaded, Message: doing + ": the queue is full", RetryAfter: RetryWhenFull, Err: err,
		}
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return core.WrapError(core.CodeConflict, doing+": it was changed by another process", err)
	case jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return core.WrapError(core.CodeTooLarge, doing+": the message is too large for the queue", err)
	case jetstream.JSErrCodeMessageNotFound:
		return core.WrapError(core.CodeNotFound, doing+": not found", err)
	case jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return &core.Error{
			Code: core.CodeUnavailable, Message: doing + ": the queue's server has no JetStream",
			Hint: "start nats-server with JetStream enabled", RetryAfter: retryWhenDown, Err: err,
		}
	case errCodeNoPeers:
		return &core.Error{
			Code: core.CodeUnavailable, Message: doing + ": the queue's cluster has fewer servers that can store than copies are configured",
			Hint: "start the other servers, or lower queue.replicas", RetryAfter: retryWhenDown, Err: err,
		}
	case errCodeNotClustered:
		return &core.Error{
			Code: core.CodeInvalid, Message: doing + ": the queue's server belongs to no cluster, so that it stores one copy",
			Hint: "set queue.replicas to 1", Err: err,
		}
	case jetstream.JSErrCodeStreamNameInUse: // two processes created it at the same time
		return &core.Error{
			Code: core.CodeUnavailable, Message: doing + ": another process creates it with other settings", RetryAfter: retryWhenDown, Err: err,
		}
	case jetstream.JSErrCodeConsumerNotFound, jetstream.JSErrCodeConsumerDoesNotExist, jetstream.JSErrCodeStreamNotFound:
		return &core.Error{
			Code: core.CodeUnavailable, Message: doing + ": the queue is not set up", RetryAfter: retryWhenDown, Err: err,
		}
	default:
		if api.Code >= 500 {
			return &core.Error{
				Code: core.CodeUnavailable, Message: doing + ": the queue reports a temporary error", RetryAfter: retryWhenDown, Err: err,
			}
		}
		return core.WrapError(core.CodeInternal, doing+": the queue rejected the call", err)
	}
}

// IsConflict reports whether err, also one that WrapError has not turned into a core.Error yet, is of a lost compare-and-swap.
func IsConflict(err error) bool { return core.CodeOf(WrapError("", err)) == core.CodeConflict }

// ConflictingSequence returns the sequence of the last message of a subject, 0 for none, if err is of a lost compare-and-swap and says it.
func ConflictingSequence(err error) (sequence uint64, says bool) {
	answer, is := errors.AsType[*jetstream.APIError](err)
	if !is || answer.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence {
		return 0, false
	}
	sequence, err = strconv.ParseUint(strings.TrimPrefix(answer.Description, "wrong last sequence: "), 10, 64)
	return sequence, err == nil
}

// IsNotFound reports whether err says that a message, a key or something else does not exist.
func IsNotFound(err error) bool {
	return errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrKeyNotFound) ||
		core.CodeOf(err) == core.CodeNotFound
}

// conflictPause is the mean pause after a lost compare-and-swap.
const conflictPause = 5 * time.Millisecond

// ConflictDelay returns a random pause after a lost compare-and-swap, so that two writers do not conflict again.
func ConflictDelay() time.Duration { return retry.Jitter(conflictPause) }
