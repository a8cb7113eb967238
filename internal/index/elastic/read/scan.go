package read

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index/elastic/transport"
)

const (
	scanPage = 5000
	// scanFilterPath requests only what is read.
	scanFilterPath = "pit_id,timed_out,_shards.failed,hits.hits._id,hits.hits._version,hits.hits.sort"
)

// Scan calls each for every document in scope whose version is lower than below (0: for all) or higher than scope.Beyond, in no
// particular order, as of the last Refresh, regardless of concurrent writes. Versions are not searchable, so it reads every
// document in scope unless scope.WrittenBy excludes some. An error of each ends the scan and is returned unwrapped.
func (r *Reader) Scan(ctx context.Context, alias string, scope core.IndexScope, below core.Version,
	each func(id string, v core.Version) error,
) error {
	end, err := r.client.Begin(alias)
	if err != nil {
		return err
	}
	defer end()
	query, err := r.scopeQuery(ctx, alias, scope)
	if err != nil {
		return err
	}
	if scope.WrittenBy == core.CheckpointNone {
		return nil
	}
	if scope.WrittenBy != "" {
		written, err := r.checkpointFilter(ctx, alias, scope.WrittenBy)
		if err != nil {
			return err
		}
		if written != nil {
			query = object{"bool": object{"filter": []object{query, written}}}
		}
	}
	pit, err := r.client.OpenPIT(ctx, alias)
	if err != nil {
		return err
	}
	defer func() { r.client.ClosePIT(ctx, pit) }()
	var after json.RawMessage
	for {
		page, err := r.scanPage(ctx, alias, pit, query, after)
		if err != nil {
			return err
		}
		pit = page.PIT
		for _, hit := range page.Hits.Hits {
			// Versions are not searchable, so they are compared here.
			if !scope.Includes(hit.Version, below) {
				continue
			}
			if err := each(hit.ID, hit.Version); err != nil {
				return err
			}
		}
		if len(page.Hits.Hits) < scanPage {
			return nil
		}
		after = page.Hits.Hits[len(page.Hits.Hits)-1].Sort
	}
}

type scanResponse struct {
	PIT      string `json:"pit_id"`
	TimedOut bool   `json:"timed_out"`
	Hits     struct {
		Hits []struct {
			ID      string          `json:"_id"`
			Version core.Version    `json:"_version"`
			Sort    json.RawMessage `json:"sort"`
		} `json:"hits"`
	} `json:"hits"`
}

func (r *Reader) scanPage(ctx context.Context, alias, pit string, query object, after json.RawMessage) (*scanResponse, error) {
	search := object{
		"size": scanPage, "query": query, "version": true, "_source": false, "track_total_hits": false,
		"pit": object{"id": pit, "keep_alive": transport.PITKeepAlive}, "sort": []string{"_shard_doc"},
	}
	if after != nil {
		search["search_after"] = after
	}
	body, err := json.Marshal(search)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the search cannot be encoded", err)
	}
	req := transport.SearchRequest(body)
	req.FilterPath = []string{scanFilterPath}
	reply, err := r.client.Do(ctx, req, nil)
	if err != nil {
		return nil, err
	}
	answer := new(scanResponse)
	if err := reply.Decode(answer); err != nil {
		return nil, err
	}
	if answer.TimedOut || answer.PIT == "" {
		return nil, core.NewError(core.CodeUnavailable, "the index returned an incomplete page of a scan")
	}
	return answer, reply.CheckShards(alias)
}

// checkpointFilter returns the filter of documents written up to a checkpoint; nil, which omits nothing, if the checkpoint is of
// another index than the alias' current one. With several shards it includes some later documents.
func (r *Reader) checkpointFilter(ctx context.Context, alias, mark string) (object, error) {
	uuid, number, ok := strings.Cut(mark, "/")
	highest, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return nil, core.NewError(core.CodeInvalid, "the checkpoint is not from this index")
	}
	current, err := r.meta.Physical(ctx, alias)
	if err != nil || current.UUID != uuid {
		return nil, err
	}
	return object{"range": object{"_seq_no": object{"lte": highest}}}, nil
}
