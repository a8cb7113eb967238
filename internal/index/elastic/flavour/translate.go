package flavour

import (
	"bytes"
	"encoding/json"
	"fmt"

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
	return rewrite(raw, func(field map[string]any, _ string, _ bool) map[string]any {
		if field["type"] == string(mapping.Flattened) {
			return map[string]any{"type": f.FreeForm}
		}
		return field
	})
}

// Countable returns a mapping of an index in JSON in which the fields of a type with fieldtype.Miscounted have no values by document
// ("doc_values": false), whatever the index says: clients must use them for filters only. Without such values the engine compares those at
// the field's path in the document's root, and finds nothing in a nested object and by a value that copy_to has added: such a field also
// has "index": false.
func (e Engine) Countable(raw json.RawMessage) (json.RawMessage, error) {
	copied := map[string]bool{}
	if _, err := rewrite(raw, func(field map[string]any, _ string, _ bool) map[string]any {
		targets, list := field["copy_to"].([]any)
		if !list {
			targets = []any{field["copy_to"]}
		}
		for _, target := range targets {
			name, _ := target.(string)
			copied[name] = true
		}
		return field
	}); err != nil {
		return nil, err
	}
	return rewrite(raw, func(field map[string]any, path string, nested bool) map[string]any {
		if name, _ := field["type"].(string); e.Faulty(name, fieldtype.Miscounted) {
			if (nested || copied[path]) && fmt.Sprint(field["doc_values"]) != "true" {
				field["index"] = false
			}
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

// replacement returns what replaces a field at a path, which may be in a nested object.
type replacement func(field map[string]any, path string, nested bool) map[string]any

// rewrite replaces all fields of a mapping in JSON below the root.
func rewrite(raw json.RawMessage, replace replacement) (json.RawMessage, error) {
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the mapping cannot be parsed", err)
	}
	rewriteFields(tree, "", false, replace)
	out, err := json.Marshal(tree)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "the mapping cannot be encoded", err)
	}
	return out, nil
}

// rewriteFields replaces the fields below a field, whose path ends with a dot.
func rewriteFields(field map[string]any, path string, nested bool, replace replacement) {
	nested = nested || field["type"] == string(mapping.Nested)
	for _, group := range []string{"properties", "fields"} {
		children, _ := field[group].(map[string]any)
		for name, child := range children {
			if below, is := child.(map[string]any); is {
				below = replace(below, path+name, nested)
				children[name] = below
				rewriteFields(below, path+name+".", nested, replace)
			}
		}
	}
}
