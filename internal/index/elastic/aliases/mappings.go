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

// Mapping returns the mapping of the index behind alias, CodeConflict if alias has several indices.
func (m *Aliases) Mapping(ctx context.Context, alias string) (json.RawMessage, error) {
	all, err := m.Mappings(ctx, alias)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, SeveralIndices(alias, slices.Sorted(maps.Keys(all)))
	}
	return MergeMappings(alias, all)
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
	return all, nil
}

// MappingTree returns the parsed mapping of alias.
func (m *Aliases) MappingTree(ctx context.Context, alias string) (*mapping.Field, error) {
	raw, err := m.Mapping(ctx, alias)
	if err != nil {
		return nil, err
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the mapping of "+alias+" cannot be parsed", err)
	}
	return tree, nil
}

// AddFields adds the fields of added to the mapping of alias, and stores the result in st. tree is the mapping before.
func (m *Aliases) AddFields(ctx context.Context, st *Alias, alias string, tree, added *mapping.Field) error {
	if added.Empty() {
		return nil
	}
	// Other parameters of the root are not sent and stay unchanged.
	body, err := (&mapping.Field{Type: mapping.Object, Properties: added.Properties}).Render()
	if err != nil {
		return err
	}
	if err := m.PutMapping(ctx, alias, body); err != nil {
		return err
	}
	grown, err := mapping.Merge(tree, added)
	if err != nil {
		return core.WrapError(core.CodeInternal, "the mapping of "+alias+" cannot be extended", err)
	}
	st.Tree.Store(grown)
	m.logger.Info("fields added to the mapping", "index", alias, "fields", fieldNames(added))
	return nil
}

// PutMapping adds the fields of body, a mapping as JSON, to the mapping of alias.
func (m *Aliases) PutMapping(ctx context.Context, alias string, body json.RawMessage) error {
	body, err := m.TranslateMapping(ctx, body)
	if err != nil {
		return err
	}
	_, err = m.client.Do(ctx, esapi.IndicesPutMappingRequest{Index: []string{alias}, Body: bytes.NewReader(body)}, nil)
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
