package aliases

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index/elastic/transport"
)

// NameLayout is the time format in the name of a physical index.
const NameLayout = "20060102150405"

// PhysicalIndex is the index behind an alias.
type PhysicalIndex struct {
	Name, UUID string
	Primaries  int
	// Several are the names of the indices of an alias that has more than one, sorted; the other members are then as for none.
	Several []string
}

// Physical returns the alias' index with the number of its primary shards; uuid is "" and the number -1 if the alias has
// several indices or the cluster does not return them.
func (m *Aliases) Physical(ctx context.Context, alias string) (PhysicalIndex, error) {
	none := PhysicalIndex{Primaries: -1}
	answer, err := m.fetchSettings(ctx, alias)
	if err != nil {
		return none, err
	}
	if len(answer) == 1 {
		for name, one := range answer {
			m.seeIndex(alias, name)
			if one.Settings.Index.UUID != "" && one.Settings.Index.Shards > 0 {
				return PhysicalIndex{Name: name, UUID: one.Settings.Index.UUID, Primaries: one.Settings.Index.Shards}, nil
			}
		}
	}
	if len(answer) > 1 {
		none.Several = slices.Sorted(maps.Keys(answer))
	}
	return none, nil
}

// SeveralIndices returns the error of an alias of more than one index. It matches core.ErrAliasSeveral.
func SeveralIndices(alias string, names []string) error {
	from := "all but one of them"
	if strings.HasSuffix(alias, core.NextSuffix) { // none of them is needed: the next rebuild creates another one
		from = "them"
	}
	return &core.Error{
		Code: core.CodeConflict, Message: "the alias " + alias + " has more than one index: " + strings.Join(names, ", "),
		Hint: "remove it from " + from + ": POST /_aliases", Err: core.ErrAliasSeveral,
	}
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
func (m *Aliases) fetchSettings(ctx context.Context, alias string) (map[string]indexSettings, error) {
	var answer map[string]indexSettings
	err := m.client.Fetch(ctx, esapi.IndicesGetSettingsRequest{Index: []string{alias}, FilterPath: []string{settingsFilterPath}}, &answer)
	return answer, err
}

// IndicesHash returns a hash of the identities of the alias' indices, which changes when the alias moves to another index.
func (m *Aliases) IndicesHash(ctx context.Context, alias string) (uint64, error) {
	settings, err := m.fetchSettings(ctx, alias)
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

// MissingAlias returns the error of a missing alias. It is core.ErrIndexMissing only if neither the index last seen behind
// the alias nor another one created by Ensure for it exists: such an index lost its alias, temporarily or by mistake, and must
// not be replaced by a new one. One that a rebuild fills, or that is from before a rebuild, has its own alias and is none of these.
func (m *Aliases) MissingAlias(ctx context.Context, alias string, gone error) error {
	among, seen := []string{alias + "-*"}, m.Alias(alias).Seen().Index
	if seen != "" {
		among = append(among, url.PathEscape(seen))
	}
	var indices transport.AliasAnswer
	aliases := esapi.IndicesGetAliasRequest{Index: among, ExpandWildcards: "all", IgnoreUnavailable: new(true)}
	if err := m.client.Fetch(ctx, aliases, &indices); err != nil {
		return err
	}
	for name, one := range indices {
		_, next := one.Aliases[core.NextAlias(alias)]
		if _, previous := one.Aliases[core.PreviousAlias(alias)]; next || previous {
			delete(indices, name)
		}
	}
	names := slices.Sorted(maps.Keys(indices))
	slices.Reverse(names) // the newest first
	if slices.Contains(names, seen) {
		names = []string{seen}
	}
	for _, name := range names {
		_, err := time.Parse(NameLayout, strings.TrimPrefix(name, alias+"-"))
		if err == nil || name == seen {
			return &core.Error{
				Code: core.CodeIndexBlocked, Message: "the alias " + alias + " is missing, but an index of it exists",
				Hint: "add the alias " + alias + " to " + name + ", or delete that index to have it created and filled again",
			}
		}
	}
	return &core.Error{
		Code: core.CodeIndexBlocked, Message: core.MessageOf(gone), Err: gone,
		Hint: "it is created again, empty, and the repository is indexed again",
	}
}

// BlockedHint returns what ends the block of BlockedMessage, "" if the message says it.
func BlockedHint(alias, kind string) string {
	switch kind {
	case transport.TypeIndexClosed:
		return "open it: POST /" + alias + "/_open"
	case transport.TypeIllegalArgument:
		return "add the alias to its index with is_write_index: true (POST /_aliases); an index that is full needs another indexName"
	default:
		return ""
	}
}

// BlockedMessage returns the message of an error, of type kind, that blocks all writes to alias.
func BlockedMessage(alias, kind string) string {
	switch kind {
	case transport.TypeIndexNotFound:
		return "there is no alias " + alias
	case transport.TypeIndexClosed:
		return "the index " + alias + " is closed"
	case transport.TypeClusterBlock:
		return "the index " + alias + " is blocked for writes"
	default:
		return "the index " + alias + " has no index to write to"
	}
}
