package sqon

import (
	"fmt"
	"strconv"
)

// valuePath is the pointer of a clause's value, relative to the clause.
const valuePath = "/content/value"

// namesMember returns the member of a clause's content that has the field names.
func namesMember(wants contentKind) string {
	if wants == patternContent {
		return "fieldNames"
	}
	return "fieldName"
}

// clauseMember reads the value of one member of a clause's content.
func (p *parser) clauseMember(r *partialNode, name string) bool {
	var m member
	switch name {
	case "fieldName":
		m = memberFieldName
	case "fieldNames":
		m = memberFieldNames
	case "value":
		m = memberValue
	case "entity":
		m = memberEntity
	default:
		return p.unknown(r.node.Pointer+"/content", name, "fieldName", "fieldNames", "value")
	}
	if r.clause.members&m != 0 {
		return p.skip(0) && p.violation(r.node.Pointer+"/content/"+name, KeywordMember, "duplicate member "+excerpt(name))
	}
	r.clause.members |= m
	switch m {
	case memberFieldName:
		return p.fieldName(r)
	case memberFieldNames:
		return p.fieldNames(r)
	case memberValue:
		return p.value(r)
	default:
		if c := p.peek(); c != '"' {
			return p.skip(0) && p.violation(r.node.Pointer+"/content/entity", KeywordMember, "entity must be a string, not "+kind(c))
		}
		return p.skip(0)
	}
}

// fieldName reads the one name of a clause.
func (p *parser) fieldName(r *partialNode) bool {
	name, ok := p.name(r, "/content/fieldName", -1)
	if !ok || name == "" {
		return ok
	}
	// A clause with both fieldName and fieldNames is rejected later, so one may replace the other.
	p.names = append(p.names, name)
	r.node.Fields = p.names[len(p.names)-1 : len(p.names) : len(p.names)]
	return true
}

// fieldNames reads the names of a Wildcard.
func (p *parser) fieldNames(r *partialNode) bool {
	const place = "/content/fieldNames"
	if c := p.peek(); c != '[' {
		r.clause.invalid = true
		return p.skip(0) && p.violation(r.node.Pointer+place, KeywordFieldName, "fieldNames must be a list of strings, not "+kind(c))
	}
	from := len(p.names)
	ok := p.array(func(i int) bool {
		if !p.count(r, place, i) {
			return false
		}
		name, ok := p.name(r, place, i)
		p.names = append(p.names, name)
		return ok
	})
	if !ok {
		return false
	}
	if len(p.names) == from {
		r.clause.invalid = true
		return p.violation(r.node.Pointer+place, KeywordFieldName, "fieldNames must have at least one name")
	}
	r.node.Fields = p.names[from:len(p.names):len(p.names)]
	return true
}

// name reads a field name, "" for an invalid one. place and index are its position as in pointerAt.
func (p *parser) name(r *partialNode, place string, index int) (string, bool) {
	if c := p.peek(); c != '"' {
		r.clause.invalid = true
		return "", p.skip(0) && p.violation(pointerAt(r.node, place, index), KeywordFieldName,
			"a field name must be a string, not "+kind(c))
	}
	name, ok := p.str()
	if ok && name == "" {
		r.clause.invalid = true
		return "", p.violation(pointerAt(r.node, place, index), KeywordFieldName, "a field name is empty")
	}
	return name, ok
}

// count counts a value or a name in a list, and stops reading when there are too many.
func (p *parser) count(r *partialNode, place string, index int) bool {
	if p.values++; p.values > MaxValues {
		return p.stop(pointerAt(r.node, place, index), KeywordValues,
			fmt.Sprintf("the filter has more than %d values and field names", MaxValues))
	}
	return true
}

// pointerAt returns the pointer of a place in a node, or of the element index of a list there if index is not negative.
func pointerAt(n *Node, place string, index int) string {
	if index < 0 {
		return n.Pointer + place
	}
	return n.Pointer + place + "/" + strconv.Itoa(index)
}

// value reads the value or the values of a clause.
func (p *parser) value(r *partialNode) bool {
	from := len(p.scalars)
	read := func(i int) bool { return p.count(r, valuePath, i) && p.scalar(r, i) }
	ok := false
	if r.clause.scalar = p.peek() != '['; r.clause.scalar {
		ok = read(-1)
	} else {
		ok = p.array(read)
	}
	if len(p.scalars) > from {
		r.node.Values = p.scalars[from:len(p.scalars):len(p.scalars)]
	}
	return ok
}

// scalar reads one value; index is its position in the list, -1 when there is no list.
func (p *parser) scalar(r *partialNode, index int) bool {
	var v Value
	var ok bool
	switch c := p.peek(); c {
	case '"':
		v.Text, ok = p.str()
	case 't':
		v, ok = Value{Kind: Bool, Text: "true"}, p.literal("true")
	case 'f':
		v, ok = Value{Kind: Bool, Text: "false"}, p.literal("false")
	case 'n', '{', '[':
		r.clause.invalid = true
		return p.skip(0) && p.violation(valuePointer(r.node, index), KeywordValue, "a value must be a string, a number or a boolean, not "+kind(c))
	default:
		v.Kind = Number
		v.Text, ok = p.number()
	}
	p.scalars = append(p.scalars, v)
	return ok
}

// valuePointer returns the pointer of a clause's value, or of the whole list for a negative index.
func valuePointer(n *Node, index int) string {
	return pointerAt(n, valuePath, index)
}

// validateClause validates a clause for its operator.
func (p *parser) validateClause(r *partialNode, wants contentKind) bool {
	seen, needs, other := r.clause.members, memberFieldName, memberFieldNames
	if wants == patternContent {
		needs, other = other, needs
	}
	ok := true
	if seen&other != 0 {
		name := "fieldNames"
		if wants == patternContent {
			name = "fieldName"
		}
		ok = p.violation(r.node.Pointer+"/content/"+name, KeywordFieldName,
			excerpt(r.op)+" takes "+namesMember(wants)+", not "+name)
	} else if seen&needs == 0 {
		ok = p.violation(r.node.Pointer+"/content", KeywordFieldName, namesMember(wants)+" is missing")
	}
	if ok && seen&memberEntity != 0 && wants != patternContent {
		ok = p.violation(r.node.Pointer+"/content/entity", KeywordMember, `unknown member "entity"`)
	}
	if ok && seen&memberValue == 0 {
		ok = p.violation(r.node.Pointer+"/content", KeywordValue, "value is missing")
	}
	return ok && (seen&memberValue == 0 || r.clause.invalid || p.validateValues(r, wants))
}

// validateValues validates the number and the kinds of the values for the operator.
func (p *parser) validateValues(r *partialNode, wants contentKind) bool {
	n := r.node
	count := func(message string) bool {
		return p.violation(valuePointer(n, -1), KeywordValue, excerpt(r.op)+message)
	}
	switch {
	case wants == rangeContent && len(n.Values) != 1:
		return count(" takes exactly one value")
	case wants == betweenContent && len(n.Values) != 2:
		return count(" takes exactly two values")
	case wants == patternContent && len(n.Values) == 0:
		return count(" takes at least one value")
	case wants == listContent:
		return true
	}
	for i, v := range n.Values {
		if v.Kind == String || wants != patternContent && v.Kind == Number {
			continue
		}
		place, takes := i, " takes strings, not "
		if r.clause.scalar {
			place = -1
		}
		if wants != patternContent {
			takes = " takes numbers and dates, not "
		}
		if !p.violation(valuePointer(n, place), KeywordValue, excerpt(r.op)+takes+v.Kind.words()) {
			return false
		}
	}
	return true
}

// words returns the name of a kind of value for a message.
func (k Kind) words() string {
	switch k {
	case Number:
		return "a number"
	case Bool:
		return "a boolean"
	default:
		return "a string"
	}
}
