package sqon

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"tutti/internal/core"
)

// Parse reads a SQON (CONTRACT section 4). Nothing, null and {} match everything. It knows no fields: what depends on them
// is Check's.
//
// The text is read once and the cost grows with its length alone, whatever it holds; MaxDepth, MaxValues and MaxNodes bound
// what is built. Every error is a core.Error of CodeInvalid whose Violations, MaxFaults at most, point at the faults; what is
// not JSON ends reading, as do the limits, and is then the last of them.
func Parse(raw []byte) (Filter, error) { return parse(raw, false) }

// ParseLenient is Parse for the filters of clients, of which some send an Or without members where nothing is chosen: it matches
// everything. What grants access is read by Parse, where it matches nothing.
func ParseLenient(raw []byte) (Filter, error) { return parse(raw, true) }

func parse(raw []byte, lenient bool) (Filter, error) {
	// Names and values are parts of this one copy.
	p := parser{scanner: scanner{text: string(raw)}, lenient: lenient}
	p.valid = utf8.ValidString(p.text)
	if p.peek() == 0 && p.at == len(p.text) {
		return Filter{}, nil
	}
	p.scalars = make([]Value, 0, min(len(p.text)/bytesPerValue, MaxValues))
	root, ok := p.node("")
	if ok && (p.peek() != 0 || p.at < len(p.text)) {
		p.malformed("something follows the filter")
	}
	if err := p.err(); err != nil {
		return Filter{}, err
	}
	return Filter{Root: root}, nil
}

// bytesPerValue is how much text a value takes about, which only makes the first guess of their number.
const bytesPerValue = 16

// parser builds the tree while it reads.
type parser struct {
	scanner
	// lenient makes an And of an Or without members.
	lenient              bool
	depth, nodes, values int
	// names and scalars hold the names and the values of all clauses, each of which has its part of them, so that not every
	// clause costs allocations.
	names   []string
	scalars []Value
}

// reading is what has been read of one object of a filter.
type reading struct {
	node *Node
	// op is the operator as it was written, "" when there was none that is a string.
	op string
	// members are those that were seen.
	members member
	// shape is the content's: that of a group, or any other for a clause; unknownShape when it is neither.
	shape  shape
	clause clause
}

// clause is what has been read of the content of a clause.
type clause struct {
	members member
	// scalar tells that the value stood without a list.
	scalar bool
	// wrong tells that what was read of the names or the values has a fault already.
	wrong bool
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

// node reads a filter: nil when it matches everything, and in place of one with faults.
func (p *parser) node(pointer string) (*Node, bool) {
	if p.depth++; p.depth > MaxDepth {
		return nil, p.end(pointer, KeywordDepth, fmt.Sprintf("the filter is more than %d levels deep", MaxDepth))
	}
	if p.nodes++; p.nodes > MaxNodes {
		return nil, p.end(pointer, KeywordNodes, fmt.Sprintf("the filter has more than %d groups and clauses", MaxNodes))
	}
	outer := p.pointer
	p.pointer = pointer
	var n *Node
	var ok bool
	switch c := p.peek(); c {
	case '{':
		p.at++
		n, ok = p.object(pointer)
	case 'n':
		ok = p.literal("null")
	default:
		ok = p.skip(0) && p.fault(pointer, KeywordNode, "a filter is an object, not "+kind(c))
	}
	p.depth--
	p.pointer = outer
	return n, ok
}

// fault tells a fault that does not end reading, unless enough have been told.
func (p *parser) fault(pointer, keyword, message string) bool {
	p.add(pointer, keyword, message)
	return !p.full()
}

// object reads the members of a filter.
func (p *parser) object(pointer string) (*Node, bool) {
	var r reading
	for first := true; ; first = false {
		name, more, ok := p.member(first)
		if !ok {
			return nil, false
		}
		if !more {
			if first {
				return nil, true
			}
			break
		}
		if r.node == nil {
			r.node = &Node{Pointer: pointer}
		}
		if !p.nodeMember(&r, name) {
			return nil, false
		}
	}
	return r.node, p.judge(&r)
}

// nodeMember reads the value of one member of a filter.
func (p *parser) nodeMember(r *reading, name string) bool {
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
		return p.skip(0) && p.fault(r.node.Pointer+"/"+name, KeywordMember, "the member "+excerpt(name)+" stands here twice")
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

// unknown gets past a member that means nothing.
func (p *parser) unknown(pointer, name string, known ...string) bool {
	return p.skip(0) && p.fault(core.Pointer(pointer, pointerPart(name)), KeywordMember, "unknown member "+excerpt(name)+meant(name, known...))
}

// op reads the name of an operator.
func (p *parser) op(r *reading) bool {
	if c := p.peek(); c != '"' {
		return p.skip(0) && p.fault(r.node.Pointer+"/op", KeywordOp, "op is a string, not "+kind(c))
	}
	name, ok := p.str()
	if !ok {
		return false
	}
	op, known := resolve(name)
	if !known {
		return p.fault(r.node.Pointer+"/op", KeywordOp, "unknown op "+excerpt(name)+meant(name, opNames()...))
	}
	r.op, r.node.Op = name, op
	return true
}

// opNames returns all names of operators but the aliases that are signs.
func opNames() []string {
	names := []string{string(And), string(Or), string(Not)}
	for _, op := range fieldOperators() {
		names = append(names, string(op))
	}
	return append(names, "filter")
}

// pivot reads a pivot; null and "." are none.
func (p *parser) pivot(r *reading) bool {
	switch c := p.peek(); c {
	case 'n':
		return p.literal("null")
	case '"':
		text, ok := p.str()
		if ok && text == "" {
			return p.fault(r.node.Pointer+"/pivot", KeywordPivot, "pivot is empty")
		}
		if text != "." {
			r.node.Pivot = text
		}
		return ok
	default:
		return p.skip(0) && p.fault(r.node.Pointer+"/pivot", KeywordPivot, "pivot is a string or null, not "+kind(c))
	}
}

// content reads the content of a group or a clause, whichever it looks like: op may come after it.
func (p *parser) content(r *reading) bool {
	op := r.node.Op.shape()
	switch c := p.peek(); {
	case c == '[' && (op == unknownShape || op == groupShape):
		r.shape = groupShape
		p.at++
		return p.group(r.node)
	case c == '{' && op != groupShape:
		r.shape = listShape
		p.at++
		return p.clause(r)
	case c == '{' || c == '[':
		// The operator tells what it should be, which is said when the filter is judged.
		r.shape = groupShape
		if c == '{' {
			r.shape = listShape
		}
		return p.skip(0)
	default:
		return p.skip(0) && p.fault(r.node.Pointer+"/content", KeywordContent, "content is a list or an object, not "+kind(c))
	}
}

// group reads the members of a group.
func (p *parser) group(n *Node) bool {
	n.Content = []*Node{}
	for first := true; ; first = false {
		more, ok := p.more(first, ']')
		if !ok || !more {
			return ok
		}
		pointer := n.Pointer + "/content/" + strconv.Itoa(len(n.Content))
		inner, ok := p.node(pointer)
		if !ok {
			return false
		}
		if inner == nil {
			inner = &Node{Op: And, Content: []*Node{}, Pointer: pointer}
		}
		n.Content = append(n.Content, inner)
	}
}

// judge says what is wrong with an object whose members have been read.
func (p *parser) judge(r *reading) bool {
	pointer, ok := r.node.Pointer, true
	if r.members&memberOp == 0 {
		ok = p.fault(pointer, KeywordOp, "op is missing")
	}
	if r.members&memberContent == 0 {
		ok = ok && p.fault(pointer, KeywordContent, "content is missing")
	}
	wants := r.node.Op.shape()
	switch {
	case !ok || r.shape == unknownShape || wants == unknownShape:
		return ok
	case wants == groupShape && r.shape != groupShape:
		return p.fault(pointer+"/content", KeywordContent, "content of "+excerpt(r.op)+" is a list of filters")
	case wants != groupShape && r.shape == groupShape:
		return p.fault(pointer+"/content", KeywordContent,
			"content of "+excerpt(r.op)+" is an object with "+namesMember(wants)+" and value")
	case wants == groupShape:
		if p.lenient && r.node.Op == Or && len(r.node.Content) == 0 {
			r.node.Op = And
		}
		return true
	default:
		return p.judgeClause(r, wants)
	}
}
