package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/metadata"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
)

const (
	// maxCreateRounds limits how often Ensure starts again after another process was faster.
	maxCreateRounds = 5
	// maxUpdateRounds limits how often fields are added again after another process added them with other types.
	maxUpdateRounds = 3
	// gcDeletes is how long the cluster keeps the version of a deletion while the shard stays open.
	gcDeletes = "24h"
)

// Ensure creates the alias and a physical index behind it, <alias>-<yyyymmddhhmmss>, or adds spec's fields to the existing one.
// Of several concurrent processes exactly one creates the index: the alias is created with a write index, and the cluster allows
// only one. An index with the alias' name, and a spec.Mapping that contradicts the index, are core.CodeConflict; a name or
// mapping that the cluster does not accept is core.CodeInvalid.
func (a *Admin) Ensure(ctx context.Context, spec index.Spec) error {
	end, err := a.client.Begin(spec.Alias)
	if err != nil {
		return err
	}
	defer end()
	if _, err := a.client.Engine(ctx); err != nil {
		return err
	}
	if spec.Replaces != "" {
		if err := a.checkPreviousName(ctx, core.PreviousAlias(spec.Replaces)); err != nil {
			return err
		}
	}
	created, err := a.ensure(ctx, spec)
	if err != nil || spec.Replaces == "" || !created {
		return err
	}
	return a.checkForeignAliases(ctx, spec, true)
}

// checkPreviousName returns core.CodeConflict if an index has the name that the alias of the replaced index needs, before an index is
// filled that could not take its place.
func (a *Admin) checkPreviousName(ctx context.Context, previous string) error {
	found, err := a.live(ctx, previous)
	if err == nil && kindOf(previous, found) == index.NameIndex {
		return a.nameTaken(ctx, previous, nil)
	}
	return err
}

// ensure creates the index, or adds fields to the existing one, and reports which.
func (a *Admin) ensure(ctx context.Context, spec index.Spec) (created bool, err error) {
	for round := range maxCreateRounds {
		found, err := a.exists(ctx, spec.Alias)
		if found && spec.Replaces != "" {
			err = a.checkForeignAliases(ctx, spec, false)
		}
		if err != nil {
			return false, err
		}
		if found {
			return false, a.update(ctx, spec)
		}
		if spec.Replaces != "" {
			a.meta.Forget(spec.Alias) // the index last seen behind it has taken the place of another one, or was deleted
		} else if err := a.mayCreate(ctx, spec); !errors.Is(err, core.ErrIndexMissing) {
			return false, err
		}
		at := a.cfg.Now().UTC().Add(time.Duration(round) * time.Second)
		err = a.create(ctx, spec, cmp.Or(spec.Replaces, spec.Alias)+"-"+at.Format(metadata.NameLayout))
		switch transport.TypeOf(err) {
		case transport.TypeAlreadyExists, transport.TypeIllegalState:
			continue // another process was faster, or an index without the alias has the name
		case transport.TypeInvalidAlias:
			if strings.Contains(transport.ErrorOf(err).Reason, "same name") {
				return false, a.nameTaken(ctx, spec.Alias, err)
			}
		}
		return err == nil, err
	}
	return false, core.NewError(core.CodeUnavailable, "the alias "+spec.Alias+" could not be created; another process is changing it")
}

// nameTaken returns the error of an alias with the name of an index.
func (a *Admin) nameTaken(ctx context.Context, alias string, cause error) error {
	taken := &core.Error{
		Code: core.CodeConflict, Message: "an index has the name " + alias + ", which tutti needs for an alias",
		Hint: "choose another name, or make it an alias of the same documents: tutti mapping adopt",
		Err:  errors.Join(core.ErrAliasIsIndex, cause),
	}
	if strings.HasSuffix(alias, core.NextSuffix) || strings.HasSuffix(alias, core.PreviousSuffix) {
		taken.Hint = "rebuilds need this name: delete the index " + alias + ", or copy it to another name first"
		return taken
	}
	if found, err := a.live(ctx, alias); err == nil && found[alias].adopting(alias) {
		taken.Message = "tutti mapping adopt has not ended for the index " + alias + ", which takes no writes until it does: repeat the command if it is not running"
		taken.Hint = "tutti mapping adopt completes what was interrupted, or restores the writes"
	}
	return taken
}

// mayCreate returns core.ErrIndexMissing if an index may be created for spec's missing alias: the alias was never seen before, or
// no index of it exists.
func (a *Admin) mayCreate(ctx context.Context, spec index.Spec) error {
	missing := core.WrapError(core.CodeIndexBlocked, metadata.BlockedMessage(spec.Alias, transport.TypeIndexNotFound), core.ErrIndexMissing)
	if name := index.PhysicalName(spec.Identity); name != "" {
		a.meta.Alias(spec.Alias).PhysicalName.CompareAndSwap(nil, &name)
	}
	if a.meta.Alias(spec.Alias).PhysicalName.Load() == nil {
		return missing
	}
	return a.meta.MissingAlias(ctx, spec.Alias, missing)
}

// exists reports whether alias is an alias. More than one index behind it is a conflict: documents could not be read by id.
func (a *Admin) exists(ctx context.Context, alias string) (bool, error) {
	var answer map[string]json.RawMessage
	err := a.client.Fetch(ctx, esapi.IndicesGetAliasRequest{Name: []string{alias}}, &answer)
	if f := transport.ErrorOf(err); f != nil && f.Status == http.StatusNotFound && (f.Type != "" || f.Reason != "") {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if len(answer) > 1 {
		return false, metadata.SeveralIndices(alias, slices.Sorted(maps.Keys(answer)))
	}
	return len(answer) == 1, nil
}

// create creates the physical index and the alias in one request.
func (a *Admin) create(ctx context.Context, spec index.Spec, name string) error {
	body, err := a.createIndexBody(ctx, spec)
	if err != nil {
		return err
	}
	if _, err := a.client.Do(ctx, esapi.IndicesCreateRequest{Index: name, Body: bytes.NewReader(body)}, nil); err != nil {
		return err
	}
	a.cfg.Logger.Info("created an index", "index", spec.Alias, "physical_index", name)
	if spec.Mapping == nil {
		a.rememberCreated(spec)
	}
	return nil
}

// rememberCreated caches the mapping of a new index.
func (a *Admin) rememberCreated(spec index.Spec) {
	tree, err := mapping.Merge(mapping.NewRoot(), spec.Known)
	if err != nil {
		return // the cluster has accepted the mapping; it is read when it is needed
	}
	st := a.meta.Alias(spec.Alias)
	st.Tree.Store(tree)
	st.UnreadAfter.Store(metadata.ReadBatches)
}

func (a *Admin) createIndexBody(ctx context.Context, spec index.Spec) (json.RawMessage, error) {
	var body mappingFile
	var err error
	if spec.Mapping == nil {
		body.Mappings, err = ownMapping(spec.Known)
	} else if body, err = parseMappingFile(spec.Mapping); err == nil {
		body.Mappings, err = withOwnFields(body.Mappings, spec.Known)
	}
	if err == nil {
		body.Mappings, err = a.meta.TranslateMapping(ctx, body.Mappings)
	}
	if err != nil {
		return nil, err
	}
	settings := map[string]any{
		"index.number_of_shards":   strconv.Itoa(a.cfg.Shards),
		"index.number_of_replicas": strconv.Itoa(a.cfg.Replicas),
		"index.gc_deletes":         gcDeletes,
	}
	maps.Copy(settings, a.cfg.Limits.Settings())
	flattenSettings(settings, "", body.Settings)
	aliases := map[string]json.RawMessage{}
	if spec.Replaces == "" {
		maps.Copy(aliases, body.Aliases)
	} else {
		settings[settingReplicas], settings[settingRefresh] = "0", "-1"
		delete(settings, settingAutoExpand)
	}
	aliases[spec.Alias] = json.RawMessage(`{"is_write_index":true}`)
	raw, err := json.Marshal(map[string]any{"aliases": aliases, "settings": settings, "mappings": body.Mappings})
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the mapping file cannot be parsed", err)
	}
	return raw, nil
}

// update adds spec's fields to the index behind an existing alias.
func (a *Admin) update(ctx context.Context, spec index.Spec) error {
	st := a.meta.Alias(spec.Alias)
	if err := st.Lock(ctx); err != nil {
		return err
	}
	defer st.Unlock()
	if spec.Mapping != nil {
		return a.putUserMapping(ctx, st, spec)
	}
	for round := 0; ; round++ {
		tree, err := a.meta.MappingTree(ctx, spec.Alias)
		if err != nil {
			return err
		}
		st.Tree.Store(tree)
		st.UnreadAfter.Store(metadata.ReadBatches)
		err = a.meta.AddFields(ctx, st, spec.Alias, tree, mapping.Missing(tree, spec.Known))
		// Another process may have added a field with another type after it was read; then it is no longer missing.
		if transport.TypeOf(err) == transport.TypeIllegalArgument && round+1 < maxUpdateRounds {
			continue
		}
		return err
	}
}

// putUserMapping puts the user's mapping, which must not contradict the existing index.
func (a *Admin) putUserMapping(ctx context.Context, st *metadata.Alias, spec index.Spec) error {
	body, err := parseMappingFile(spec.Mapping)
	if err != nil {
		return err
	}
	st.Tree.Store(nil)
	err = a.meta.PutMapping(ctx, spec.Alias, body.Mappings)
	if transport.TypeOf(err) == transport.TypeIllegalArgument {
		return &core.Error{
			Code: core.CodeConflict, Message: "the mapping file contradicts the mapping of " + spec.Alias + a.contradiction(ctx, spec),
			Hint: "rebuild the repository's index, which creates a new one with the mapping file",
			Err:  errors.Join(core.ErrMappingContradicts, err),
		}
	}
	if err != nil || spec.Known == nil {
		return err
	}
	return a.addOwnFields(ctx, st, spec)
}

// contradiction returns ": " and the fields of spec's mapping file that cannot be put into the index, or "" if they are not known.
func (a *Admin) contradiction(ctx context.Context, spec index.Spec) string {
	raw, err := a.meta.Mapping(ctx, spec.Alias)
	if err != nil {
		return ""
	}
	found, err := a.differences(ctx, spec, raw)
	if text := mapping.Contradiction(found); err == nil && text != "" {
		return ": " + text
	}
	return ""
}

// addOwnFields adds the fields that tutti adds to documents, if the index does not have them yet.
func (a *Admin) addOwnFields(ctx context.Context, st *metadata.Alias, spec index.Spec) error {
	raw, err := a.meta.Mapping(ctx, spec.Alias)
	if err != nil {
		return err
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		return nil // the cluster accepts mappings that this parser does not
	}
	err = a.meta.AddFields(ctx, st, spec.Alias, tree, mapping.MissingOwn(tree, spec.Known))
	if transport.TypeOf(err) == transport.TypeIllegalArgument { // a document added the field first, or the index has reached its limit of fields
		a.cfg.Logger.Warn("the field repositories could not be added to the mapping", "index", spec.Alias, "err", err)
		return nil
	}
	return err
}
