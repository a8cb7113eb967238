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

// Parse parses an Elasticsearch mapping: the mapping itself ({"properties":…}) or an object that has it as the member "mappings",
// such as the body that creates an index. CodeInvalid when it is not a mapping.
func Parse(raw []byte) (*Field, error) {
	p := parser{untyped: Object}
	return p.root(raw)
}

// ParseForeign parses the mapping of an index that is only searched and may have been created by another program. Unlike Parse, whose
// trees are used to check documents, it accepts fields below a value (subobjects: false) and below an object of a type unknown to tutti,
// such as passthrough: they become the Properties of that field, although it is not a Container. It omits fields that cannot be addressed
// by a path, because their names have an empty segment, as subobjects: false allows, and returns these names as unnamed. CodeInvalid when
// raw is not a mapping.
func ParseForeign(raw []byte) (tree *Field, unnamed []string, err error) {
	p := parser{foreign: true, untyped: Object}
	tree, err = p.root(raw)
	return tree, p.unnamed, err
}

// ParseFile parses a mapping that a user has written. Objects without a type have the Type "", which stands for Object unless Override
// finds another one. CodeInvalid when raw is not a mapping, CodeUnsupported for one that only an engine can judge: with fields below a value.
func ParseFile(raw []byte) (*Field, error) {
	p := parser{untyped: Untyped}
	return p.root(raw)
}

// parser is the state of Parse, of ParseForeign if foreign is set, or of ParseFile, which has another type for objects without one.
type parser struct {
	foreign bool
	untyped Type
	unnamed []string
}

func (p *parser) root(raw []byte) (*Field, error) {
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
	return p.field("", members)
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

func (p *parser) field(path string, members map[string]json.RawMessage) (*Field, error) {
	f := &Field{Type: p.untyped}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var err error
		raw := members[name]
		switch name {
		case "type":
			err = p.parseType(path, raw, f)
		case "dynamic":
			f.Dynamic = strings.Trim(string(bytes.TrimSpace(raw)), `"`)
		case "properties":
			f.Properties, err = p.fields(path, raw)
		case "fields":
			f.Fields, err = p.fields(path, raw)
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
	if !p.foreign && !f.Container() && len(f.Properties) > 0 {
		code := core.CodeInvalid
		if p.untyped == Untyped { // of a type of objects that only the engine knows
			code = core.CodeUnsupported
		}
		return nil, core.NewError(code, parseMessage(path, "has properties but is not an object"))
	}
	return f, nil
}

func (p *parser) parseType(path string, raw json.RawMessage, f *Field) error {
	var name string
	if err := json.Unmarshal(raw, &name); err != nil || name == "" {
		return core.WrapError(core.CodeInvalid, parseMessage(path, "has a type that is not a name"), err)
	}
	f.Type = Type(name)
	if f.Type == FlatObject && !p.foreign {
		f.Type = Flattened
	}
	return nil
}

func compact(raw json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the mapping is not JSON", err)
	}
	return out.Bytes(), nil
}

func (p *parser) fields(path string, raw json.RawMessage) (map[string]*Field, error) {
	members, err := parseMembers(path, raw)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*Field, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) { // a value precedes the fields below it
		below, err := parseMembers(join(path, name), members[name])
		if err != nil {
			return nil, err
		}
		child, err := p.field(join(path, name), below)
		if err != nil {
			return nil, err
		}
		if err := p.insert(path, out, name, child); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// insert adds child under a name whose dots separate objects or, in a foreign mapping, values.
func (p *parser) insert(path string, into map[string]*Field, name string, child *Field) error {
	whole, segments := join(path, name), strings.Split(name, ".")
	if slices.Contains(segments, "") {
		if p.foreign {
			p.unnamed = append(p.unnamed, whole)
			return nil
		}
		return core.NewError(core.CodeInvalid, parseMessage(whole, "has an empty name"))
	}
	last := len(segments) - 1
	for _, segment := range segments[:last] {
		path = join(path, segment)
		above := into[segment]
		if above == nil {
			above = &Field{Type: p.untyped}
			into[segment] = above
		}
		if !p.foreign && !above.Container() {
			return core.NewError(core.CodeUnsupported, parseMessage(path, "has both a value and fields (subobjects: false)"))
		}
		if above.Properties == nil {
			above.Properties = map[string]*Field{}
		}
		into = above.Properties
	}
	if old := into[segments[last]]; old != nil {
		merged, err := merge(whole, old, child)
		if err != nil {
			return core.WrapError(core.CodeInvalid, parseMessage(whole, "is defined twice"), err)
		}
		child = merged
	}
	into[segments[last]] = child
	return nil
}
