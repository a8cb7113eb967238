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
	"tutti/internal/index/mapping"
)

const (
	// nameLayout is the time in the name of a physical index.
	nameLayout = "20060102150405"
	// maxCreateRounds bounds how often Ensure looks again after it lost a race against another process.
	maxCreateRounds = 5
	// gcDeletes is how long the cluster remembers the version of a deletion, as long as the shard stays open.
	gcDeletes = "24h"
)

// Ensure makes the alias and a physical index behind it, <alias>-<yyyymmddhhmmss>, or adds spec's fields to the one
// that is there. Of several processes that do this at once exactly one makes the index: the alias is created as the
// write index, of which the cluster allows one. An index that has the alias' name, and a spec.Mapping that contradicts
// the index, are core.CodeConflict; a name or mapping that the cluster does not accept is core.CodeInvalid.
func (x *Index) Ensure(ctx context.Context, spec index.Spec) error {
	if spec.Alias == "" {
		return core.NewError(core.CodeInvalid, "the index has no name")
	}
	leave, err := x.begin(spec.Alias)
	if err != nil {
		return err
	}
	defer leave()
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
		switch typeOf(err) {
		case typeAlreadyExists, typeIllegalState:
			continue // another process was faster, or the name was taken by an index without the alias
		case typeInvalidAlias:
			if strings.Contains(responseErrorOf(err).Reason, "same name") {
				return core.WrapError(core.CodeConflict, "an index has the name "+spec.Alias+
					"; remove it or choose another name, as tutti needs the name for an alias", err)
			}
		}
		return err
	}
	return core.NewError(core.CodeUnavailable, "the alias "+spec.Alias+" could not be made; another process changes it")
}

// mayCreate returns core.ErrIndexMissing where an index may be made for the missing alias of spec: it was never seen before, or
// no index of it is there.
func (x *Index) mayCreate(ctx context.Context, spec index.Spec) error {
	missing := core.WrapError(core.CodeIndexBlocked, blockedMessage(spec.Alias, typeIndexNotFound), core.ErrIndexMissing)
	if name, _, ok := strings.Cut(spec.Identity, "/"); ok {
		x.state(spec.Alias).physicalName.CompareAndSwap(nil, &name)
	}
	if x.state(spec.Alias).physicalName.Load() == nil {
		return missing
	}
	return x.missingAliasError(ctx, spec.Alias, missing)
}

// exists tells whether alias is an alias. More than one index behind it is a conflict: it could not be read by id.
func (x *Index) exists(ctx context.Context, alias string) (bool, error) {
	reply, err := x.client.do(ctx, esapi.IndicesGetAliasRequest{Name: []string{alias}}, nil)
	if f := responseErrorOf(err); f != nil && f.status == http.StatusNotFound && (f.Type != "" || f.Reason != "") {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var answer map[string]json.RawMessage
	if err := reply.decode(&answer); err != nil {
		return false, err
	}
	if len(answer) > 1 {
		return false, core.NewError(core.CodeConflict, "the alias "+alias+" stands for more than one index")
	}
	return len(answer) == 1, nil
}

// create makes the physical index and the alias in one call.
func (x *Index) create(ctx context.Context, spec index.Spec, name string) error {
	body, err := x.createIndexBody(spec)
	if err != nil {
		return err
	}
	if _, err := x.client.do(ctx, esapi.IndicesCreateRequest{Index: name, Body: bytes.NewReader(body)}, nil); err != nil {
		return err
	}
	x.logger.Info("an index has been made", "index", spec.Alias, "physical_index", name)
	if spec.Mapping == nil {
		x.rememberCreated(spec)
	}
	return nil
}

// rememberCreated remembers the mapping of an index that was just made.
func (x *Index) rememberCreated(spec index.Spec) {
	tree, err := mapping.Merge(mapping.NewRoot(), spec.Known)
	if err != nil {
		return // the cluster has taken it; it is read when it is needed
	}
	st := x.state(spec.Alias)
	st.tree.Store(tree)
	st.unreadAfter.Store(readBatches)
}

// mappingFile is what a user's mapping file may hold instead of the mapping itself.
type mappingFile struct {
	Settings map[string]any             `json:"settings"`
	Mappings json.RawMessage            `json:"mappings"`
	Aliases  map[string]json.RawMessage `json:"aliases"`
}

// parseMappingFile splits the content of a user's mapping file.
func parseMappingFile(raw json.RawMessage) (mappingFile, error) {
	var body mappingFile
	if err := json.Unmarshal(raw, &body); err != nil {
		return mappingFile{}, core.WrapError(core.CodeInvalid, "the mapping file is not understood", err)
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
		return nil, core.WrapError(core.CodeInvalid, "the mapping file is not understood", err)
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

// withOwnFields gives a user's mapping with what tutti itself adds to documents, where it does not say what that is. All else stays as it
// is written.
func withOwnFields(raw json.RawMessage, known *mapping.Field) (json.RawMessage, error) {
	tree, err := mapping.Parse(raw)
	if err != nil {
		return raw, nil // the cluster takes mappings that are not understood here, and tells what is wrong with others
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
	for _, part := range []json.RawMessage{raw, added} { // the fields of both end up in one map
		if err := errors.Join(json.Unmarshal(part, &fields), json.Unmarshal(raw, &given)); err != nil {
			return nil, core.WrapError(core.CodeInvalid, "the mapping file is not understood", err)
		}
	}
	if given["properties"], err = json.Marshal(fields.Properties); err == nil {
		raw, err = json.Marshal(given)
	}
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the mapping file is not understood", err)
	}
	return raw, nil
}

// flattenSettings writes settings into out under their full names, so that one written in another of its forms
// ({"index":{"number_of_shards":2}}) replaces the default instead of standing beside it.
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
		// Another process may have given a field another type between reading and adding; then it is not missing.
		if typeOf(err) == typeIllegalArgument && round+1 < maxGrowRounds {
			continue
		}
		return err
	}
}

// putUserMapping puts the user's mapping, which an existing index must not contradict.
func (x *Index) putUserMapping(ctx context.Context, st *aliasState, spec index.Spec) error {
	body, err := parseMappingFile(spec.Mapping)
	if err != nil {
		return err
	}
	st.tree.Store(nil)
	err = x.putRawMapping(ctx, spec.Alias, body.Mappings)
	if typeOf(err) == typeIllegalArgument {
		return &core.Error{
			Code: core.CodeConflict, Message: "the mapping file contradicts the mapping of " + spec.Alias,
			Hint: "rebuild the repository's index, which makes a new one with the mapping file", Err: err,
		}
	}
	if err != nil || spec.Known == nil {
		return err
	}
	return x.addOwnFields(ctx, st, spec)
}

// addOwnFields adds what tutti itself adds to documents, where the index says nothing about it by now.
func (x *Index) addOwnFields(ctx context.Context, st *aliasState, spec index.Spec) error {
	raw, err := x.fetchMapping(ctx, spec.Alias)
	if err != nil {
		return err
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		return nil // the cluster takes mappings that are not understood here
	}
	err = x.addFields(ctx, st, spec.Alias, tree, mapping.MissingOwn(tree, spec.Known))
	if typeOf(err) == typeIllegalArgument { // a document was faster, or the index has as many fields as it may
		x.logger.Warn("the repositories of documents could not be added to the mapping", "index", spec.Alias, "err", err)
		return nil
	}
	return err
}
