package sqon

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"tutti/internal/base/jsontext"
)

// Parse parses a SQON (CONTRACT section 4). Empty input, null and {} match everything. It does not depend on fields; Check does.
//
// The text is read once, and the cost is linear in its length, whatever it contains; MaxDepth, MaxValues and MaxNodes bound the
// result. Every error is a core.Error of CodeInvalid with at most MaxViolations Violations, which point into the input. Invalid
// JSON and exceeded limits stop the parser, and are then the last violation.
func Parse(raw []byte) (Filter, error) { return parse(raw, false) }

// ParseLenient is Parse for the filters of clients. Some clients send an Or without members when nothing is selected, which matches
// everything here. Filters that grant access must be parsed by Parse, where it matches nothing.
func ParseLenient(raw []byte) (Filter, error) { return parse(raw, true) }

func parse(raw []byte, lenient bool) (Filter, error) {
	// Names and values are substrings of this copy.
	p := parser{scanner: scanner{text: string(raw)}, lenient: lenient}
	p.valid = utf8.ValidString(p.text)
	if p.peek() == 0 && p.at == len(p.text) {
		return Filter{}, nil
	}
	p.scalars = make([]Value, 0, min(len(p.text)/bytesPerValue, MaxValues))
	root, ok := p.node("")
	if ok && (p.peek() != 0 || p.at < len(p.text)) {
		p.invalidJSON("data after the filter")
	}
	if err := p.err(); err != nil {
		return Filter{}, err
	}
	return Filter{Root: root}, nil
}

// bytesPerValue is the approximate length of a value in the input, for an initial capacity.
const bytesPerValue = 16

// parser builds the tree while it reads.
type parser struct {
	scanner
	// lenient replaces an Or without members by an And.
	lenient              bool
	depth, nodes, values int
	// names and scalars are the backing arrays of the names and values of all clauses, which saves allocations.
	names   []string
	scalars []Value
}

// partialNode is what has been read of one object of a filter.
type partialNode struct {
	node *Node
	// op is the operator as written, "" when it is missing or not a string.
	op string
	// members are those that were present.
	members member
	// contentKind is groupContent for a list, listContent for an object, and unknownContent for other values.
	contentKind contentKind
	clause      clause
}

// clause is what has been read of the content of a clause.
type clause struct {
	members member
	// scalar is set when the value was not in a list.
	scalar bool
	// invalid is set when the names or the values already have a violation.
	invalid bool
}

// member is a set of members of an object.
type member uint8

const (
	memberOp member = 1 << iota
	memberContent
	memberPivot
	memberFieldName
	memberFieldNames
	memberValue
	memberEntity
)

// node reads a filter: nil when it matches everything or is invalid.
func (p *parser) node(pointer string) (*Node, bool) {
	if p.depth++; p.depth > MaxDepth {
		return nil, p.stop(pointer, KeywordDepth, fmt.Sprintf("the filter is more than %d levels deep", MaxDepth))
	}
	if p.nodes++; p.nodes > MaxNodes {
		return nil, p.stop(pointer, KeywordNodes, fmt.Sprintf("the filter has more than %d groups and clauses", MaxNodes))
	}
	outer := p.pointer
	p.pointer = pointer
	var n *Node
	var ok bool
	switch c := p.peek(); c {
	case '{':
		n, ok = p.filter(pointer)
	case 'n':
		ok = p.literal("null")
	default:
		ok = p.skip(0) && p.violation(pointer, KeywordNode, "a filter must be an object, not "+kind(c))
	}
	p.depth--
	p.pointer = outer
	return n, ok
}

// violation records a violation that does not stop the parser, unless there are already enough.
func (p *parser) violation(pointer, keyword, message string) bool {
	p.add(pointer, keyword, message)
	return !p.full()
}

// filter reads a filter, nil when it has no members.
func (p *parser) filter(pointer string) (*Node, bool) {
	var r partialNode
	ok := p.object(func(name string) bool {
		if r.node == nil {
			r.node = &Node{Pointer: pointer}
		}
		return p.nodeMember(&r, name)
	})
	if !ok || r.node == nil {
		return nil, ok
	}
	return r.node, p.validate(&r)
}

// nodeMember reads the value of one member of a filter.
func (p *parser) nodeMember(r *partialNode, name string) bool {
	var m member
	switch name {
	case "op":
		m = memberOp
	case "content":
		m = memberContent
	case "pivot":
		m = memberPivot
	default:
		return p.unknown(r.node.Pointer, name, "op", "content", "pivot")
	}
	if r.members&m != 0 {
		return p.skip(0) && p.violation(r.node.Pointer+"/"+name, KeywordMember, "duplicate member "+excerpt(name))
	}
	r.members |= m
	switch m {
	case memberOp:
		return p.op(r)
	case memberPivot:
		return p.pivot(r)
	default:
		return p.content(r)
	}
}

// unknown skips an unknown member.
func (p *parser) unknown(pointer, name string, known ...string) bool {
	return p.skip(0) && p.violation(jsontext.Pointer(pointer, pointerPart(name)), KeywordMember, "unknown member "+excerpt(name)+suggestWord(name, known...))
}

// op reads the name of an operator.
func (p *parser) op(r *partialNode) bool {
	if c := p.peek(); c != '"' {
		return p.skip(0) && p.violation(r.node.Pointer+"/op", KeywordOp, "op must be a string, not "+kind(c))
	}
	name, ok := p.str()
	if !ok {
		return false
	}
	op, known := resolve(name)
	if !known {
		return p.violation(r.node.Pointer+"/op", KeywordOp, "unknown op "+excerpt(name)+suggestOp(name))
	}
	r.op, r.node.Op = name, op
	return true
}

// opNames returns all names of operators except the aliases that are symbols.
func opNames() []string {
	names := []string{string(And), string(Or), string(Not)}
	for _, op := range fieldOperators() {
		names = append(names, string(op))
	}
	return append(names, "filter")
}

// pivot reads a pivot; null and "." mean none.
func (p *parser) pivot(r *partialNode) bool {
	switch c := p.peek(); c {
	case 'n':
		return p.literal("null")
	case '"':
		text, ok := p.str()
		if ok && text == "" {
			return p.violation(r.node.Pointer+"/pivot", KeywordPivot, "pivot is empty")
		}
		if text != "." {
			r.node.Pivot = text
		}
		return ok
	default:
		return p.skip(0) && p.violation(r.node.Pointer+"/pivot", KeywordPivot, "pivot must be a string or null, not "+kind(c))
	}
}

// content reads the content of a group, a list, or of a clause, an object. op may follow it.
func (p *parser) content(r *partialNode) bool {
	op := r.node.Op.contentKind()
	switch c := p.peek(); {
	case c == '[' && (op == unknownContent || op == groupContent):
		r.contentKind = groupContent
		return p.group(r.node)
	case c == '{' && op != groupContent:
		r.contentKind = listContent
		return p.object(func(name string) bool { return p.clauseMember(r, name) })
	case c == '{' || c == '[':
		// validate compares it with the operator.
		r.contentKind = groupContent
		if c == '{' {
			r.contentKind = listContent
		}
		return p.skip(0)
	default:
		return p.skip(0) && p.violation(r.node.Pointer+"/content", KeywordContent, "content must be a list or an object, not "+kind(c))
	}
}

// group reads the members of a group.
func (p *parser) group(n *Node) bool {
	n.Content = []*Node{}
	return p.array(func(i int) bool {
		pointer := n.Pointer + "/content/" + strconv.Itoa(i)
		inner, ok := p.node(pointer)
		if inner == nil {
			inner = &Node{Op: And, Content: []*Node{}, Pointer: pointer}
		}
		n.Content = append(n.Content, inner)
		return ok
	})
}

// validate validates an object whose members have been read.
func (p *parser) validate(r *partialNode) bool {
	pointer, ok := r.node.Pointer, true
	if r.members&memberOp == 0 {
		ok = p.violation(pointer, KeywordOp, "op is missing")
	}
	if r.members&memberContent == 0 {
		ok = ok && p.violation(pointer, KeywordContent, "content is missing")
	}
	required := r.node.Op.contentKind()
	switch {
	case !ok || r.contentKind == unknownContent || required == unknownContent:
		return ok
	case required == groupContent && r.contentKind != groupContent:
		return p.violation(pointer+"/content", KeywordContent, "content of "+excerpt(r.op)+" must be a list of filters")
	case required != groupContent && r.contentKind == groupContent:
		return p.violation(pointer+"/content", KeywordContent,
			"content of "+excerpt(r.op)+" must be an object with "+namesMember(required)+" and value")
	case required == groupContent:
		if p.lenient && r.node.Op == Or && len(r.node.Content) == 0 {
			r.node.Op = And
		}
		return true
	default:
		return p.validateClause(r, required)
	}
}
