package mappingfile

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// File is the content of a mapping file. The zero value is that of no file.
type File struct {
	// Settings are the settings of the index by their full names, such as index.number_of_shards. Lists and numbers are as in JSON.
	Settings map[string]any
	// Aliases are the aliases that the index gets besides tutti's own. Those of templates are not used.
	Aliases map[string]json.RawMessage
	// Unused are the members of the file that nothing uses, such as index_patterns, in the order of the file's parts.
	Unused []string
	// Raw is the mapping as it stands in the file, without a type level; nil without one.
	Raw json.RawMessage
	// tree is Raw parsed, nil if only an engine can judge it.
	tree *mapping.Field
}

// Parse reads a mapping file, nil for none: a mapping ({"properties":…}), the body that creates an index, a composable or component
// template, or a template of the form before them. The mapping may be below the name of a type. CodeInvalid for anything else.
func Parse(raw json.RawMessage) (File, error) {
	if raw == nil {
		return File{}, nil
	}
	members, err := object("the mapping file", raw)
	if err != nil {
		return File{}, err
	}
	var f File
	switch inner, template := members["template"]; {
	case template:
		below, err := object("template", inner)
		if err != nil {
			return File{}, err
		}
		f.unused("", members, "template")
		err = f.body(below, "template.", true)
		return f, err
	case isBody(members):
		_, legacy := members["index_patterns"]
		err = f.body(members, "", legacy)
		return f, err
	default:
		err = f.mapping(raw)
		return f, err
	}
}

// isBody reports whether the members are those of a body that creates an index, not of a mapping.
func isBody(members map[string]json.RawMessage) bool {
	_, mappings := members["mappings"]
	for name := range members {
		if !mappings && rootParameter(name) {
			return false
		}
	}
	for _, name := range []string{"mappings", "settings", "aliases", "index_patterns"} {
		if _, has := members[name]; has {
			return true
		}
	}
	return false
}

// body reads the part of a file that describes an index. at is its path, template whether it is that of a template.
func (f *File) body(members map[string]json.RawMessage, at string, template bool) error {
	used := []string{"settings", "mappings"}
	if !template {
		used = append(used, "aliases")
	}
	f.unused(at, members, used...)
	f.Settings = map[string]any{}
	if raw, has := members["settings"]; has {
		var settings map[string]any
		if err := json.Unmarshal(raw, &settings); err != nil {
			return core.WrapError(core.CodeInvalid, "the member settings of the mapping file is not a JSON object", err)
		}
		flatten(f.Settings, "", settings)
	}
	if raw, has := members["aliases"]; has && !template {
		aliases, err := object("aliases", raw)
		if err != nil {
			return err
		}
		f.Aliases = aliases
	}
	raw, has := members["mappings"]
	if !has {
		raw = json.RawMessage(`{}`)
	}
	return f.mapping(raw)
}

// unused adds all members but those used.
func (f *File) unused(at string, members map[string]json.RawMessage, used ...string) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(used, name) {
			f.Unused = append(f.Unused, at+name)
		}
	}
}

// mapping reads a mapping, which may be below the name of a type.
func (f *File) mapping(raw json.RawMessage) error {
	members, err := object("the mapping", raw)
	if err != nil {
		return err
	}
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(members)), func(name string) bool {
		return rootParameter(name) || strings.HasPrefix(name, "_") && name != "_doc"
	})
	if len(unknown) == 1 && len(members) == 1 {
		inner, err := object("the mapping", members[unknown[0]])
		if err == nil && len(inner) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(inner)), func(name string) bool {
			return !rootParameter(name) && !strings.HasPrefix(name, "_")
		}) {
			f.Unused = append(f.Unused, "the type level "+strconv.Quote(unknown[0]))
			raw, members, unknown = members[unknown[0]], inner, nil
		}
	}
	if len(unknown) > 0 {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the mapping file has an unknown member " + strconv.Quote(unknown[0]) + " beside the properties of the mapping",
			Hint: "fields belong below properties; one type level with properties below it is read",
		}
	}
	for _, name := range []string{"dynamic_templates", "dynamic_date_formats", "date_detection", "numeric_detection"} {
		if _, has := members[name]; has { // only an engine that adds fields by itself reads them
			f.Unused = append(f.Unused, name)
		}
	}
	f.Raw = raw
	f.tree, err = mapping.ParseFile(raw)
	if core.CodeOf(err) == core.CodeUnsupported {
		return nil
	}
	return err
}

// rootParameter reports whether a name is that of a parameter of a mapping's root.
func rootParameter(name string) bool {
	switch name {
	case "properties", "dynamic", "dynamic_templates", "dynamic_date_formats", "date_detection", "numeric_detection", "enabled", "subobjects",
		"runtime", "type", "include_in_all":
		return true
	default:
		return false
	}
}

func object(what string, raw json.RawMessage) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, core.WrapError(core.CodeInvalid, what+" is not a JSON object", err)
	}
	return members, nil
}

// flatten writes settings into out under their full names, so that a setting in nested form ({"index":{"number_of_shards":2}})
// replaces the default instead of duplicating it.
func flatten(out map[string]any, prefix string, settings map[string]any) {
	for name, value := range settings {
		full := prefix + name
		if inner, ok := value.(map[string]any); ok {
			flatten(out, full+".", inner)
			continue
		}
		if !strings.HasPrefix(full, "index.") {
			full = "index." + full
		}
		out[full] = value
	}
}
