package mapping

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tutti/internal/core"
)

// ParseForeign parses the mapping of an index that is only searched, and that others may have created. It accepts what engines
// accept and Parse, whose trees are used to check documents, does not: fields below a value (subobjects: false), and below an
// object of a type unknown to tutti, such as passthrough, become the Properties of that field, although it is not a Container.
// Fields whose names have an empty segment, as subobjects: false allows, cannot be addressed by a path: they are omitted, and
// unnamed returns their names. CodeInvalid when raw is not a mapping.
func ParseForeign(raw []byte) (tree *Field, unnamed []string, err error) {
	members, err := parseMembers("", raw)
	if err != nil {
		return nil, nil, err
	}
	if inner, ok := members["mappings"]; ok {
		if members, err = parseMembers("", inner); err != nil {
			return nil, nil, err
		}
	}
	if _, ok := members["type"]; ok {
		return nil, nil, core.NewError(core.CodeInvalid, "the mapping's root must be an object without a type")
	}
	var p foreignParser
	tree, err = p.field("", members)
	return tree, p.unnamed, err
}

// foreignParser is the state of ParseForeign.
type foreignParser struct {
	unnamed []string
}

func (p *foreignParser) field(path string, members map[string]json.RawMessage) (*Field, error) {
	own := maps.Clone(members)
	delete(own, "properties")
	delete(own, "fields")
	f, err := parseField(path, own)
	if err != nil {
		return nil, err
	}
	if f.Properties, err = p.fields(path, members["properties"]); err != nil {
		return nil, err
	}
	f.Fields, err = p.fields(path, members["fields"])
	return f, err
}

// fields parses the fields below path; raw is nil when there is no such member.
func (p *foreignParser) fields(path string, raw json.RawMessage) (map[string]*Field, error) {
	if raw == nil {
		return nil, nil
	}
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

// insert adds child under a name whose dots separate objects or values.
func (p *foreignParser) insert(path string, into map[string]*Field, name string, child *Field) error {
	segments := strings.Split(name, ".")
	if slices.Contains(segments, "") {
		p.unnamed = append(p.unnamed, join(path, name))
		return nil
	}
	last := segments[len(segments)-1]
	for _, segment := range segments[:len(segments)-1] {
		above := into[segment]
		if above == nil {
			above = &Field{Type: Object}
			into[segment] = above
		}
		if above.Properties == nil {
			above.Properties = map[string]*Field{}
		}
		into = above.Properties
	}
	if old := into[last]; old != nil {
		merged, err := merge(join(path, name), old, child)
		if err != nil {
			return core.WrapError(core.CodeInvalid, parseMessage(join(path, name), "is defined twice"), err)
		}
		child = merged
	}
	into[last] = child
	return nil
}
