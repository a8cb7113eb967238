package write

import (
	"context"
	"errors"
	"net/http"

	"tutti/internal/core"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/transport"
)

// neverApplied is a bulk write that reaches the primary shard but is never applied: it requires a sequence number that no document
// has, so that the result is a version conflict.
const neverApplied = `{"index":{"_id":"tutti-check","if_seq_no":9007199254740991,"if_primary_term":1}}` + "\n{}\n"

// Check returns nil when the alias accepts writes; core.CodeIndexBlocked when it is missing, closed or blocked or the credentials
// are rejected (core.ErrIndexMissing only if no index of the alias exists either); core.ErrAliasSeveral when it stands for more than
// one index, as after a rollover, so that a document may be in several of them; and core.CodeUnavailable when the cluster or
// one of the primary shards does not answer. The message is safe to display.
func (w *Writer) Check(ctx context.Context, alias string) error {
	end, err := w.client.Begin(alias)
	if err != nil {
		return err
	}
	defer end()
	if _, err := w.client.Engine(ctx); err != nil {
		return err
	}
	reply, err := w.client.Do(ctx, w.bulkRequest(alias, []byte(neverApplied)), nil)
	if err != nil {
		if core.CodeOf(err) == core.CodeIndexBlocked {
			return err
		}
		return core.WrapError(core.CodeUnavailable, core.MessageOf(err), err)
	}
	var answer bulkResponse
	if err := reply.Decode(&answer); err != nil {
		return err
	}
	if len(answer.Items) != 1 || answer.Items[0].Index == nil {
		return transport.UnexpectedResponse()
	}
	item := answer.Items[0].Index
	err = checkItem(alias, item)
	switch {
	case errors.Is(err, core.ErrIndexMissing):
		return w.meta.MissingAlias(ctx, alias, err)
	case err != nil && item.Error.Type != transport.TypeIllegalArgument: // which is also that of several indices without one for writes
		return err
	}
	one, physicalErr := w.meta.Physical(ctx, alias)
	switch {
	case len(one.Several) > 0:
		return aliases.SeveralIndices(alias, one.Several)
	case err != nil:
		return err
	case physicalErr != nil: // the credentials may lack the privilege, and one shard has answered
		return nil
	default:
		return w.checkPrimaries(ctx, alias, one)
	}
}

// checkPrimaries returns core.CodeUnavailable if a primary shard of the alias' index is not active; the write of Check reaches
// only one of them.
func (w *Writer) checkPrimaries(ctx context.Context, alias string, one aliases.PhysicalIndex) error {
	if one.Primaries <= 1 {
		return nil
	}
	stats, err := w.meta.Shards(ctx, alias)
	if err == nil && stats.ActivePrimaries() < one.Primaries {
		return shardMissing(alias, nil)
	}
	return nil
}

func shardMissing(alias string, cause error) error {
	return core.WrapError(core.CodeUnavailable, "a shard of the index "+alias+" does not answer", cause)
}

// checkItem returns the error that the result of the write of Check indicates. It ignores errors of the document itself, such as
// missing routing, because they do not block the index.
func checkItem(alias string, item *bulkItem) error {
	code := transport.BlockCode(item.Error.Type, item.Status, item.Error.Reason)
	f := &transport.ResponseError{Status: item.Status, EngineError: item.Error}
	switch {
	case item.Error.FloodStage(item.Status):
		return &core.Error{
			Code: code, Message: "the index " + alias + " accepts no writes: " + transport.FloodStageMessage, Hint: transport.FloodStageHint, Err: f,
		}
	case f.Unprivileged():
		return &core.Error{Code: code, Message: f.UnprivilegedMessage(), Hint: f.PrivilegeHint(), Err: f}
	case code == core.CodeIndexBlocked:
		return &core.Error{
			Code: code, Message: aliases.BlockedMessage(alias, item.Error.Type), Hint: aliases.BlockedHint(alias, item.Error.Type), Err: f,
		}
	case item.Status == http.StatusTooManyRequests, item.Status >= http.StatusInternalServerError:
		return shardMissing(alias, f)
	default:
		return nil
	}
}
