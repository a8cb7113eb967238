package read

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index/elastic/transport"
)

const (
	scanPage = 5000
	// scanFilterPath requests only what is read.
	scanFilterPath = "pit_id,timed_out,_shards.failed,hits.total,hits.hits._id,hits.hits._version,hits.hits.sort"
)

// Scan calls each for every document in scope whose version is lower than below (0: for all) or higher than scope.Beyond, in no
// particular order, as of the last Refresh, regardless of concurrent writes. Versions are not searchable, so it reads every
// document in scope unless scope.WrittenBy excludes some, and returns an error when it got fewer than match. An error of each ends the scan and is returned unwrapped.
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
	defer pit.Close(ctx)
	for last := false; !last; {
		var hits []scanHit
		if hits, last, err = r.scanPage(ctx, alias, pit, query); err != nil {
			return err
		}
		for _, hit := range hits {
			// Versions are not searchable, so they are compared here.
			if !scope.Includes(hit.Version, below) {
				continue
			}
			if err := each(hit.ID, hit.Version); err != nil {
				return err
			}
		}
	}
	return pit.Complete()
}

type scanResponse struct {
	PIT      string `json:"pit_id"`
	TimedOut bool   `json:"timed_out"`
	Hits     struct {
		Total *struct {
			Value int64 `json:"value"`
		} `json:"total"`
		Hits []scanHit `json:"hits"`
	} `json:"hits"`
}

type scanHit struct {
	Index   string          `json:"_index"`
	ID      string          `json:"_id"`
	Version core.Version    `json:"_version"`
	Sort    json.RawMessage `json:"sort"` // an array with the tiebreaker
}

func (h *scanHit) location() transport.Location { return transport.Location{Index: h.Index, ID: h.ID} }

// scanPage returns the next page, whose hits no previous page had. last reports that no page follows.
func (r *Reader) scanPage(ctx context.Context, alias string, pit *transport.PIT, query object) (hits []scanHit, last bool, err error) {
	selected, err := json.Marshal(query)
	if err != nil {
		return nil, false, core.WrapError(core.CodeInternal, "the search cannot be encoded", err)
	}
	body := fmt.Appendf(nil, `{"version":true,"_source":false,"query":%s,"sort":["%s"]`, selected, pit.Engine().Tiebreaker)
	req := transport.SearchRequest(append(pit.AppendPage(body, scanPage), '}'))
	req.FilterPath = []string{scanFilterPath}
	if pit.Ambiguous() {
		req.FilterPath = append(req.FilterPath, "hits.hits._index")
	}
	reply, err := r.client.Do(ctx, req, nil)
	if err != nil {
		return nil, false, err
	}
	var answer scanResponse
	if err := reply.Decode(&answer); err != nil {
		return nil, false, err
	}
	if answer.TimedOut || answer.PIT == "" {
		return nil, false, core.NewError(core.CodeUnavailable, "the index returned an incomplete page of a scan")
	}
	if err := reply.CheckShards(alias); err != nil {
		return nil, false, err
	}
	pit.SetID(answer.PIT)
	counted, total := answer.Hits.Total, int64(0)
	if counted != nil {
		total = counted.Value
	}
	if err := pit.SetTotal(total, counted != nil); err != nil {
		return nil, false, err
	}
	read := answer.Hits.Hits
	if len(read) == 0 {
		return nil, true, nil
	}
	last = len(read) < pit.PageSize(scanPage)
	hits = slices.DeleteFunc(slices.Clone(read), func(hit scanHit) bool { return pit.Returned(hit.location()) })
	return hits, last, pit.Advance(read[len(read)-1].Sort, len(read), func(i int) (transport.Location, []byte) {
		return read[i].location(), bytes.Trim(read[i].Sort, "[]")
	})
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
