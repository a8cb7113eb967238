package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
	"tutti/internal/index/mappingfile"
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
func (a *Creator) Ensure(ctx context.Context, spec index.Spec) error {
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

// Declare sets the types of fields that later Writes to an alias add.
func (a *Creator) Declare(alias string, types *mapping.Types) { a.meta.Types.Declare(alias, types) }

// checkPreviousName returns core.CodeConflict if an index has the name that the alias of the replaced index needs, before an index is
// filled that could not take its place.
func (a *Creator) checkPreviousName(ctx context.Context, previous string) error {
	found, err := a.live(ctx, previous)
	if err == nil && kindOf(previous, found) == index.NameIndex {
		return a.nameTaken(ctx, previous, nil)
	}
	return err
}

// ensure creates the index, or adds fields to the existing one, and reports which.
func (a *Creator) ensure(ctx context.Context, spec index.Spec) (created bool, err error) {
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
		err = a.create(ctx, spec, cmp.Or(spec.Replaces, spec.Alias)+"-"+at.Format(aliases.NameLayout))
		if refused := transport.ErrorOf(err); refused != nil && strings.Contains(refused.Reason, "conflicts with data stream") {
			return false, a.nameTaken(ctx, spec.Alias, err)
		}
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

// nameTaken returns the error of an alias with the name of an index or a data stream.
func (a *Creator) nameTaken(ctx context.Context, alias string, cause error) error {
	taken := &core.Error{
		Code: core.CodeConflict, Message: "an index has the name " + alias + ", which tutti needs for an alias",
		Hint: "choose another name, or make it an alias of the same documents: tutti mapping adopt",
		Err:  errors.Join(core.ErrAliasIsIndex, cause),
	}
	if strings.HasSuffix(alias, core.NextSuffix) || strings.HasSuffix(alias, core.PreviousSuffix) {
		taken.Hint = "rebuilds need this name: delete the index " + alias + ", or copy it to another name first"
		return taken
	}
	found, err := a.live(ctx, alias)
	switch {
	case err != nil:
	case kindOf(alias, found) == index.NameDataStream: // which cannot be adopted
		taken.Message = "a data stream has the name " + alias + ", which tutti needs for an alias"
		taken.Hint, taken.Err = "choose another indexName", errors.Join(core.ErrAliasIsStream, cause)
	case found[alias].adopting(alias):
		taken.Message = "tutti mapping adopt has not ended for the index " + alias + ", which takes no writes until it does: repeat the command if it is not running"
		taken.Hint = "tutti mapping adopt completes what was interrupted, or restores the writes"
	}
	return taken
}

// mayCreate returns core.ErrIndexMissing if an index may be created for spec's missing alias: the alias was never seen before, or
// no index of it exists.
func (a *Creator) mayCreate(ctx context.Context, spec index.Spec) error {
	missing := core.WrapError(core.CodeIndexBlocked, aliases.BlockedMessage(spec.Alias, transport.TypeIndexNotFound), core.ErrIndexMissing)
	if name := index.PhysicalName(spec.Identity); name != "" {
		a.meta.Alias(spec.Alias).SeeFirst(name)
	}
	if a.meta.Alias(spec.Alias).Seen().Index == "" {
		return missing
	}
	return a.meta.MissingAlias(ctx, spec.Alias, missing)
}

// exists reports whether alias is an alias. More than one index behind it is a conflict: documents could not be read by id.
func (a *cluster) exists(ctx context.Context, alias string) (bool, error) {
	var answer transport.AliasAnswer
	err := a.client.Fetch(ctx, transport.AliasRequest(alias), &answer)
	if f := transport.ErrorOf(err); f != nil && f.Status == http.StatusNotFound && (f.Type != "" || f.Reason != "") {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	behind := answer.Behind(alias)
	if len(behind) > 1 {
		return false, aliases.SeveralIndices(alias, behind)
	}
	return len(behind) == 1, nil
}

// create creates the physical index and the alias in one request.
func (a *Creator) create(ctx context.Context, spec index.Spec, name string) error {
	body, tree, err := a.createIndexBody(ctx, spec)
	if err != nil {
		return err
	}
	if _, err := a.client.Do(ctx, esapi.IndicesCreateRequest{Index: name, Body: bytes.NewReader(body)}, nil); err != nil {
		return refusal(err, tree)
	}
	a.cfg.Logger.Info("created an index", "index", spec.Alias, "physical_index", name)
	if spec.Mapping == nil {
		st := a.meta.Alias(spec.Alias) // the cluster has accepted the mapping
		st.See(&aliases.Seen{Index: name, Tree: tree})
		st.UnreadAfter.Store(aliases.ReadBatches)
	}
	return nil
}

// Definition returns the body that creates an index of spec. If the cluster does not say which engine it is, the body is Elasticsearch's,
// and unreached is why.
func (a *Creator) Definition(ctx context.Context, spec index.Spec) (body json.RawMessage, unreached, err error) {
	file, _, mappings, err := definition(spec)
	if err != nil {
		return nil, nil, err
	}
	engine, unreached := a.client.Engine(ctx)
	if unreached != nil {
		engine, _, _ = flavour.Of(flavour.Elasticsearch, flavour.Version{})
	} else if mappings, err = a.meta.TranslateMapping(ctx, mappings); err != nil {
		return nil, nil, err
	}
	body, err = a.body(engine, spec, file, mappings)
	return body, unreached, err
}

// createIndexBody returns the body that creates the index, and the mapping in it, nil if only the cluster can judge that.
func (a *Creator) createIndexBody(ctx context.Context, spec index.Spec) (json.RawMessage, *mapping.Field, error) {
	file, tree, mappings, err := definition(spec)
	if err != nil {
		return nil, nil, err
	}
	if mappings, err = a.meta.TranslateMapping(ctx, mappings); err != nil {
		return nil, nil, err
	}
	engine, err := a.client.Engine(ctx)
	if err != nil {
		return nil, nil, err
	}
	body, err := a.body(engine, spec, file, mappings)
	return body, tree, err
}

// body returns the body that creates an index of spec in an engine.
func (a *Creator) body(engine flavour.Engine, spec index.Spec, file mappingfile.File, mappings json.RawMessage) (json.RawMessage, error) {
	settings := a.reporter.settings(engine, spec, file)
	aliases := map[string]json.RawMessage{}
	if spec.Replaces == "" {
		maps.Copy(aliases, file.Aliases)
	} else {
		settings[settingReplicas], settings[settingRefresh] = "0", "-1"
		delete(settings, settingAutoExpand)
	}
	aliases[spec.Alias] = json.RawMessage(`{"is_write_index":true}`)
	raw, err := json.Marshal(map[string]any{"aliases": aliases, "settings": settings, "mappings": mappings})
	if err != nil {
		return nil, unreadable(err)
	}
	return raw, nil
}

// settings returns the settings of a new index; those of the mapping file win.
func (a *Reporter) settings(engine flavour.Engine, spec index.Spec, file mappingfile.File) map[string]any {
	settings := map[string]any{
		"index.number_of_shards":   strconv.Itoa(a.cfg.Shards),
		"index.number_of_replicas": strconv.Itoa(a.cfg.Replicas),
		"index.gc_deletes":         gcDeletes,
	}
	maps.Copy(settings, engine.LimitSettings(a.cfg.Limits.With(spec.Mapping)))
	if engine.OmitsVectors() {
		settings["index.mapping.exclude_source_vectors"] = "false"
	}
	maps.Copy(settings, file.Settings)
	return settings
}

// update adds to the index behind an existing alias what spec's mapping file says, or without one spec's fields that it lacks.
func (a *Creator) update(ctx context.Context, spec index.Spec) error {
	st := a.meta.Alias(spec.Alias)
	if err := st.Lock(ctx); err != nil {
		return err
	}
	defer st.Unlock()
	file, err := mappingfile.Parse(spec.Mapping)
	if err != nil {
		return index.RefusedMapping(err)
	}
	for round := 0; ; round++ {
		name, raw, err := a.meta.Index(ctx, spec.Alias)
		if err != nil {
			return err
		}
		tree, err := mapping.Parse(raw)
		if err != nil && spec.Mapping == nil {
			return core.WrapError(core.CodeInternal, "the mapping of "+spec.Alias+" cannot be parsed", err)
		}
		if err != nil || verbatim(file, spec) { // the cluster accepts mappings that this parser does not
			return a.putMapping(ctx, st, spec, file, file.Raw)
		}
		if update := file.Update(tree, spec.NewFields); update != nil {
			body, err := update.Render()
			if err == nil {
				err = a.putMapping(ctx, st, spec, file, body)
			}
			if err != nil {
				return err
			}
			if tree, err = mapping.Put(tree, update); err != nil { // the cluster has accepted it
				return nil
			}
		}
		missing, seen := mapping.MissingOwn(tree, spec.Known), &aliases.Seen{Index: name, Tree: tree}
		if spec.Mapping == nil {
			missing = mapping.Missing(tree, spec.Known)
			st.Update(seen)
			st.UnreadAfter.Store(aliases.ReadBatches)
		}
		_, err = a.meta.AddFields(ctx, st, spec.Alias, seen, missing)
		// Another process may have added a field with another type after it was read; then it is no longer missing.
		switch {
		case transport.TypeOf(err) != transport.TypeIllegalArgument:
			return err
		case spec.Mapping != nil: // a document added the field first, or the index has reached its limit of fields
			a.cfg.Logger.Warn("the field repositories could not be added to the mapping", "index", spec.Alias, "err", err)
			return nil
		case round+1 == maxUpdateRounds:
			return err
		}
	}
}

// typeMapper is the type of the refusal to change a parameter of an object, such as enabled, which Elasticsearch 8 sends with status 500.
const typeMapper = "mapper_exception"

// putMapping puts the part of spec's mapping file that an existing index takes, which must not contradict that index.
func (a *Creator) putMapping(ctx context.Context, st *aliases.Alias, spec index.Spec, file mappingfile.File, body json.RawMessage) error {
	st.See(&aliases.Seen{Index: st.Seen().Index})
	err := a.meta.PutMapping(ctx, spec.Alias, body)
	failure := transport.ErrorOf(err)
	refused := failure != nil && failure.Status == http.StatusBadRequest || transport.TypeOf(err) == typeMapper
	if !refused {
		return err
	}
	text := a.contradiction(ctx, spec, file)
	if text == "" {
		var c index.Comparison
		if _, failed := a.reporter.examine(ctx, spec, &c); failed != nil {
			return failed
		}
		if c.Unasked && transport.TypeOf(err) != transport.TypeIllegalArgument { // OpenSearch has this type for refusals too
			tree, _ := file.Fields(spec.Known, spec.NewFields) // without it the message has no path
			c.Refused = refusal(err, tree)
		}
		if c.Refused != nil {
			return index.RefusedMapping(c.Refused)
		}
	}
	return &core.Error{
		Code: core.CodeConflict, Message: "the mapping file contradicts the mapping of " + spec.Alias + text,
		Hint: "rebuild the repository's index, which creates a new one with the mapping file",
		Err:  errors.Join(core.ErrMappingContradicts, err),
	}
}

// contradiction returns ": " and the fields of spec's mapping file that cannot be put into the index, or "" if they are not known.
func (a *Creator) contradiction(ctx context.Context, spec index.Spec, file mappingfile.File) string {
	_, raw, err := a.meta.Index(ctx, spec.Alias)
	if err != nil {
		return ""
	}
	live, _, err := mapping.ParseForeign(raw)
	if err != nil {
		return ""
	}
	update := file.Update(live, spec.NewFields)
	if update == nil {
		return ""
	}
	if raw, err = update.Render(); err != nil {
		return ""
	}
	wanted, _, err := mapping.ParseForeign(a.reporter.normalized(ctx, raw))
	if text := mapping.Contradiction(mapping.Compare(wanted, live)); err == nil && text != "" {
		return ": " + text
	}
	return ""
}
