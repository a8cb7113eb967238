package flavour

import (
	"bytes"
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// TranslateMapping returns a mapping in JSON with the engine's type for free-form objects instead of flattened. The parameters of such a
// field are omitted, as OpenSearch accepts none.
func (f *Flavour) TranslateMapping(raw json.RawMessage) (json.RawMessage, error) {
	if f.FreeForm == mapping.Flattened || !HasFreeForm(raw) {
		return raw, nil
	}
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the mapping cannot be parsed", err)
	}
	f.translateFields(tree)
	out, err := json.Marshal(tree)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the mapping cannot be encoded", err)
	}
	return out, nil
}

// HasFreeForm reports whether a mapping may have fields that TranslateMapping changes.
func HasFreeForm(raw json.RawMessage) bool {
	return bytes.Contains(raw, []byte(`"`+mapping.Flattened+`"`))
}

// translateFields changes the fields below a field.
func (f *Flavour) translateFields(field map[string]any) {
	for _, group := range []string{"properties", "fields"} {
		children, _ := field[group].(map[string]any)
		for name, child := range children {
			below, _ := child.(map[string]any)
			if below["type"] == string(mapping.Flattened) {
				children[name] = map[string]any{"type": f.FreeForm}
				continue
			}
			f.translateFields(below)
		}
	}
}
