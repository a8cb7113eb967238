package jsontree

import (
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"

	"tutti/schemas/violation"
)

// maxNames bounds the total length of the pointers to all parts of a value, because the library for JSON Schema creates
// each.
const maxNames = 256 << 20

// ErrTooMuchWork is returned for a value whose validation would take too much work. Its text is safe to show.
var ErrTooMuchWork = errors.New("validating it takes too much work: the names in it are too long")

// Kind is the type of a JSON value.
type Kind uint8

// Kinds of a value.
const (
	KindNull Kind = iota
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

// Value is a JSON value in a tree that keeps the order of members and the text of numbers.
type Value struct {
	Kind Kind
	// From and To are the value's start and end in the text.
	From, To uint32
	// Text is a string's content, a number's literal, "true" or "false".
	Text string
	// parts are those of an array or an object, nil when it is empty.
	parts *parts
}

type parts struct {
	items   []Value
	members []Member
	// index finds members of a large object.
	index map[string]int
}

// Member is a member of an object.
type Member struct {
	Name  string
	Value Value
}

// indexedFrom is the number of members from which a map is faster than a linear search.
const indexedFrom = 16

// Items returns the items of an array, nil if it has none.
func (v *Value) Items() []Value {
	if v.parts == nil {
		return nil
	}
	return v.parts.items
}

// Members returns the members of an object in order, nil if it has none.
func (v *Value) Members() []Member {
	if v.parts == nil {
		return nil
	}
	return v.parts.members
}

// Member returns the member of an object, nil if there is none.
func (v *Value) Member(name string) *Value {
	if v == nil || v.Kind != KindObject || v.parts == nil {
		return nil
	}
	if i := v.parts.find(name); i >= 0 {
		return &v.parts.members[i].Value
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
		if p.members[i].Name == name {
			return i
		}
	}
	return -1
}

// indexLast adds the last of the members to the index of a large object.
func (p *parts) indexLast(members []Member) {
	switch {
	case p.index != nil:
		p.index[members[len(members)-1].Name] = len(members) - 1
	case len(members) == indexedFrom:
		p.index = make(map[string]int, 2*indexedFrom)
		for i := range members {
			p.index[members[i].Name] = i
		}
	}
}

// String returns the name of a type in JSON Schema.
func (k Kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// TypeName returns the name of the type with its article.
func (k Kind) TypeName() string {
	switch k {
	case KindBool:
		return "a boolean"
	case KindNumber:
		return "a number"
	case KindString:
		return "a string"
	case KindArray:
		return "an array"
	case KindObject:
		return "an object"
	default:
		return "null"
	}
}

// CheckNames returns ErrTooMuchWork for a value whose names are too long.
func (v *Value) CheckNames() error {
	if size := int(v.To - v.From); size*size <= maxNames { // it has fewer parts, and shorter pointers, than bytes
		return nil
	}
	if left := maxNames; !v.namesFit(0, &left) {
		return ErrTooMuchWork
	}
	return nil
}

// namesFit subtracts the lengths of the pointers of a part, which is pointer, and of its parts from left, and reports whether any is left.
func (v *Value) namesFit(pointer int, left *int) bool {
	if *left -= pointer; *left < 0 {
		return false
	}
	for i := range v.Items() {
		if !v.Items()[i].namesFit(pointer+8, left) {
			return false
		}
	}
	for i := range v.Members() {
		m := &v.Members()[i]
		if !m.Value.namesFit(pointer+1+len(m.Name), left) {
			return false
		}
	}
	return true
}

// Plain returns the value as encoding/json decodes it, with numbers as json.Number.
func (v *Value) Plain() any {
	switch v.Kind {
	case KindBool:
		return v.Text == "true"
	case KindNumber:
		return json.Number(v.Text)
	case KindString:
		return v.Text
	case KindArray:
		all := make([]any, len(v.Items()))
		for i := range v.Items() {
			all[i] = v.Items()[i].Plain()
		}
		return all
	case KindObject:
		all := make(map[string]any, len(v.Members()))
		for i := range v.Members() {
			m := &v.Members()[i]
			all[m.Name] = m.Value.Plain()
		}
		return all
	default:
		return nil
	}
}

// Equals reports whether a value equals one that encoding/json decoded with numbers as json.Number.
func (v *Value) Equals(decoded any) bool {
	switch d := decoded.(type) {
	case bool:
		return v.Kind == KindBool && d == (v.Text == "true")
	case json.Number:
		return v.Kind == KindNumber && Rational(v.Text).Cmp(Rational(d.String())) == 0
	case string:
		return v.Kind == KindString && v.Text == d
	case []any:
		return v.Kind == KindArray && slices.EqualFunc(v.Items(), d, func(item Value, other any) bool { return item.Equals(other) })
	case map[string]any:
		if v.Kind != KindObject || len(v.Members()) != len(d) {
			return false
		}
		for name, other := range d {
			if own := v.Member(name); own == nil || !own.Equals(other) {
				return false
			}
		}
		return true
	default:
		return v.Kind == KindNull
	}
}

// Rational returns the exact value of a number literal that Parse accepted.
func Rational(literal string) *big.Rat {
	r, ok := new(big.Rat).SetString(literal)
	if !ok {
		return new(big.Rat) // the parser rejects such literals
	}
	return r
}

// IsInteger reports whether a literal is a whole number; 1.0 is one.
func IsInteger(literal string) bool {
	return !strings.ContainsAny(literal, ".eE") || Rational(literal).IsInt()
}

// Format returns a value of a schema as it is shown in messages.
func Format(decoded any) string {
	if text, ok := decoded.(string); ok {
		return violation.Quoted(text)
	}
	shown, _ := AppendJSON(nil, decoded) // it was decoded
	return violation.Shortened(string(shown), violation.MaxQuotedRunes)
}
