package aliases

import (
	"context"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"
)

// Filters that keep only what identifies an index and what a checkpoint needs.
const (
	settingsFilterPath = "*.settings.index.uuid,*.settings.index.number_of_shards"
	statsFilterPath    = "_shards.failed,indices.*.uuid,indices.*.shards.*.seq_no.max_seq_no,indices.*.shards.*.routing"
)

// ShardStats are the statistics of indices' shards.
type ShardStats struct {
	Shards struct {
		Failed int `json:"failed"`
	} `json:"_shards"`
	Indices map[string]struct {
		UUID   string                 `json:"uuid"`
		Shards map[string][]shardCopy `json:"shards"`
	} `json:"indices"`
}

// Shards returns the statistics of the shards of alias.
func (m *Aliases) Shards(ctx context.Context, alias string) (*ShardStats, error) {
	stats := new(ShardStats)
	return stats, m.client.Fetch(ctx, esapi.IndicesStatsRequest{Index: []string{alias}, Level: "shards", FilterPath: []string{statsFilterPath}}, stats)
}

// ActivePrimaries returns the number of primaries that accept writes.
func (s *ShardStats) ActivePrimaries() int {
	n := 0
	for _, one := range s.Indices {
		for _, copies := range one.Shards {
			if slices.ContainsFunc(copies, shardCopy.activePrimary) {
				n++
			}
		}
	}
	return n
}

// Highest returns the highest sequence number of the index uuid, -1 when nothing was written; false unless all of its primaries
// answered.
func (s *ShardStats) Highest(uuid string, primaries int) (highest int64, ok bool) {
	if s.Shards.Failed > 0 || len(s.Indices) != 1 || s.ActivePrimaries() != primaries {
		return 0, false
	}
	highest = -1
	for _, one := range s.Indices {
		if one.UUID != uuid {
			return 0, false
		}
		for _, copies := range one.Shards {
			for _, c := range copies {
				if c.SeqNo != nil {
					highest = max(highest, c.SeqNo.Max)
				}
			}
		}
	}
	return highest, true
}

// shardCopy are the statistics of one copy of a shard.
type shardCopy struct {
	Routing struct {
		State   string `json:"state"`
		Primary bool   `json:"primary"`
	} `json:"routing"`
	SeqNo *struct {
		Max int64 `json:"max_seq_no"`
	} `json:"seq_no"`
}

// activePrimary reports whether c is a primary that accepts writes and reports its number. A recovering one may not have replayed
// its log yet.
func (c shardCopy) activePrimary() bool {
	return c.Routing.Primary && c.SeqNo != nil && (c.Routing.State == "STARTED" || c.Routing.State == "RELOCATING")
}
