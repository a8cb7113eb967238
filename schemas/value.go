package schemas

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

// add appends a member and tells whether its name is new.
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
