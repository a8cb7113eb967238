package elastic

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
)

// Filters that keep only what identifies an index and what a checkpoint needs.
const (
	settingsFilterPath = "*.settings.index.uuid,*.settings.index.number_of_shards"
	statsFilterPath    = "_shards.failed,indices.*.uuid,indices.*.shards.*.seq_no.max_seq_no,indices.*.shards.*.routing"
)

// Checkpoint returns the identity of the alias' index and its highest sequence number over all shards, or core.CheckpointNone.
// Documents written later have higher numbers in their shards. It is "" unless the alias has exactly one index and every primary
// shard answered: an unavailable shard may have higher numbers, and a scan up to the checkpoint would miss those documents.
func (x *Index) Checkpoint(ctx context.Context, alias string) (string, error) {
	end, err := x.client.Begin(alias)
	if err != nil {
		return "", err
	}
	defer end()
	one, err := x.physicalIndexOf(ctx, alias)
	if err != nil {
		return "", err
	}
	stats, err := x.shardStats(ctx, alias)
	if err != nil {
		return "", err
	}
	highest, ok := stats.highest(one.uuid, one.primaries)
	switch {
	case !ok:
		return "", nil
	case highest < 0:
		return core.CheckpointNone, nil
	default:
		return one.uuid + "/" + strconv.FormatInt(highest, 10), nil
	}
}

// Identity returns the name and the UUID of the alias' index, "" if the alias has several indices or the cluster does not return
// them.
func (x *Index) Identity(ctx context.Context, alias string) (string, error) {
	end, err := x.client.Begin(alias)
	if err != nil {
		return "", err
	}
	defer end()
	one, err := x.physicalIndexOf(ctx, alias)
	if err != nil || one.uuid == "" {
		return "", err
	}
	return one.name + "/" + one.uuid, nil
}

// shardStats are the statistics of indices' shards.
type shardStats struct {
	Shards struct {
		Failed int `json:"failed"`
	} `json:"_shards"`
	Indices map[string]struct {
		UUID   string                 `json:"uuid"`
		Shards map[string][]shardCopy `json:"shards"`
	} `json:"indices"`
}

func (x *Index) shardStats(ctx context.Context, alias string) (*shardStats, error) {
	reply, err := x.client.Do(ctx, esapi.IndicesStatsRequest{Index: []string{alias}, Level: "shards", FilterPath: []string{statsFilterPath}}, nil)
	if err != nil {
		return nil, err
	}
	stats := new(shardStats)
	return stats, reply.Decode(stats)
}

// activePrimaries returns the number of primaries that accept writes.
func (s *shardStats) activePrimaries() int {
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

// highest returns the highest sequence number of the index uuid, -1 when nothing was written; false unless all of its primaries
// answered.
func (s *shardStats) highest(uuid string, primaries int) (highest int64, ok bool) {
	if s.Shards.Failed > 0 || len(s.Indices) != 1 || s.activePrimaries() != primaries {
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

// physicalIndex is the index behind an alias.
type physicalIndex struct {
	name, uuid string
	primaries  int
}

// physicalIndexOf returns the alias' index with the number of its primary shards; uuid is "" and the number -1 if the alias has
// several indices or the cluster does not return them.
func (x *Index) physicalIndexOf(ctx context.Context, alias string) (physicalIndex, error) {
	none := physicalIndex{primaries: -1}
	answer, err := x.fetchSettings(ctx, alias)
	if err != nil {
		return none, err
	}
	if len(answer) == 1 {
		for name, one := range answer {
			x.state(alias).physicalName.Store(&name)
			if one.Settings.Index.UUID != "" && one.Settings.Index.Shards > 0 {
				return physicalIndex{name, one.Settings.Index.UUID, one.Settings.Index.Shards}, nil
			}
		}
	}
	return none, nil
}

// indexSettings are the settings that identify an index.
type indexSettings struct {
	Settings struct {
		Index struct {
			UUID   string `json:"uuid"`
			Shards int    `json:"number_of_shards,string"`
		} `json:"index"`
	} `json:"settings"`
}

// fetchSettings returns the settings of the alias' indices by their names.
func (x *Index) fetchSettings(ctx context.Context, alias string) (map[string]indexSettings, error) {
	reply, err := x.client.Do(ctx, esapi.IndicesGetSettingsRequest{Index: []string{alias}, FilterPath: []string{settingsFilterPath}}, nil)
	if err != nil {
		return nil, err
	}
	var answer map[string]indexSettings
	err = reply.Decode(&answer)
	return answer, err
}

// indicesHash returns a hash of the identities of the alias' indices, which changes when the alias moves to another index.
func (x *Index) indicesHash(ctx context.Context, alias string) (uint64, error) {
	settings, err := x.fetchSettings(ctx, alias)
	if err != nil {
		return 0, err
	}
	var ids []string
	for _, one := range settings {
		ids = append(ids, one.Settings.Index.UUID)
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(ids, " ")))
	return binary.BigEndian.Uint64(sum[:]), nil
}

// checkpointFilter returns the filter of documents written up to a checkpoint; nil, which omits nothing, if the checkpoint is of
// another index than the alias' current one. With several shards it includes some later documents.
func (x *Index) checkpointFilter(ctx context.Context, alias, mark string) (object, error) {
	uuid, number, ok := strings.Cut(mark, "/")
	highest, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return nil, core.NewError(core.CodeInvalid, "the checkpoint is not from this index")
	}
	current, err := x.physicalIndexOf(ctx, alias)
	if err != nil || current.uuid != uuid {
		return nil, err
	}
	return object{"range": object{"_seq_no": object{"lte": highest}}}, nil
}
