package schemas

import (
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
)

// maxNames bounds the bytes of the pointers to all parts of a value: the library writes each.
const maxNames = 256 << 20

// errTooMuchWork refuses a value that would take too much work. Its text is safe to show.
var errTooMuchWork = errors.New("validating it takes too much work: the names in it are too long")

// kind is the type of a JSON value.
type kind uint8

// Kinds of a value.
const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// value is a JSON value in a tree that keeps the order of members and the text of numbers.
type value struct {
	kind kind
	// from and to are where the value stands in the text.
	from, to uint32
	// text is a string's content, a number's literal, "true" or "false".
	text string
	// parts are those of an array or an object, nil when it is empty.
	parts *parts
}

type parts struct {
	items   []value
	members []member
	// index finds members of a large object.
	index map[string]int
}

type member struct {
	name  string
	value value
}

// indexedFrom is the number of members from which a map finds one faster than a look at each.
const indexedFrom = 16

func (v *value) items() []value {
	if v.parts == nil {
		return nil
	}
	return v.parts.items
}

func (v *value) members() []member {
	if v.parts == nil {
		return nil
	}
	return v.parts.members
}

// member gives the member of an object, nil when there is none.
func (v *value) member(name string) *value {
	if v == nil || v.kind != kindObject || v.parts == nil {
		return nil
	}
	if i := v.parts.find(name); i >= 0 {
		return &v.parts.members[i].value
	}
	return nil
}

func (p *parts) find(name string) int {
	if p.index != nil {
		if i, ok := p.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range p.members {
		if p.members[i].name == name {
			return i
		}
	}
	return -1
}

// add appends a member and reports whether its name is new.
func (p *parts) add(m member) bool {
	if p.find(m.name) >= 0 {
		return false
	}
	p.members = append(p.members, m)
	switch {
	case p.index != nil:
		p.index[m.name] = len(p.members) - 1
	case len(p.members) == indexedFrom:
		p.index = make(map[string]int, 2*indexedFrom)
		for i := range p.members {
			p.index[p.members[i].name] = i
		}
	}
	return true
}

// String returns the name that JSON Schema has for a type.
func (k kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// typeName says what a value is, with its article.
func (k kind) typeName() string {
	switch k {
	case kindBool:
		return "a boolean"
	case kindNumber:
		return "a number"
	case kindString:
		return "a string"
	case kindArray:
		return "an array"
	case kindObject:
		return "an object"
	default:
		return "null"
	}
}

// plain returns the value as encoding/json decodes it, with numbers as json.Number. errTooMuchWork when its names are too
// long.
func (v *value) plain() (any, error) {
	left := maxNames
	decoded := v.decoded(0, &left)
	if left < 0 {
		return nil, errTooMuchWork
	}
	return decoded, nil
}

// decoded returns the value; the pointer to it has so many bytes, of which left are left for all parts.
func (v *value) decoded(pointer int, left *int) any {
	if *left -= pointer; *left < 0 {
		return nil
	}
	switch v.kind {
	case kindBool:
		return v.text == "true"
	case kindNumber:
		return json.Number(v.text)
	case kindString:
		return v.text
	case kindArray:
		all := make([]any, len(v.items()))
		for i := range v.items() {
			all[i] = v.items()[i].decoded(pointer+8, left)
		}
		return all
	case kindObject:
		all := make(map[string]any, len(v.members()))
		for i := range v.members() {
			m := &v.members()[i]
			all[m.name] = m.value.decoded(pointer+1+len(m.name), left)
		}
		return all
	default:
		return nil
	}
}

// equals reports whether a value equals one that encoding/json decoded with numbers as json.Number.
func (v *value) equals(decoded any) bool {
	if text, ok := decoded.(string); ok || v.kind == kindString {
		return ok && v.kind == kindString && v.text == text
	}
	other := valueOf(decoded)
	return string(canonical(nil, v)) == string(canonical(nil, &other))
}

func exactly(literal string) *big.Rat {
	r, ok := new(big.Rat).SetString(literal)
	if !ok {
		return new(big.Rat) // the parser lets no such literal through
	}
	return r
}

// plainInteger reports whether a literal is written without fraction and exponent.
func plainInteger(literal string) bool { return !strings.ContainsAny(literal, ".eE") }

// integral reports whether a literal is a whole number; 1.0 is one.
func integral(literal string) bool {
	return plainInteger(literal) || exactly(literal).IsInt()
}

// canonicalNumber returns equal texts for equal numbers.
func canonicalNumber(literal string) string {
	if plainInteger(literal) && literal != "-0" {
		return literal
	}
	return exactly(literal).RatString()
}

// canonical appends a text of v that is equal for equal JSON values: members in order, numbers by their value.
func canonical(dst []byte, v *value) []byte {
	switch v.kind {
	case kindNull:
		return append(dst, "null"...)
	case kindBool:
		return append(dst, v.text...)
	case kindNumber:
		return append(dst, canonicalNumber(v.text)...)
	case kindString:
		return appendCanonicalString(dst, v.text)
	case kindArray:
		dst = append(dst, '[')
		for i := range v.items() {
			dst = append(canonical(dst, &v.items()[i]), ',')
		}
		return append(dst, ']')
	default:
		members := make([]*member, 0, len(v.members()))
		for i := range v.members() {
			members = append(members, &v.members()[i])
		}
		slices.SortFunc(members, func(a, b *member) int { return strings.Compare(a.name, b.name) })
		dst = append(dst, '{')
		for _, m := range members {
			dst = append(appendCanonicalString(dst, m.name), ':')
			dst = append(canonical(dst, &m.value), ',')
		}
		return append(dst, '}')
	}
}

// appendCanonicalString need not write JSON: it must only be unambiguous.
func appendCanonicalString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	if strings.ContainsAny(s, `"\`) {
		s = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
	}
	return append(append(dst, s...), '"')
}

// valueOf makes a tree of what encoding/json decoded with numbers as json.Number.
func valueOf(decoded any) value {
	switch d := decoded.(type) {
	case bool:
		if d {
			return value{kind: kindBool, text: "true"}
		}
		return value{kind: kindBool, text: "false"}
	case json.Number:
		return value{kind: kindNumber, text: d.String()}
	case string:
		return value{kind: kindString, text: d}
	case []any:
		v := value{kind: kindArray, parts: &parts{}}
		for _, item := range d {
			v.parts.items = append(v.parts.items, valueOf(item))
		}
		return v
	case map[string]any:
		v := value{kind: kindObject, parts: &parts{}}
		for name, item := range d {
			v.parts.add(member{name, valueOf(item)})
		}
		return v
	default:
		return value{kind: kindNull}
	}
}

// shown is how a message shows a value of a schema.
func shown(decoded any) string {
	v := valueOf(decoded)
	if v.kind == kindString {
		return quoted(v.text)
	}
	return shortened(string(canonical(nil, &v)), maxQuoted)
}
