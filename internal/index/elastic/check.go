package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
)

// checkBody asks for a write that goes the whole way to the primary shard and can never happen: it demands a sequence
// number that no document has, and so ends in a conflict, without a trace.
const checkBody = `{"index":{"_id":"tutti-check","if_seq_no":9007199254740991,"if_primary_term":1}}` + "\n{}\n"

// Check returns nil when the alias takes writes now, core.CodeIndexBlocked when it is missing, closed or blocked or the
// credentials are refused (core.ErrIndexMissing only where no index of it is there either), and
// core.CodeUnavailable when the cluster or one of the primary shards does not answer. The message is safe to display.
func (x *Index) Check(ctx context.Context, alias string) error {
	leave, err := x.begin(alias)
	if err != nil {
		return err
	}
	defer leave()
	reply, err := x.client.do(ctx, x.bulkRequest(alias, []byte(checkBody)), nil)
	if err != nil {
		if core.CodeOf(err) == core.CodeIndexBlocked {
			return err
		}
		return core.WrapError(core.CodeUnavailable, core.MessageOf(err), err)
	}
	var answer bulkResponse
	if err := reply.decode(&answer); err != nil {
		return err
	}
	if len(answer.Items) != 1 || answer.Items[0].Index == nil {
		return core.NewError(core.CodeUnavailable, "the index did not answer as expected")
	}
	err = checkItem(alias, answer.Items[0].Index)
	switch {
	case errors.Is(err, core.ErrIndexMissing):
		return x.missingAliasError(ctx, alias, err)
	case err != nil:
		return err
	default:
		return x.checkPrimaries(ctx, alias)
	}
}

// missingAliasError returns the error of an alias that is missing. Where the index that it stood for is still there, or another one
// that Ensure made for it, that has lost its alias, for a moment or by mistake, and nothing may be made in its place.
func (x *Index) missingAliasError(ctx context.Context, alias string, gone error) error {
	among, seen := []string{alias + "-*"}, x.state(alias).physicalName.Load()
	if seen != nil {
		among = append(among, url.PathEscape(*seen))
	}
	reply, err := x.client.do(ctx, esapi.IndicesGetAliasRequest{Index: among, ExpandWildcards: "all", IgnoreUnavailable: new(true)}, nil)
	if err != nil {
		return err
	}
	var indices map[string]json.RawMessage
	if err := reply.decode(&indices); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(indices))
	if seen != nil && indices[*seen] != nil {
		names = []string{*seen}
	}
	for _, name := range names {
		_, err := time.Parse(nameLayout, strings.TrimPrefix(name, alias+"-"))
		if err == nil || seen != nil && name == *seen {
			return &core.Error{
				Code: core.CodeIndexBlocked, Message: "there is no alias " + alias + ", but an index of it",
				Hint: "add the alias " + alias + " to " + name + ", or delete that index to have an empty one made and filled again",
			}
		}
	}
	return &core.Error{
		Code: core.CodeIndexBlocked, Message: core.MessageOf(gone), Err: gone,
		Hint: "it is made again, empty, and the repository is indexed again",
	}
}

// checkPrimaries returns core.CodeUnavailable when the cluster says that a primary shard of the alias' index is missing:
// the write of Check reached only one of them.
func (x *Index) checkPrimaries(ctx context.Context, alias string) error {
	one, err := x.physicalIndexOf(ctx, alias)
	if err != nil || one.primaries <= 1 {
		return nil // the credentials may not allow to ask, and one shard has answered
	}
	stats, err := x.shardStats(ctx, alias)
	if err == nil && stats.activePrimaries() < one.primaries {
		return shardMissing(alias, nil)
	}
	return nil
}

func shardMissing(alias string, cause error) error {
	return core.WrapError(core.CodeUnavailable, "a shard of the index "+alias+" does not answer", cause)
}

// checkItem reads the outcome of the impossible write. A fault of its document (a mapping that demands routing, say)
// would be a fault of every document, yet nothing blocks the index.
func checkItem(alias string, item *bulkItem) error {
	code := blockCode(item.Error.Type, item.Status, item.Error.Reason)
	f := &responseError{status: item.Status, engineError: item.Error}
	switch {
	case item.Error.floodStage(item.Status):
		return &core.Error{
			Code: code, Message: "the index " + alias + " takes no writes: " + floodStageMessage, Hint: floodStageHint, Err: f,
		}
	case code == core.CodeIndexBlocked:
		return core.WrapError(code, blockedMessage(alias, item.Error.Type), f)
	case item.Status == http.StatusTooManyRequests, item.Status >= http.StatusInternalServerError:
		return shardMissing(alias, f)
	default:
		return nil
	}
}

func blockedMessage(alias, kind string) string {
	switch kind {
	case typeIndexNotFound:
		return "there is no alias " + alias
	case typeIndexClosed:
		return "the index " + alias + " is closed"
	case typeClusterBlock:
		return "the index " + alias + " is blocked for writes"
	case typeSecurity:
		return "the index refused the credentials for " + alias
	default:
		return "the index " + alias + " has no index to write to"
	}
}
