package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mappingfile"
)

// Settings that differ while an index is filled.
const (
	settingReplicas   = "index.number_of_replicas"
	settingAutoExpand = "index.auto_expand_replicas"
	settingRefresh    = "index.refresh_interval"
)

// Swap moves spec.Alias to the index behind from, with the aliases of the mapping file, in one request to the cluster. Before that, the
// index gets its copies and refreshes. Aliases that others made stay where they are.
func (a *Mover) Swap(ctx context.Context, spec index.Spec, from, identity string) error {
	end, err := a.client.Begin(spec.Alias)
	if err != nil {
		return err
	}
	defer end()
	body, err := mappingfile.Parse(spec.Mapping)
	if err != nil {
		return err
	}
	old, err := a.aliasesOf(ctx, spec.Alias)
	if err != nil {
		return err
	}
	next, err := a.aliasesOf(ctx, from)
	if err != nil {
		return err
	}
	if identity != "" && identity != next.identity {
		return index.Replaced(from)
	}
	if err := a.restoreSettings(ctx, next.index, body); err != nil {
		return err
	}
	actions, err := a.swapActions(ctx, spec.Alias, from, old, next, body.Aliases)
	if err != nil {
		return err
	}
	if err := a.changeAliases(ctx, actions); err != nil {
		return err
	}
	a.cfg.Logger.Info("moved an alias to another index", "index", spec.Alias, "physical_index", next.index, "previous_index", old.index)
	for _, alias := range []string{spec.Alias, from, core.PreviousAlias(spec.Alias)} {
		a.meta.Forget(alias)
	}
	a.meta.Grown(spec.Alias)
	return nil
}

// swapActions returns the alias actions of a Swap.
func (a *Mover) swapActions(
	ctx context.Context, alias, from string, old, next physicalAliases, own map[string]json.RawMessage,
) ([]action, error) {
	previous := core.PreviousAlias(alias)
	actions := []action{
		{"remove": {"index": old.index, "alias": alias, "must_exist": true}},
		{"remove": {"index": next.index, "alias": from, "must_exist": true}},
		{"add": {"index": next.index, "alias": alias, "is_write_index": true}},
	}
	if from != previous {
		last, err := a.aliasesOf(ctx, previous)
		switch {
		case errors.Is(err, core.ErrIndexMissing):
		case err != nil:
			return nil, err
		case len(last.readers(previous)) > 0:
			a.cfg.Logger.Warn("an index from before a rebuild is kept, as others have given it an alias; delete it when that is no longer needed",
				"index", alias, "physical_index", last.index, "aliases", last.aliases)
			actions = append(actions, action{"remove": {"index": last.index, "alias": previous, "must_exist": true}})
		default:
			actions = append(actions, action{"remove_index": {"index": last.index}})
		}
	}
	actions = append(actions, action{"add": {"index": old.index, "alias": previous, "is_write_index": true}})
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if name == alias || name == previous || name == from {
			continue
		}
		if slices.Contains(old.aliases, name) {
			actions = append(actions, action{"remove": {"index": old.index, "alias": name}})
		}
		add := map[string]any{}
		if err := json.Unmarshal(own[name], &add); err != nil {
			return nil, core.WrapError(core.CodeInvalid, "the aliases of the mapping file cannot be parsed", err)
		}
		add["index"], add["alias"] = next.index, name
		actions = append(actions, action{"add": add})
	}
	return actions, nil
}

// restoreSettings gives a filled index the copies and refreshes that Ensure would have created it with.
func (a *Mover) restoreSettings(ctx context.Context, physical string, file mappingfile.File) error {
	settings := map[string]any{settingReplicas: strconv.Itoa(a.cfg.Replicas), settingRefresh: nil}
	for _, name := range []string{settingReplicas, settingAutoExpand, settingRefresh} {
		if value, ok := file.Settings[name]; ok {
			settings[name] = value
		}
	}
	raw, err := json.Marshal(settings)
	if err != nil {
		return core.WrapError(core.CodeInvalid, "the settings of the mapping file cannot be parsed", err)
	}
	_, err = a.client.Do(ctx, esapi.IndicesPutSettingsRequest{Index: []string{physical}, Body: bytes.NewReader(raw)}, nil)
	return err
}

// Drop deletes an alias with its index, if identity is "" or the index's. The index is kept, with CodeConflict, if others read it.
func (a *Mover) Drop(ctx context.Context, alias, identity string) error {
	end, err := a.client.Begin(alias)
	if err != nil {
		return err
	}
	defer end()
	gone, err := a.aliasesOf(ctx, alias)
	if errors.Is(err, core.ErrIndexMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	if identity != "" && identity != gone.identity {
		return nil
	}
	err = a.deleteIndex(ctx, gone, alias)
	a.meta.Forget(alias)
	return err
}

// physicalAliases is an index with its aliases and the data stream that it is part of, "" for none.
type physicalAliases struct {
	index, identity, dataStream string
	aliases                     []string
}

// aliasesOf returns the index behind an alias, with all its aliases. core.ErrIndexMissing when the alias is missing, CodeConflict when it
// has several indices or is the name of an index.
func (a *cluster) aliasesOf(ctx context.Context, alias string) (physicalAliases, error) {
	found, err := a.exists(ctx, alias)
	if err == nil && !found {
		err = core.WrapError(core.CodeIndexBlocked, aliases.BlockedMessage(alias, transport.TypeIndexNotFound), core.ErrIndexMissing)
	}
	if err != nil {
		return physicalAliases{}, err
	}
	return a.physical(ctx, alias)
}

// physical returns the index with a name, or behind an alias.
func (a *cluster) physical(ctx context.Context, name string) (physicalAliases, error) {
	var answer map[string]struct {
		Aliases    map[string]json.RawMessage `json:"aliases"`
		DataStream string                     `json:"data_stream"`
		Settings   struct {
			Index struct {
				UUID string `json:"uuid"`
			} `json:"index"`
		} `json:"settings"`
	}
	get := esapi.IndicesGetRequest{Index: []string{name}, FilterPath: []string{"*.aliases", "*.data_stream", "*.settings.index.uuid"}}
	if err := a.client.Fetch(ctx, get, &answer); err != nil {
		return physicalAliases{}, err
	}
	for name, one := range answer {
		return physicalAliases{
			index: name, identity: identityOf(name, one.Settings.Index.UUID), dataStream: one.DataStream, aliases: slices.Sorted(maps.Keys(one.Aliases)),
		}, nil
	}
	return physicalAliases{}, transport.UnexpectedResponse()
}

// checkForeignAliases returns CodeConflict if the index of an alias to be filled has other aliases: searches of those would find every
// document twice. If Ensure has just created the index, a template of the cluster has added them, and the empty index is deleted. Otherwise
// one of the aliases was added or moved since, and the index stays as it is.
func (a *Creator) checkForeignAliases(ctx context.Context, spec index.Spec, created bool) error {
	found, err := a.aliasesOf(ctx, spec.Alias)
	if err != nil {
		return err
	}
	foreign := found.readers(spec.Alias)
	switch {
	case len(foreign) == 0:
		return nil
	case !created, slices.Contains(foreign, spec.Replaces):
		return index.Shared(found.index, spec.Alias, foreign)
	}
	a.meta.Forget(spec.Alias)
	if err := a.deleteIndex(ctx, found, append([]string{spec.Alias}, foreign...)...); err != nil {
		return err
	}
	return &core.Error{
		Code: core.CodeConflict,
		Message: fmt.Sprintf("%s adds the alias %s to new indices, so that searches of it would find every document twice during a rebuild",
			a.templateOf(ctx, found.index, foreign[0]), foreign[0]),
		Hint: "remove the alias from the template; name it in the mapping file instead, and it follows the rebuilt index",
	}
}

// templateOf returns a description of the index template that adds an alias to an index.
func (a *Creator) templateOf(ctx context.Context, physical, alias string) string {
	type template struct {
		Patterns []string                   `json:"index_patterns"`
		Aliases  map[string]json.RawMessage `json:"aliases"`
	}
	var composable struct {
		Templates []struct {
			Name     string `json:"name"`
			Template struct {
				Patterns   []string `json:"index_patterns"`
				ComposedOf []string `json:"composed_of"`
				Template   template `json:"template"`
			} `json:"index_template"`
		} `json:"index_templates"`
	}
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, physical)
		return err == nil && ok
	}
	if err := a.client.Fetch(ctx, esapi.IndicesGetIndexTemplateRequest{}, &composable); err == nil {
		for _, t := range composable.Templates {
			_, has := t.Template.Template.Aliases[alias]
			if (has || len(t.Template.ComposedOf) > 0) && slices.ContainsFunc(t.Template.Patterns, matches) {
				return "the index template " + t.Name
			}
		}
	}
	var legacy map[string]template
	if err := a.client.Fetch(ctx, esapi.IndicesGetTemplateRequest{}, &legacy); err == nil {
		for _, name := range slices.Sorted(maps.Keys(legacy)) {
			if _, has := legacy[name].Aliases[alias]; has && slices.ContainsFunc(legacy[name].Patterns, matches) {
				return "the index template " + name
			}
		}
	}
	return "a template of the cluster"
}
