package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
	"tutti/internal/jsontext"
)

// Get returns one document as last written, even before a Refresh; false when it is absent. The id is sent in the body, as a path
// cannot contain every id.
func (x *Index) Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error) {
	end, err := x.client.Begin(alias)
	if err != nil {
		return core.StoredDocument{}, false, err
	}
	defer end()
	body := append(jsontext.AppendRawString([]byte(`{"ids":[`), id), "]}"...)
	reply, err := x.client.Do(ctx, esapi.MgetRequest{Index: alias, Body: bytes.NewReader(body)}, nil)
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
	if err := reply.Decode(&answer); err != nil {
		return core.StoredDocument{}, false, err
	}
	if len(answer.Docs) != 1 {
		return core.StoredDocument{}, false, core.NewError(core.CodeUnavailable, "the response of the index is incomplete")
	}
	doc := answer.Docs[0]
	if doc.Error != nil {
		return core.StoredDocument{}, false, transport.DocumentError(doc.Error)
	}
	if !doc.Found {
		return core.StoredDocument{}, false, nil
	}
	return core.StoredDocument{ID: id, Version: doc.Version, Source: rawSource(reply.Body, doc.Source)}, true, nil
}

// rawSource returns a document with its surrounding white space, which decoding drops. It is the last member in the response
// about one document, and written as it was stored.
func rawSource(body, source []byte) []byte {
	_, rest, found := bytes.Cut(body, []byte(`"_source":`)) // cannot occur in a string, where quotes are escaped
	rest, ends := bytes.CutSuffix(bytes.TrimRight(rest, "\r\n"), []byte("}]}"))
	if found && ends && bytes.Contains(rest, source) && len(bytes.TrimSpace(rest)) == len(source) {
		return rest
	}
	return source
}

// Count returns the number of documents in scope as of the last Refresh.
func (x *Index) Count(ctx context.Context, alias string, scope core.IndexScope) (int64, error) {
	end, err := x.client.Begin(alias)
	if err != nil {
		return 0, err
	}
	defer end()
	query, err := x.scopeQuery(ctx, alias, scope)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(object{"query": query})
	if err != nil {
		return 0, core.WrapError(core.CodeInternal, "the count cannot be encoded", err)
	}
	reply, err := x.client.Do(ctx, esapi.CountRequest{Index: []string{alias}, Body: bytes.NewReader(body)}, nil)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Count *int64 `json:"count"`
	}
	if err := reply.Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Count == nil {
		return 0, core.NewError(core.CodeUnavailable, "the response of the index has no count")
	}
	return *answer.Count, reply.CheckShards(alias)
}

// Mapping returns the alias' mapping, merged from all indices if the name is an alias or data stream of several.
func (x *Index) Mapping(ctx context.Context, alias string) (json.RawMessage, error) {
	end, err := x.client.Begin(alias)
	if err != nil {
		return nil, err
	}
	defer end()
	all, err := x.fetchMappings(ctx, alias)
	if err != nil {
		return nil, err
	}
	return mergeMappings(alias, all)
}

// mergeMappings merges mappings by index name. Of parameters that differ it keeps those of the index whose name sorts last, the
// newest of a series. It omits fields with an empty part in their path, which cannot be referenced.
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
			return nil, core.WrapError(core.CodeUnsupported, "the mapping of "+alias+" cannot be parsed", err)
		}
		if whole, err = mapping.Unite(whole, tree); err != nil {
			return nil, err
		}
	}
	return whole.Render()
}

// fetchMapping returns the mapping of the alias' only index.
func (x *Index) fetchMapping(ctx context.Context, alias string) (json.RawMessage, error) {
	all, err := x.fetchMappings(ctx, alias)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, core.NewError(core.CodeConflict, "the alias "+alias+" has more than one index")
	}
	return mergeMappings(alias, all)
}

// fetchMappings returns the mappings of the alias' indices by their names, at least one.
func (x *Index) fetchMappings(ctx context.Context, alias string) (map[string]json.RawMessage, error) {
	reply, err := x.client.Do(ctx, esapi.IndicesGetMappingRequest{Index: []string{alias}}, nil)
	if err != nil {
		return nil, err
	}
	var answer map[string]struct {
		Mappings json.RawMessage `json:"mappings"`
	}
	if err := reply.Decode(&answer); err != nil {
		return nil, err
	}
	all := make(map[string]json.RawMessage, len(answer))
	for name, physical := range answer {
		if physical.Mappings != nil {
			all[name] = physical.Mappings
		}
	}
	if len(all) == 0 || len(all) < len(answer) {
		return nil, core.NewError(core.CodeUnavailable, "the index returned an unexpected response")
	}
	return all, nil
}

// fetchTree returns the parsed mapping of alias.
func (x *Index) fetchTree(ctx context.Context, alias string) (*mapping.Field, error) {
	raw, err := x.fetchMapping(ctx, alias)
	if err != nil {
		return nil, err
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the mapping of "+alias+" cannot be parsed", err)
	}
	return tree, nil
}
