package mapping

import (
	"encoding/json"
	"maps"

	"tutti/internal/core"
)

// MarshalJSON returns f, the root of a tree, as an Elasticsearch mapping ({"dynamic":…,"properties":{…}}). Members are sorted, so
// that equal trees have equal encodings.
func (f *Field) MarshalJSON() ([]byte, error) { return f.render(true) }

// Render is MarshalJSON with a *core.Error.
func (f *Field) Render() (json.RawMessage, error) {
	raw, err := f.render(true)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "rendering the mapping", err)
	}
	return raw, nil
}

func (f *Field) render(root bool) (json.RawMessage, error) {
	if f == nil {
		return json.RawMessage(`{}`), nil
	}
	members := make(map[string]json.RawMessage, len(f.Params)+4)
	maps.Copy(members, f.Params)
	for name, children := range map[string]map[string]*Field{"properties": f.Properties, "fields": f.Fields} {
		if len(children) == 0 {
			continue
		}
		rendered := make(map[string]json.RawMessage, len(children))
		for child, field := range children {
			raw, err := field.render(false)
			if err != nil {
				return nil, err
			}
			rendered[child] = raw
		}
		raw, err := json.Marshal(rendered)
		if err != nil {
			return nil, err
		}
		members[name] = raw
	}
	if f.Dynamic != "" {
		members["dynamic"] = quote(f.Dynamic)
	}
	// Elasticsearch requires the type of an object without fields, and omits it otherwise.
	if f.Type != Object || !root && len(f.Properties) == 0 {
		members["type"] = quote(string(f.Type))
	}
	return json.Marshal(members)
}

// quote returns a word as a JSON string. The word is always valid UTF-8.
func quote(word string) json.RawMessage {
	raw, err := json.Marshal(word)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return raw
}
