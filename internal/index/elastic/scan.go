package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
)

const (
	scanPage = 5000
	// scanKeepAlive is the maximum time between two pages.
	scanKeepAlive = "5m"
	// scanFilterPath requests only what is read.
	scanFilterPath = "pit_id,timed_out,_shards.failed,hits.hits._id,hits.hits._version,hits.hits.sort"
	// closeTimeout limits closing a point in time, which also expires by itself.
	closeTimeout = 5 * time.Second
)

// Scan calls each for every document in scope whose version is lower than below (0: for all) or higher than scope.Beyond, in no
// particular order, as of the last Refresh, regardless of concurrent writes. Versions are not searchable, so it reads every
// document in scope unless scope.WrittenBy excludes some. An error of each ends the scan and is returned unwrapped.
func (x *Index) Scan(ctx context.Context, alias string, scope core.IndexScope, below core.Version,
	each func(id string, v core.Version) error,
) error {
	leave, err := x.begin(alias)
	if err != nil {
		return err
	}
	defer leave()
	query, err := x.scopeQuery(ctx, alias, scope)
	if err != nil {
		return err
	}
	if scope.WrittenBy == core.CheckpointNone {
		return nil
	}
	if scope.WrittenBy != "" {
		written, err := x.checkpointFilter(ctx, alias, scope.WrittenBy)
		if err != nil {
			return err
		}
		if written != nil {
			query = object{"bool": object{"filter": []object{query, written}}}
		}
	}
	pit, err := x.openPIT(ctx, alias)
	if err != nil {
		return err
	}
	defer func() { x.closePIT(ctx, pit) }()
	var after json.RawMessage
	for {
		page, err := x.scanPage(ctx, alias, pit, query, after)
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

func (x *Index) scanPage(ctx context.Context, alias, pit string, query object, after json.RawMessage) (*scanResponse, error) {
	search := object{
		"size": scanPage, "query": query, "version": true, "_source": false, "track_total_hits": false,
		"pit": object{"id": pit, "keep_alive": scanKeepAlive}, "sort": []string{"_shard_doc"},
	}
	if after != nil {
		search["search_after"] = after
	}
	body, err := json.Marshal(search)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the search cannot be encoded", err)
	}
	r := searchRequest(body)
	r.FilterPath = []string{scanFilterPath}
	reply, err := x.client.do(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	answer := new(scanResponse)
	if err := reply.decode(answer); err != nil {
		return nil, err
	}
	if answer.TimedOut || answer.PIT == "" {
		return nil, core.NewError(core.CodeUnavailable, "the index returned an incomplete page of a scan")
	}
	return answer, reply.checkShards(alias)
}

func (x *Index) openPIT(ctx context.Context, alias string) (string, error) {
	reply, err := x.client.do(ctx, esapi.OpenPointInTimeRequest{Index: []string{alias}, KeepAlive: scanKeepAlive}, nil)
	if err != nil {
		return "", err
	}
	var answer struct {
		ID string `json:"id"`
	}
	if err := reply.decode(&answer); err != nil {
		return "", err
	}
	return answer.ID, nil
}

// closePIT closes a point in time, even if ctx has ended. If that fails, it expires after scanKeepAlive.
func (x *Index) closePIT(ctx context.Context, pit string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	body, err := json.Marshal(object{"id": pit})
	if err == nil {
		_, err = x.client.do(ctx, esapi.ClosePointInTimeRequest{Body: bytes.NewReader(body)}, nil)
	}
	if err != nil {
		x.logger.Debug("a point in time could not be closed", "err", err)
	}
}
