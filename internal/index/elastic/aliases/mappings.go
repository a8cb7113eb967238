package aliases

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
)

// maxLoggedFields limits the field names in one log message.
const maxLoggedFields = 20

// MergeMappings merges mappings by index name. Where parameters differ, the index whose name sorts last wins; in a series of indices
// that is the newest. It omits fields with an empty part in their path, which cannot be referenced.
func MergeMappings(alias string, all map[string]json.RawMessage) (json.RawMessage, error) {
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

// Index returns the name of the index behind alias and its mapping, CodeConflict if alias has several indices.
func (m *Aliases) Index(ctx context.Context, alias string) (name string, raw json.RawMessage, err error) {
	all, err := m.Mappings(ctx, alias)
	if err != nil {
		return "", nil, err
	}
	if len(all) != 1 {
		return "", nil, SeveralIndices(alias, slices.Sorted(maps.Keys(all)))
	}
	for name, raw = range all {
	}
	return name, raw, nil
}

// Mappings returns the mappings of the alias' indices by their names, at least one.
func (m *Aliases) Mappings(ctx context.Context, alias string) (map[string]json.RawMessage, error) {
	var answer map[string]struct {
		Mappings json.RawMessage `json:"mappings"`
	}
	if err := m.client.Fetch(ctx, esapi.IndicesGetMappingRequest{Index: []string{alias}}, &answer); err != nil {
		return nil, err
	}
	all := make(map[string]json.RawMessage, len(answer))
	for name, physical := range answer {
		if physical.Mappings != nil {
			all[name] = physical.Mappings
		}
	}
	if len(all) == 0 || len(all) < len(answer) {
		return nil, transport.UnexpectedResponse()
	}
	if len(all) == 1 {
		for name := range all {
			m.seeIndex(alias, name)
		}
	}
	return all, nil
}

// Read returns the index behind alias with its parsed mapping.
func (m *Aliases) Read(ctx context.Context, alias string) (*Seen, error) {
	name, raw, err := m.Index(ctx, alias)
	if err != nil {
		return nil, err
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the mapping of "+alias+" cannot be parsed", err)
	}
	return &Seen{Index: name, Tree: tree}, nil
}

// AddFields adds the fields of added to the mapping of the index that was seen behind alias, stores the result in st, and returns it. Another index that the alias has since stays as it is: its fields may have been decided otherwise.
func (m *Aliases) AddFields(ctx context.Context, st *Alias, alias string, seen *Seen, added *mapping.Field) (*Seen, error) {
	if added.Empty() {
		return seen, nil
	}
	// Other parameters of the root are not sent and stay unchanged.
	body, err := (&mapping.Field{Type: mapping.Object, Properties: added.Properties}).Render()
	if err != nil {
		return nil, err
	}
	if err := m.putMapping(ctx, alias, target(alias, seen.Index), body); err != nil {
		return nil, err
	}
	grown, err := mapping.Merge(seen.Tree, added)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the mapping of "+alias+" cannot be extended", err)
	}
	now := &Seen{Index: seen.Index, Tree: grown}
	st.Update(now)
	m.logger.Info("fields added to the mapping", "index", alias, "fields", fieldNames(added))
	return now, nil
}

// target returns what a mapping is put to: the index, or alias if a role with the documented rights may not change the index. Only tutti's own
// indices, whose names begin with that of the alias, take the places of each other while documents are written.
func target(alias, index string) string {
	if strings.HasPrefix(index, strings.TrimSuffix(alias, core.NextSuffix)+"-") {
		return index
	}
	return alias
}

// PutMapping adds the fields of body, a mapping as JSON, to the mapping of alias.
func (m *Aliases) PutMapping(ctx context.Context, alias string, body json.RawMessage) error {
	return m.putMapping(ctx, alias, alias, body)
}

func (m *Aliases) putMapping(ctx context.Context, alias, index string, body json.RawMessage) error {
	body, err := m.TranslateMapping(ctx, body)
	if err != nil {
		return err
	}
	_, err = m.client.Do(ctx, esapi.IndicesPutMappingRequest{Index: []string{index}, Body: bytes.NewReader(body)}, nil)
	if err == nil {
		m.Grown(alias)
	}
	return err
}

// TranslateMapping returns a mapping in JSON in the engine's form.
func (m *Aliases) TranslateMapping(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	if !flavour.HasFreeForm(raw) {
		return raw, nil
	}
	engine, err := m.client.Engine(ctx)
	if err != nil {
		return nil, err
	}
	return engine.TranslateMapping(raw)
}

func fieldNames(added *mapping.Field) string {
	var names []string
	for name := range added.All() {
		if len(names) == maxLoggedFields {
			names = append(names, "…")
			break
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
