package document

import (
	"slices"

	"tutti/internal/base/jsontext"
)

// member is a member of a JSON object: its name and its value as JSON, nil for none.
type member struct {
	name  string
	value []byte
}

// object is the members of a JSON object.
type object []member

// parse returns the members of a JSON object, none for another value.
func parse(value []byte) object {
	var o object
	jsontext.Members(value, 0, func(name []byte, _ bool, v jsontext.Span) bool {
		o = append(o, member{name: jsontext.Unescape(name), value: v.Of(value)})
		return true
	})
	return o
}

// get returns the value of a member, nil for none; as in encoding/json, the last one of a name counts.
func (o object) get(name string) []byte {
	for _, m := range slices.Backward(o) {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// text returns the value of a member that is a string, "" for none.
func (o object) text(name string) string {
	raw := o.get(name)
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return jsontext.Unquote(raw)
}

// renamed returns those of the named members that have a value, under new names: names are pairs of an old and
// a new name.
func (o object) renamed(names ...string) object {
	out := make(object, 0, len(names)/2+2)
	for pair := range slices.Chunk(names, 2) {
		if value := o.get(pair[0]); value != nil {
			out = append(out, member{pair[1], value})
		}
	}
	return out
}

// without returns the other members.
func (o object) without(names ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return slices.Contains(names, m.name) })
}

// with returns o with the members of other whose names it does not have.
func (o object) with(other object) object {
	own := o
	for _, m := range other {
		if own.get(m.name) == nil {
			o = append(o, m)
		}
	}
	return o
}

// appendTo appends the object's JSON to dst.
func (o object) appendTo(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsontext.AppendString(dst, m.name), ':')
		dst = append(dst, m.value...)
	}
	return append(dst, '}')
}

// list returns the items of a JSON array; false if value is something else. A missing value and null have none.
func list(value []byte) (items [][]byte, ok bool) {
	if len(value) == 0 || string(value) == "null" {
		return nil, true
	}
	if value[0] != '[' {
		return nil, false
	}
	jsontext.Items(value, jsontext.Span{End: len(value)}, func(item jsontext.Span) bool {
		items = append(items, item.Of(value))
		return true
	})
	return items, true
}

// appendList appends a JSON array of objects to dst.
func appendList(dst []byte, objects []object) []byte {
	dst = append(dst, '[')
	for i, o := range objects {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = o.appendTo(dst)
	}
	return append(dst, ']')
}
