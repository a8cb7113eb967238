package elastic

import (
	"bytes"
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
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
)

const (
	// nameLayout is the time format in the name of a physical index.
	nameLayout = "20060102150405"
	// maxCreateRounds limits how often Ensure starts again after another process was faster.
	maxCreateRounds = 5
	// gcDeletes is how long the cluster keeps the version of a deletion while the shard stays open.
	gcDeletes = "24h"
)

// Ensure creates the alias and a physical index behind it, <alias>-<yyyymmddhhmmss>, or adds spec's fields to the existing one.
// Of several concurrent processes exactly one creates the index: the alias is created with a write index, and the cluster allows
// only one. An index with the alias' name, and a spec.Mapping that contradicts the index, are core.CodeConflict; a name or
// mapping that the cluster does not accept is core.CodeInvalid.
func (x *Index) Ensure(ctx context.Context, spec index.Spec) error {
	end, err := x.client.Begin(spec.Alias)
	if err != nil {
		return err
	}
	defer end()
	for round := range maxCreateRounds {
		found, err := x.exists(ctx, spec.Alias)
		if err != nil {
			return err
		}
		if found {
			return x.update(ctx, spec)
		}
		if err := x.mayCreate(ctx, spec); !errors.Is(err, core.ErrIndexMissing) {
			return err
		}
		at := x.now().UTC().Add(time.Duration(round) * time.Second)
		err = x.create(ctx, spec, spec.Alias+"-"+at.Format(nameLayout))
		switch transport.TypeOf(err) {
		case transport.TypeAlreadyExists, transport.TypeIllegalState:
			continue // another process was faster, or an index without the alias has the name
		case transport.TypeInvalidAlias:
			if strings.Contains(transport.ErrorOf(err).Reason, "same name") {
				return core.WrapError(core.CodeConflict, "an index has the name "+spec.Alias+
					"; remove it or choose another name, as tutti needs the name for an alias", err)
			}
		}
		return err
	}
	return core.NewError(core.CodeUnavailable, "the alias "+spec.Alias+" could not be created; another process is changing it")
}

// mayCreate returns core.ErrIndexMissing if an index may be created for spec's missing alias: the alias was never seen before, or
// no index of it exists.
func (x *Index) mayCreate(ctx context.Context, spec index.Spec) error {
	missing := core.WrapError(core.CodeIndexBlocked, blockedMessage(spec.Alias, transport.TypeIndexNotFound), core.ErrIndexMissing)
	if name, _, ok := strings.Cut(spec.Identity, "/"); ok {
		x.state(spec.Alias).physicalName.CompareAndSwap(nil, &name)
	}
	if x.state(spec.Alias).physicalName.Load() == nil {
		return missing
	}
	return x.missingAliasError(ctx, spec.Alias, missing)
}

// exists reports whether alias is an alias. More than one index behind it is a conflict: documents could not be read by id.
func (x *Index) exists(ctx context.Context, alias string) (bool, error) {
	reply, err := x.client.Do(ctx, esapi.IndicesGetAliasRequest{Name: []string{alias}}, nil)
	if f := transport.ErrorOf(err); f != nil && f.Status == http.StatusNotFound && (f.Type != "" || f.Reason != "") {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var answer map[string]json.RawMessage
	if err := reply.Decode(&answer); err != nil {
		return false, err
	}
	if len(answer) > 1 {
		return false, core.NewError(core.CodeConflict, "the alias "+alias+" has more than one index")
	}
	return len(answer) == 1, nil
}

// create creates the physical index and the alias in one request.
func (x *Index) create(ctx context.Context, spec index.Spec, name string) error {
	body, err := x.createIndexBody(spec)
	if err != nil {
		return err
	}
	if _, err := x.client.Do(ctx, esapi.IndicesCreateRequest{Index: name, Body: bytes.NewReader(body)}, nil); err != nil {
		return err
	}
	x.logger.Info("created an index", "index", spec.Alias, "physical_index", name)
	if spec.Mapping == nil {
		x.rememberCreated(spec)
	}
	return nil
}

// rememberCreated caches the mapping of a new index.
func (x *Index) rememberCreated(spec index.Spec) {
	tree, err := mapping.Merge(mapping.NewRoot(), spec.Known)
	if err != nil {
		return // the cluster has accepted the mapping; it is read when it is needed
	}
	st := x.state(spec.Alias)
	st.tree.Store(tree)
	st.unreadAfter.Store(readBatches)
}

// mappingFile is the create-index body that a user's mapping file may contain instead of the mapping itself.
type mappingFile struct {
	Settings map[string]any             `json:"settings"`
	Mappings json.RawMessage            `json:"mappings"`
	Aliases  map[string]json.RawMessage `json:"aliases"`
}

// parseMappingFile parses the content of a user's mapping file.
func parseMappingFile(raw json.RawMessage) (mappingFile, error) {
	var body mappingFile
	if err := json.Unmarshal(raw, &body); err != nil {
		return mappingFile{}, core.WrapError(core.CodeInvalid, "the mapping file cannot be parsed", err)
	}
	if body.Mappings == nil {
		body = mappingFile{Mappings: raw}
	}
	return body, nil
}

func (x *Index) createIndexBody(spec index.Spec) (json.RawMessage, error) {
	var body mappingFile
	var err error
	if spec.Mapping == nil {
		body.Mappings, err = ownMapping(spec.Known)
	} else if body, err = parseMappingFile(spec.Mapping); err == nil {
		body.Mappings, err = withOwnFields(body.Mappings, spec.Known)
	}
	if err != nil {
		return nil, err
	}
	settings := map[string]any{
		"index.number_of_shards":   strconv.Itoa(x.shards),
		"index.number_of_replicas": strconv.Itoa(x.replicas),
		"index.gc_deletes":         gcDeletes,
	}
	flattenSettings(settings, "", body.Settings)
	aliases := map[string]json.RawMessage{}
	maps.Copy(aliases, body.Aliases)
	aliases[spec.Alias] = json.RawMessage(`{"is_write_index":true}`)
	raw, err := json.Marshal(object{"aliases": aliases, "settings": settings, "mappings": body.Mappings})
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the mapping file cannot be parsed", err)
	}
	return raw, nil
}

// ownMapping renders tutti's own mapping.
func ownMapping(known *mapping.Field) (json.RawMessage, error) {
	tree, err := mapping.Merge(mapping.NewRoot(), known)
	if err != nil {
		return nil, err
	}
	return tree.Render()
}

// withOwnFields returns a user's mapping with the fields that tutti adds to documents, if it does not define them. Everything
// else stays as written.
func withOwnFields(raw json.RawMessage, known *mapping.Field) (json.RawMessage, error) {
	tree, err := mapping.Parse(raw)
	if err != nil {
		return raw, nil // the cluster accepts mappings that this parser does not, and reports errors in others
	}
	own := mapping.MissingOwn(tree, known)
	if own == nil {
		return raw, nil
	}
	added, err := own.Render()
	if err != nil {
		return nil, err
	}
	var given map[string]json.RawMessage
	var fields struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	for _, part := range []json.RawMessage{raw, added} { // the fields of both are collected in one map
		if err := errors.Join(json.Unmarshal(part, &fields), json.Unmarshal(raw, &given)); err != nil {
			return nil, core.WrapError(core.CodeInvalid, "the mapping file cannot be parsed", err)
		}
	}
	if given["properties"], err = json.Marshal(fields.Properties); err == nil {
		raw, err = json.Marshal(given)
	}
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the mapping file cannot be parsed", err)
	}
	return raw, nil
}

// flattenSettings writes settings into out under their full names, so that a setting in nested form
// ({"index":{"number_of_shards":2}}) replaces the default instead of duplicating it.
func flattenSettings(out map[string]any, prefix string, settings map[string]any) {
	for name, value := range settings {
		full := prefix + name
		if inner, ok := value.(map[string]any); ok {
			flattenSettings(out, full+".", inner)
			continue
		}
		if !strings.HasPrefix(full, "index.") {
			full = "index." + full
		}
		out[full] = value
	}
}

// update adds spec's fields to the index behind an existing alias.
func (x *Index) update(ctx context.Context, spec index.Spec) error {
	st := x.state(spec.Alias)
	if err := st.lock(ctx); err != nil {
		return err
	}
	defer st.unlock()
	if spec.Mapping != nil {
		return x.putUserMapping(ctx, st, spec)
	}
	for round := 0; ; round++ {
		tree, err := x.fetchTree(ctx, spec.Alias)
		if err != nil {
			return err
		}
		st.tree.Store(tree)
		st.unreadAfter.Store(readBatches)
		err = x.addFields(ctx, st, spec.Alias, tree, mapping.Missing(tree, spec.Known))
		// Another process may have added a field with another type after it was read; then it is no longer missing.
		if transport.TypeOf(err) == transport.TypeIllegalArgument && round+1 < maxGrowRounds {
			continue
		}
		return err
	}
}

// putUserMapping puts the user's mapping, which must not contradict the existing index.
func (x *Index) putUserMapping(ctx context.Context, st *aliasState, spec index.Spec) error {
	body, err := parseMappingFile(spec.Mapping)
	if err != nil {
		return err
	}
	st.tree.Store(nil)
	err = x.putRawMapping(ctx, spec.Alias, body.Mappings)
	if transport.TypeOf(err) == transport.TypeIllegalArgument {
		return &core.Error{
			Code: core.CodeConflict, Message: "the mapping file contradicts the mapping of " + spec.Alias,
			Hint: "rebuild the repository's index, which creates a new one with the mapping file", Err: err,
		}
	}
	if err != nil || spec.Known == nil {
		return err
	}
	return x.addOwnFields(ctx, st, spec)
}

// addOwnFields adds the fields that tutti adds to documents, if the index does not have them yet.
func (x *Index) addOwnFields(ctx context.Context, st *aliasState, spec index.Spec) error {
	raw, err := x.fetchMapping(ctx, spec.Alias)
	if err != nil {
		return err
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		return nil // the cluster accepts mappings that this parser does not
	}
	err = x.addFields(ctx, st, spec.Alias, tree, mapping.MissingOwn(tree, spec.Known))
	if transport.TypeOf(err) == transport.TypeIllegalArgument { // a document added the field first, or the index has reached its limit of fields
		x.logger.Warn("the field repositories could not be added to the mapping", "index", spec.Alias, "err", err)
		return nil
	}
	return err
}
