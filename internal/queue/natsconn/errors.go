package natsconn

import (
	"context"
	"errors"
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
	errCodeIDInProcess           jetstream.ErrorCode = 10158
	errCodeTooManyRequests       jetstream.ErrorCode = 10167
)

// WrapError turns err, an error of the server or the connection, into a core.Error. doing says what was being done,
// as in "publishing a request".
func WrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*core.Error](err); ok {
		return &core.Error{
			Code: known.Code, Message: doing + ": " + known.Message, Hint: known.Hint, RetryAfter: known.RetryAfter, Err: known.Err,
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

// withoutJetStream returns err, or that the server or the account has no JetStream if that is why JetStream did not answer.
func withoutJetStream(ctx context.Context, js jetstream.JetStream, err error) error {
	if errors.Is(err, nats.ErrNoResponders) {
		if _, why := js.AccountInfo(ctx); why != nil {
			return why
		}
	}
	return err
}

// causeOf returns the cause of err, for a new error whose message contains that of err.
func causeOf(err error) error {
	if known, ok := errors.AsType[*core.Error](err); ok {
		return known.Err
	}
	return err
}

func wrapAPIError(doing string, api *jetstream.APIError, err error) error {
	switch api.ErrorCode {
	case errCodeStoreFailed, errCodeInsufficientResources, errCodeMemoryExceeded, errCodeStorageExceeded:
		return &core.Error{
			Code: core.CodeOverloaded, Message: doing + ": the queue is full", RetryAfter: RetryWhenFull, Err: err,
		}
	case errCodeTooManyRequests:
		return &core.Error{
			Code: core.CodeOverloaded, Message: doing + ": the queue's server has too many calls to answer", RetryAfter: retryWhenDown, Err: err,
		}
	case errCodeIDInProcess: // its first attempt was not answered
		return &core.Error{
			Code: core.CodeUnavailable, Message: doing + ": the queue is storing the same message", RetryAfter: retryWhenDown, Err: err,
		}
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return core.WrapError(core.CodeConflict, doing+": it was changed by another process", err)
	case jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return core.WrapError(core.CodeTooLarge, doing+": the message is too large for the queue", err)
	case jetstream.JSErrCodeMessageNotFound:
		return core.WrapError(core.CodeNotFound, doing+": not found", err)
	case jetstream.JSErrCodeJetStreamNotEnabled:
		return &core.Error{
			Code: core.CodeUnavailable, Message: doing + ": the queue's server has no JetStream", Hint: hintJetStream, RetryAfter: retryWhenDown, Err: err,
		}
	case jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return &core.Error{
			Code: core.CodeUnavailable, Message: doing + ": the queue's server does not let this account use JetStream", Hint: hintAccount,
			RetryAfter: retryWhenDown, Err: err,
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

// IsNotFound reports whether err says that a message, a key or something else does not exist.
func IsNotFound(err error) bool {
	return errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrKeyNotFound) ||
		core.CodeOf(err) == core.CodeNotFound
}

// conflictPause is the mean pause after a lost compare-and-swap.
const conflictPause = 5 * time.Millisecond

// ConflictDelay returns a random pause after a lost compare-and-swap, so that two writers do not conflict again.
func ConflictDelay() time.Duration { return retry.Jitter(conflictPause) }
