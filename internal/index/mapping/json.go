package mapping

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// Parse parses an Elasticsearch mapping: the mapping itself ({"properties":…}) or an object that has it as the member "mappings",
// such as the body that creates an index. CodeInvalid when it is not a mapping.
func Parse(raw []byte) (*Field, error) {
	members, err := parseMembers("", raw)
	if err != nil {
		return nil, err
	}
	if inner, ok := members["mappings"]; ok {
		if members, err = parseMembers("", inner); err != nil {
			return nil, err
		}
	}
	if _, ok := members["type"]; ok {
		return nil, core.NewError(core.CodeInvalid, "the mapping's root must be an object without a type")
	}
	return parseField("", members)
}

func parseMembers(path string, raw []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, core.WrapError(core.CodeInvalid, parseMessage(path, "is not a JSON object"), err)
	}
	return members, nil
}

func parseMessage(path, detail string) string {
	if path == "" {
		return "the mapping " + detail
	}
	return fmt.Sprintf("the mapping's field %q %s", path, detail)
}

func parseField(path string, members map[string]json.RawMessage) (*Field, error) {
	f := &Field{Type: Object}
	for name, raw := range members {
		var err error
		switch name {
		case "type":
			err = parseType(path, raw, f)
		case "dynamic":
			f.Dynamic = strings.Trim(string(bytes.TrimSpace(raw)), `"`)
		case "properties":
			f.Properties, err = parseFields(path, raw)
		case "fields":
			f.Fields, err = parseFields(path, raw)
		default:
			if f.Params == nil {
				f.Params = map[string]json.RawMessage{}
			}
			f.Params[name], err = compact(raw)
		}
		if err != nil {
			return nil, err
		}
	}
	if !f.Container() && len(f.Properties) > 0 {
		return nil, core.NewError(core.CodeInvalid, parseMessage(path, "has properties but is not an object"))
	}
	return f, nil
}

func parseType(path string, raw json.RawMessage, f *Field) error {
	var name string
	if err := json.Unmarshal(raw, &name); err != nil || name == "" {
		return core.WrapError(core.CodeInvalid, parseMessage(path, "has a type that is not a name"), err)
	}
	f.Type = Type(name)
	return nil
}

func compact(raw json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the mapping is not JSON", err)
	}
	return out.Bytes(), nil
}

func parseFields(path string, raw json.RawMessage) (map[string]*Field, error) {
	members, err := parseMembers(path, raw)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*Field, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		below, err := parseMembers(join(path, name), members[name])
		if err != nil {
			return nil, err
		}
		child, err := parseField(join(path, name), below)
		if err != nil {
			return nil, err
		}
		if err := insert(path, out, name, child); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// insert adds child under a name whose dots separate objects.
func insert(path string, into map[string]*Field, name string, child *Field) error {
	first, rest, dotted := strings.Cut(name, ".")
	if first == "" || dotted && rest == "" {
		return core.NewError(core.CodeInvalid, parseMessage(join(path, name), "has an empty name"))
	}
	old := into[first]
	if !dotted {
		if old == nil {
			into[first] = child
			return nil
		}
		merged, err := merge(join(path, first), old, child)
		if err != nil {
			return core.WrapError(core.CodeInvalid, parseMessage(join(path, first), "is defined twice"), err)
		}
		into[first] = merged
		return nil
	}
	if old == nil {
		old = &Field{Type: Object}
		into[first] = old
	}
	if !old.Container() {
		return core.NewError(core.CodeUnsupported,
			parseMessage(join(path, first), "has both a value and fields (subobjects: false)"))
	}
	if old.Properties == nil {
		old.Properties = map[string]*Field{}
	}
	return insert(join(path, first), old.Properties, rest, child)
}
