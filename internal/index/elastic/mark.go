package elastic

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"tutti/internal/core"
)

// markFilter leaves nothing of the statistics but what makes a mark.
const markFilter = "indices.*.uuid,indices.*.shards.*.seq_no.max_seq_no"

// Mark gives the place up to which the alias' index was written: its identity and the highest sequence number over its
// shards, or core.MarkNothing. A document that is written later gets a higher number in its shard. Empty where the alias stands for several
// indices or a shard does not tell.
func (x *Index) Mark(ctx context.Context, alias string) (string, error) {
	leave, err := x.enter(alias)
	if err != nil {
		return "", err
	}
	defer leave()
	reply, err := x.client.do(ctx, request{
		method: http.MethodGet, path: "/" + alias + "/_stats", query: "level=shards&filter_path=" + markFilter,
	})
	if err != nil {
		return "", err
	}
	var answer struct {
		Indices map[string]struct {
			UUID   string `json:"uuid"`
			Shards map[string][]struct {
				SeqNo *struct {
					Max int64 `json:"max_seq_no"`
				} `json:"seq_no"`
			} `json:"shards"`
		} `json:"indices"`
	}
	if err := reply.decode(&answer); err != nil {
		return "", err
	}
	if len(answer.Indices) != 1 {
		return "", nil
	}
	for _, one := range answer.Indices {
		highest := int64(-1)
		for _, copies := range one.Shards {
			for _, shard := range copies {
				if shard.SeqNo == nil {
					return "", nil
				}
				highest = max(highest, shard.SeqNo.Max)
			}
		}
		if one.UUID == "" || len(one.Shards) == 0 {
			return "", nil
		}
		if highest < 0 {
			return core.MarkNothing, nil
		}
		return one.UUID + "/" + strconv.FormatInt(highest, 10), nil
	}
	return "", nil
}

// writtenBy gives the filter of what was written up to a mark, nil where the mark is not of the index that the alias
// stands for now: nothing may be left out then. Over several shards the filter lets some later documents through.
func (x *Index) writtenBy(ctx context.Context, alias, mark string) (object, error) {
	uuid, number, ok := strings.Cut(mark, "/")
	highest, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return nil, core.NewError(core.CodeInvalid, "this is no mark of the index")
	}
	now, err := x.Mark(ctx, alias)
	if err != nil {
		return nil, err
	}
	if current, _, _ := strings.Cut(now, "/"); current != uuid {
		return nil, nil
	}
	return object{"range": object{"_seq_no": object{"lte": highest}}}, nil
}
