package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/transport"
)

const (
	settingWriteBlock = "index.blocks.write"
	settingCreated    = "index.creation_date"
	// adoptingSuffix is that of an alias of an index from which Adopt takes the writes, and of a clone that it has not finished.
	adoptingSuffix = "--adopting"
)

// cloneRestore bounds the requests that undo an Adopt whose ctx has ended.
const cloneRestore = 30 * time.Second

// Adopt turns the index with the name alias into one behind an alias of that name, and returns the new name of the index,
// <alias>-<yyyymmddhhmmss>. The index is cloned, which copies no documents on most file systems and needs no reindexing, and then
// deleted in the same step that creates the alias, together with its other aliases: every search finds all documents, but one that has
// begun at that moment may fail or be incomplete, as the engine ends it. Until then the index takes no writes. If that fails, the index is
// as before. An Adopt that was interrupted leaves the index marked by an alias, so that Ensure reports it, and the next Adopt completes it,
// or restores the writes that it took.
//
// An alias of several indices, as after a rollover, becomes one of the oldest of them, or the oldest that Ensure has created if it has
// created one; the others, which are released, keep their documents. CodeConflict when alias is the name of something else, CodeNotFound
// when it is missing.
func (a *Mover) Adopt(ctx context.Context, alias string) (physical string, released []string, err error) {
	end, err := a.client.Begin(alias)
	if err != nil {
		return "", nil, err
	}
	defer end()
	found, err := a.live(ctx, alias)
	if err != nil {
		return "", nil, err
	}
	switch kindOf(alias, found) {
	case index.NameIndex:
		physical, err = a.adoptIndex(ctx, alias, found)
		return physical, nil, err
	case index.NameSeveral:
		return a.adoptOldest(ctx, alias, found)
	case index.NameAbsent:
		return "", nil, core.NewError(core.CodeNotFound, "there is no index "+alias+": tutti creates it at its start")
	case index.NameAlias:
		return "", nil, core.NewError(core.CodeConflict, alias+" is an alias already: there is nothing to adopt")
	default:
		return "", nil, core.NewError(core.CodeConflict, alias+" is not the name of an index")
	}
}

// created returns when the index was created, in milliseconds of the Unix time.
func (x liveIndex) created() (int64, error) {
	at, err := strconv.ParseInt(fmt.Sprint(x.Settings[settingCreated]), 10, 64)
	if err != nil {
		return 0, transport.UnexpectedResponse()
	}
	return at, nil
}

// adoptOldest leaves the alias of several indices with one of them.
func (a *Mover) adoptOldest(ctx context.Context, alias string, found map[string]liveIndex) (kept string, released []string, err error) {
	var oldest int64
	for _, name := range slices.Sorted(maps.Keys(found)) {
		at, err := found[name].created()
		if err != nil {
			return "", nil, err
		}
		own, ownKept := createdFor(name, alias), createdFor(kept, alias)
		if kept == "" || own && !ownKept || own == ownKept && at < oldest {
			kept, oldest = name, at
		}
	}
	actions := []action{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if name != kept {
			released = append(released, name)
			actions = append(actions, action{"remove": {"index": name, "alias": alias, "must_exist": true}})
		}
	}
	actions = append(actions, action{"add": {"index": kept, "alias": alias, "is_write_index": true}})
	if err := a.changeAliases(ctx, actions); err != nil {
		return "", nil, err
	}
	a.cfg.Logger.Info("removed an alias from all but one of its indices", "index", alias, "physical_index", kept, "released", released)
	a.meta.Forget(alias)
	return kept, released, nil
}

// action is a change of aliases, by its name.
type action map[string]map[string]any

// changeAliases sends actions in one request to the cluster, which carries out all or none.
func (a *cluster) changeAliases(ctx context.Context, actions []action) error {
	raw, err := json.Marshal(map[string]any{"actions": actions})
	if err != nil {
		return core.WrapError(core.CodeInternal, "encoding the aliases", err)
	}
	_, err = a.client.Do(ctx, esapi.IndicesUpdateAliasesRequest{Body: bytes.NewReader(raw)}, nil)
	return err
}

// adoptIndex replaces an index by an alias of its clone, and returns the name of that.
func (a *Mover) adoptIndex(ctx context.Context, alias string, found map[string]liveIndex) (physical string, err error) {
	old := found[alias]
	created, err := old.created()
	if err != nil {
		return "", err
	}
	if why := storage(old.Settings, old.Mappings).Unsuitable(); why != "" && !old.adopting(alias) {
		return "", unsuitable(alias, alias, why)
	}
	marked := old.forgetAdopting(alias)
	physical = alias + "-" + time.UnixMilli(created).UTC().Format(aliases.NameLayout)
	if err := a.replaceByClone(ctx, alias, physical, old, marked); err != nil {
		return "", errors.Join(err, a.undoAdopt(ctx, alias, physical, old))
	}
	a.cfg.Logger.Info("made an index an alias of the same documents", "index", alias, "physical_index", physical)
	a.meta.Forget(alias)
	return physical, nil
}

// replaceByClone replaces an index by an alias of its clone. marked means that the index has the alias that marks it.
func (a *Mover) replaceByClone(ctx context.Context, alias, physical string, old liveIndex, marked bool) error {
	if err := a.dropClone(ctx, alias, physical); err != nil {
		return err
	}
	if !marked && old.Settings[settingWriteBlock] != "true" { // before the block, so that an interruption leaves no unmarked one
		if _, err := a.client.Do(ctx, esapi.IndicesPutAliasRequest{Index: []string{alias}, Name: alias + adoptingSuffix}, nil); err != nil {
			return err
		}
	}
	if err := a.putSetting(ctx, alias, settingWriteBlock, "true"); err != nil {
		return err
	}
	if err := a.cloneTo(ctx, alias, physical); err != nil {
		return err
	}
	return a.replaceByAlias(ctx, alias, physical)
}

// adopting reports whether an Adopt of the index is running, or was interrupted.
func (x liveIndex) adopting(alias string) bool {
	_, marked := x.Aliases[alias+adoptingSuffix]
	return marked
}

// forgetAdopting makes x what it was before an interrupted Adopt, if there was one.
func (x liveIndex) forgetAdopting(alias string) (was bool) {
	if was = x.adopting(alias); was {
		delete(x.Aliases, alias+adoptingSuffix)
		delete(x.Settings, settingWriteBlock)
	}
	return was
}

// dropClone deletes what an interrupted Adopt left behind.
func (a *Mover) dropClone(ctx context.Context, alias, physical string) error {
	found, err := a.live(ctx, physical)
	if err != nil || len(found) == 0 {
		return err
	}
	if !found[physical].adopting(alias) {
		return &core.Error{
			Code: core.CodeConflict, Message: "the index " + physical + " exists, which tutti would create",
			Hint: "delete it, or choose another indexName",
		}
	}
	clone, err := a.physical(ctx, physical)
	if err != nil {
		return err
	}
	return a.deleteIndex(ctx, clone, alias+adoptingSuffix)
}

func (a *Mover) putSetting(ctx context.Context, physical, name string, value any) error {
	raw, err := json.Marshal(map[string]any{name: value})
	if err != nil {
		return core.WrapError(core.CodeInternal, "encoding a setting", err)
	}
	_, err = a.client.Do(ctx, esapi.IndicesPutSettingsRequest{Index: []string{physical}, Body: bytes.NewReader(raw)}, nil)
	return err
}

// cloneTo clones an index that takes no writes, and waits until the clone has the same documents.
func (a *Mover) cloneTo(ctx context.Context, from, to string) error {
	raw, err := json.Marshal(map[string]any{
		"settings": map[string]any{settingWriteBlock: nil, "index.gc_deletes": gcDeletes},
		"aliases":  map[string]any{from + adoptingSuffix: map[string]any{}},
	})
	if err != nil {
		return core.WrapError(core.CodeInternal, "encoding the settings of an index", err)
	}
	clone := esapi.IndicesCloneRequest{Index: from, Target: to, Body: bytes.NewReader(raw), WaitForActiveShards: "1"}
	if _, err := a.client.Do(ctx, clone, nil); err != nil {
		return err
	}
	var health struct {
		TimedOut bool `json:"timed_out"`
	}
	wait := esapi.ClusterHealthRequest{Index: []string{to}, WaitForStatus: "yellow", Timeout: a.client.Timeout() / 2}
	if err := a.client.Fetch(ctx, wait, &health); err != nil {
		return err
	}
	if health.TimedOut {
		return core.NewError(core.CodeUnavailable, "the copy of the index "+from+" was not ready in time")
	}
	var counts [2]int64
	for i, name := range []string{from, to} {
		if _, err := a.client.Do(ctx, esapi.IndicesRefreshRequest{Index: []string{name}}, nil); err != nil {
			return err
		}
		if counts[i], err = a.count(ctx, name); err != nil {
			return err
		}
	}
	if counts[0] != counts[1] {
		return core.NewError(core.CodeConflict, fmt.Sprintf("the copy of the index %s has %d documents instead of %d", from, counts[1], counts[0]))
	}
	return nil
}

// replaceByAlias deletes an index and gives its name and its aliases to its clone, in one step. The aliases are read again: some may have
// been added while the index was cloned.
func (a *Mover) replaceByAlias(ctx context.Context, alias, physical string) error {
	found, err := a.live(ctx, alias)
	if err != nil {
		return err
	}
	old := found[alias]
	old.forgetAdopting(alias)
	actions := []action{
		{"remove_index": {"index": alias}},
		{"remove": {"index": physical, "alias": alias + adoptingSuffix, "must_exist": true}},
		{"add": {"index": physical, "alias": alias, "is_write_index": true}},
	}
	for _, name := range slices.Sorted(maps.Keys(old.Aliases)) {
		add := map[string]any{}
		if err := json.Unmarshal(old.Aliases[name], &add); err != nil {
			return transport.UnexpectedResponse()
		}
		add["index"], add["alias"] = physical, name
		actions = append(actions, action{"add": add})
	}
	return a.changeAliases(ctx, actions)
}

// undoAdopt deletes the clone and restores the writes of the index, unless the index is an alias by now: the answer may have been lost.
func (a *Mover) undoAdopt(ctx context.Context, alias, physical string, old liveIndex) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cloneRestore)
	defer cancel()
	found, err := a.live(ctx, alias)
	if err != nil || kindOf(alias, found) != index.NameIndex {
		return err
	}
	err = errors.Join(a.dropClone(ctx, alias, physical), a.putSetting(ctx, alias, settingWriteBlock, old.Settings[settingWriteBlock]))
	if err == nil && found[alias].adopting(alias) {
		_, err = a.client.Do(ctx, esapi.IndicesDeleteAliasRequest{Index: []string{alias}, Name: []string{alias + adoptingSuffix}}, nil)
	}
	return err
}
