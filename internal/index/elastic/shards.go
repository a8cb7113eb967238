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

// Filters that leave nothing of the settings and the statistics but what makes a mark.
const (
	settingsFilterPath = "*.settings.index.uuid,*.settings.index.number_of_shards"
	statsFilterPath    = "_shards.failed,indices.*.uuid,indices.*.shards.*.seq_no.max_seq_no,indices.*.shards.*.routing"
)

// Checkpoint returns a mark of everything that was written to the alias' index so far: the index' identity and the highest
// sequence number over its shards, or core.CheckpointNone. A document that is written later gets a higher number in its
// shard. The mark is empty unless the alias stands for one index of which every primary shard answered: a shard that is
// missing may hold documents with higher numbers, which a scan up to the mark would leave out.
func (x *Index) Checkpoint(ctx context.Context, alias string) (string, error) {
	leave, err := x.begin(alias)
	if err != nil {
		return "", err
	}
	defer leave()
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

// Identity returns the name and the uuid of the alias' index, "" where the alias stands for several indices or the cluster
// does not say.
func (x *Index) Identity(ctx context.Context, alias string) (string, error) {
	leave, err := x.begin(alias)
	if err != nil {
		return "", err
	}
	defer leave()
	one, err := x.physicalIndexOf(ctx, alias)
	if err != nil || one.uuid == "" {
		return "", err
	}
	return one.name + "/" + one.uuid, nil
}

// shardStats is what the cluster says of the shards of indices.
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
	reply, err := x.client.do(ctx, esapi.IndicesStatsRequest{Index: []string{alias}, Level: "shards", FilterPath: []string{statsFilterPath}}, nil)
	if err != nil {
		return nil, err
	}
	stats := new(shardStats)
	return stats, reply.decode(stats)
}

// activePrimaries returns how many primaries take writes.
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

// highest returns the highest sequence number of the index uuid, -1 when nothing was written; not ok unless all of its
// primaries answered.
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

// shardCopy is what the statistics hold of one copy of a shard.
type shardCopy struct {
	Routing struct {
		State   string `json:"state"`
		Primary bool   `json:"primary"`
	} `json:"routing"`
	SeqNo *struct {
		Max int64 `json:"max_seq_no"`
	} `json:"seq_no"`
}

// activePrimary reports whether c is the primary that takes writes and its number is known. One that recovers may not
// have replayed its log yet.
func (c shardCopy) activePrimary() bool {
	return c.Routing.Primary && c.SeqNo != nil && (c.Routing.State == "STARTED" || c.Routing.State == "RELOCATING")
}

// physicalIndex is the index behind an alias.
type physicalIndex struct {
	name, uuid string
	primaries  int
}

// physicalIndexOf returns the alias' index with the number of its primary shards; no uuid and -1 where the alias stands for
// several indices or the cluster does not say.
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

// indexSettings are those settings of an index that identify it.
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
	reply, err := x.client.do(ctx, esapi.IndicesGetSettingsRequest{Index: []string{alias}, FilterPath: []string{settingsFilterPath}}, nil)
	if err != nil {
		return nil, err
	}
	var answer map[string]indexSettings
	err = reply.decode(&answer)
	return answer, err
}

// indicesHash returns a hash of the identities of the alias' indices: it changes when the alias moves to another index.
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

// checkpointFilter returns the filter of what was written up to a mark, nil where the mark is not of the index that the alias
// stands for now: nothing may be left out then. Over several shards the filter lets some later documents through.
func (x *Index) checkpointFilter(ctx context.Context, alias, mark string) (object, error) {
	uuid, number, ok := strings.Cut(mark, "/")
	highest, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return nil, core.NewError(core.CodeInvalid, "this is no mark of the index")
	}
	current, err := x.physicalIndexOf(ctx, alias)
	if err != nil || current.uuid != uuid {
		return nil, err
	}
	return object{"range": object{"_seq_no": object{"lte": highest}}}, nil
}
