package admin

import (
	"encoding/json"
	"errors"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

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
