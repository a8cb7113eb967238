package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// Get gives one document as last written, also before a Refresh; false when it is absent. It asks by body, not by
// path: an id may hold anything.
func (x *Index) Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error) {
	leave, err := x.begin(alias)
	if err != nil {
		return core.StoredDocument{}, false, err
	}
	defer leave()
	body := append(appendString([]byte(`{"ids":[`), id), "]}"...)
	reply, err := x.client.do(ctx, esapi.MgetRequest{Index: alias, Body: bytes.NewReader(body)}, nil)
	if err != nil {
		return core.StoredDocument{}, false, err
	}
	var answer struct {
		Docs []struct {
			Version core.Version    `json:"_version"`
			Found   bool            `json:"found"`
			Source  json.RawMessage `json:"_source"`
			Error   json.RawMessage `json:"error"`
		} `json:"docs"`
	}
	if err := reply.decode(&answer); err != nil {
		return core.StoredDocument{}, false, err
	}
	if len(answer.Docs) != 1 {
		return core.StoredDocument{}, false, core.NewError(core.CodeUnavailable, "the answer of the index is short")
	}
	doc := answer.Docs[0]
	if doc.Error != nil {
		return core.StoredDocument{}, false, documentError(doc.Error)
	}
	if !doc.Found {
		return core.StoredDocument{}, false, nil
	}
	return core.StoredDocument{ID: id, Version: doc.Version, Source: rawSource(reply.body, doc.Source)}, true, nil
}

// rawSource gives a document with the spaces around it, which decoding drops: it is the last thing in the answer
// about one document, written as it was stored.
func rawSource(body, source []byte) []byte {
	_, rest, found := bytes.Cut(body, []byte(`"_source":`)) // cannot stand in a string: its quotes would be escaped
	rest, ends := bytes.CutSuffix(bytes.TrimRight(rest, "\r\n"), []byte("}]}"))
	if found && ends && bytes.Contains(rest, source) && len(bytes.TrimSpace(rest)) == len(source) {
		return rest
	}
	return source
}

// documentError is the error of one document of a multi-get, whose answer is a 200 all the same.
func documentError(raw json.RawMessage) error {
	f := &responseError{status: http.StatusOK}
	if err := json.Unmarshal(raw, &f.engineError); err != nil {
		return core.WrapError(core.CodeUnavailable, "the answer of the index cannot be read", err)
	}
	code, message := classify(f)
	return core.WrapError(code, message, f)
}

// Count gives the number of documents in scope as of the last Refresh.
func (x *Index) Count(ctx context.Context, alias string, scope core.IndexScope) (int64, error) {
	leave, err := x.begin(alias)
	if err != nil {
		return 0, err
	}
	defer leave()
	query, err := x.scopeQuery(ctx, alias, scope)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(object{"query": query})
	if err != nil {
		return 0, core.WrapError(core.CodeInternal, "the count cannot be encoded", err)
	}
	reply, err := x.client.do(ctx, esapi.CountRequest{Index: []string{alias}, Body: bytes.NewReader(body)}, nil)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Count *int64 `json:"count"`
	}
	if err := reply.decode(&answer); err != nil {
		return 0, err
	}
	if answer.Count == nil {
		return 0, core.NewError(core.CodeUnavailable, "the answer of the index holds no count")
	}
	return *answer.Count, reply.checkShards(alias)
}

// Mapping gives the alias' mapping as the cluster has it now: that of its index, or all of them in one where the alias, or
// a data stream of that name, stands for several.
func (x *Index) Mapping(ctx context.Context, alias string) (json.RawMessage, error) {
	if alias == "" {
		return nil, core.NewError(core.CodeInvalid, "the index has no name")
	}
	leave, err := x.begin(alias)
	if err != nil {
		return nil, err
	}
	defer leave()
	all, err := x.fetchMappings(ctx, alias)
	if err != nil {
		return nil, err
	}
	return mergeMappings(alias, all)
}

// mergeMappings gives one mapping with the fields of all. Parameters that differ are those of the index whose name comes last,
// which is the newest of a series. Fields of which a part of the name is empty, that no path can name, are left out.
func mergeMappings(alias string, all map[string]json.RawMessage) (json.RawMessage, error) {
	if len(all) == 1 {
		for _, only := range all {
			return only, nil
		}
	}
	var whole *mapping.Field
	for _, name := range slices.Sorted(maps.Keys(all)) {
		tree, _, err := mapping.ParseForeign(all[name])
		if err != nil {
			return nil, core.WrapError(core.CodeUnsupported, "the mapping of "+alias+" cannot be understood", err)
		}
		if whole, err = mapping.Unite(whole, tree); err != nil {
			return nil, err
		}
	}
	return whole.Render()
}

// fetchMapping gives the mapping of the one index that takes the alias' writes.
func (x *Index) fetchMapping(ctx context.Context, alias string) (json.RawMessage, error) {
	all, err := x.fetchMappings(ctx, alias)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, core.NewError(core.CodeConflict, "the alias "+alias+" stands for more than one index")
	}
	return mergeMappings(alias, all)
}

// fetchMappings gives the mapping of each index that alias stands for, by the index' name; one at least.
func (x *Index) fetchMappings(ctx context.Context, alias string) (map[string]json.RawMessage, error) {
	reply, err := x.client.do(ctx, esapi.IndicesGetMappingRequest{Index: []string{alias}}, nil)
	if err != nil {
		return nil, err
	}
	var answer map[string]struct {
		Mappings json.RawMessage `json:"mappings"`
	}
	if err := reply.decode(&answer); err != nil {
		return nil, err
	}
	all := make(map[string]json.RawMessage, len(answer))
	for name, physical := range answer {
		if physical.Mappings != nil {
			all[name] = physical.Mappings
		}
	}
	if len(all) == 0 || len(all) < len(answer) {
		return nil, core.NewError(core.CodeUnavailable, "the answer of the index is not what was asked for")
	}
	return all, nil
}

// fetchTree gives the alias' mapping as a tree.
func (x *Index) fetchTree(ctx context.Context, alias string) (*mapping.Field, error) {
	raw, err := x.fetchMapping(ctx, alias)
	if err != nil {
		return nil, err
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the mapping of "+alias+" cannot be understood", err)
	}
	return tree, nil
}
