package flavour

import (
	"bytes"
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/index/mapping"
)

// TranslateMapping returns a mapping in JSON with the engine's type for free-form objects instead of flattened. The parameters of such a
// field are omitted, as OpenSearch accepts none.
func (f *Flavour) TranslateMapping(raw json.RawMessage) (json.RawMessage, error) {
	if f.FreeForm == mapping.Flattened || !HasFreeForm(raw) {
		return raw, nil
	}
	return rewrite(raw, func(field map[string]any) map[string]any {
		if field["type"] == string(mapping.Flattened) {
			return map[string]any{"type": f.FreeForm}
		}
		return field
	})
}

// Countable returns a mapping of an index in JSON in which the fields of a type with fieldtype.Miscounted have no values by document
// ("doc_values": false), whatever the index says: clients must use them for filters only.
func (e Engine) Countable(raw json.RawMessage) (json.RawMessage, error) {
	return rewrite(raw, func(field map[string]any) map[string]any {
		if name, _ := field["type"].(string); e.Faulty(name, fieldtype.Miscounted) {
			field["doc_values"] = false
		}
		return field
	})
}

// MayMiscount reports whether a mapping may have fields that Countable changes.
func MayMiscount(raw json.RawMessage) bool {
	return len(fieldtype.Names(func(t *fieldtype.Type) bool {
		return t.Fault(fieldtype.OpenSearch, fieldtype.Miscounted) != nil && bytes.Contains(raw, []byte(`"`+t.Name+`"`))
	})) > 0
}

// HasFreeForm reports whether a mapping may have fields that TranslateMapping changes.
func HasFreeForm(raw json.RawMessage) bool {
	return bytes.Contains(raw, []byte(`"`+mapping.Flattened+`"`))
}

// rewrite replaces all fields of a mapping in JSON below the root.
func rewrite(raw json.RawMessage, replace func(field map[string]any) map[string]any) (json.RawMessage, error) {
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the mapping cannot be parsed", err)
	}
	rewriteFields(tree, replace)
	out, err := json.Marshal(tree)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the mapping cannot be encoded", err)
	}
	return out, nil
}

// rewriteFields replaces the fields below a field.
func rewriteFields(field map[string]any, replace func(map[string]any) map[string]any) {
	for _, group := range []string{"properties", "fields"} {
		children, _ := field[group].(map[string]any)
		for name, child := range children {
			if below, is := child.(map[string]any); is {
				below = replace(below)
				children[name] = below
				rewriteFields(below, replace)
			}
		}
	}
}
