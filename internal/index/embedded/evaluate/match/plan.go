package match

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"tutti/internal/filter/query"
)

// Clause is a Node prepared for all parts of a search. Equal conditions share one Clause, whichever Nodes they come from.
type Clause struct {
	// at is the index of the clause in the plan.
	at    int
	op    query.Op
	scope string
	// path is the path of the elements that a Some tests.
	path     string
	children []*Clause
	field    query.Field
	// terms are the values of a text field, keys those of a numeric field.
	terms []string
	keys  []uint64
	// spans are the values to find in a field of ranges.
	spans []span
	// lo and hi bound the keys of a Range. Unless hasRange is set, the range is empty.
	lo, hi   uint64
	hasRange bool
	matchers []matcher
	// cost is the estimated cost, relative to other clauses.
	cost int
}

// Plan holds all Clauses of a search.
type Plan struct {
	clauses []*Clause
	// byKey finds clauses by their condition, nodes by Node and scope: a node that is used in two scopes is two clauses.
	byKey map[string]*Clause
	nodes map[nodeScope]*Clause
	key   []byte
}

type nodeScope struct {
	node  *query.Node
	scope string
}

// NewPlan returns an empty Plan.
func NewPlan() *Plan { return &Plan{byKey: map[string]*Clause{}, nodes: map[nodeScope]*Clause{}} }

// Clause returns the Clause of a node in a scope. A nil node matches everything.
func (p *Plan) Clause(n *query.Node, scope string) *Clause {
	if n == nil {
		return p.canonical(&Clause{op: query.Everything, scope: scope}, &query.Node{})
	}
	if c := p.nodes[nodeScope{n, scope}]; c != nil {
		return c
	}
	c := &Clause{op: n.Op, scope: scope, field: n.Field}
	below := scope
	if n.Op == query.Some {
		c.path, below = n.Path, n.Path
	}
	for _, child := range n.Children {
		c.children = append(c.children, p.Clause(child, below))
	}
	if n.Op == query.And || n.Op == query.Or {
		slices.SortStableFunc(c.children, func(a, b *Clause) int { return a.cost - b.cost })
		c.children = slices.Compact(c.children)
	}
	c = p.canonical(c, n)
	p.nodes[nodeScope{n, scope}] = c
	return c
}

// Exists returns the Clause of the documents with a value of a field, in any row.
func (p *Plan) Exists(f query.Field) *Clause {
	n := &query.Node{Op: query.Exists, Field: f}
	if row := f.Row(); row != "" {
		n = &query.Node{Op: query.Some, Path: row, Children: []*query.Node{n}}
	}
	return p.Clause(n, "")
}

// DocumentsWith returns the Clause of the documents that have an element at path for which elements holds.
func (p *Plan) DocumentsWith(path string, elements *Clause) *Clause {
	return p.canonical(&Clause{op: query.Some, path: path, children: []*Clause{elements}}, &query.Node{Op: query.Some})
}

// canonical returns the plan's clause with the condition of c, adding c when there is none.
func (p *Plan) canonical(c *Clause, n *query.Node) *Clause {
	p.key = c.appendKey(p.key[:0], n)
	if known := p.byKey[string(p.key)]; known != nil {
		return known
	}
	c.prepare(n)
	c.cost = c.costs()
	c.at = len(p.clauses)
	p.clauses = append(p.clauses, c)
	p.byKey[string(p.key)] = c
	return c
}

// appendKey appends a key that identifies the condition of a clause of node n.
func (c *Clause) appendKey(b []byte, n *query.Node) []byte {
	b = append(b, byte(c.op))
	b = appendText(b, c.scope)
	b = appendText(b, c.path)
	for _, child := range c.children {
		b = binary.AppendUvarint(b, uint64(child.at)+1)
	}
	b = append(b, 0)
	b = appendText(b, n.Field.Path)
	for _, term := range n.Terms {
		b = appendText(b, term)
	}
	if n.Op == query.Patterns && n.Fold {
		b = append(b, 1)
	}
	b = append(b, 0)
	for _, pattern := range n.Patterns {
		b = appendText(b, string(pattern))
	}
	if n.Op == query.Range {
		b = appendBound(appendBound(b, n.From), n.To)
	}
	return b
}

func appendText(b []byte, text string) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

func appendBound(b []byte, bound query.Bound) []byte {
	if !bound.Set {
		return append(b, 0)
	}
	if bound.Inclusive {
		b = append(b, 2)
	} else {
		b = append(b, 1)
	}
	b = appendText(b, bound.Number)
	return bound.Time.AppendFormat(b, time.RFC3339Nano)
}

// prepare converts the values of a clause once for all parts.
func (c *Clause) prepare(n *query.Node) {
	if query.Ranged(n.Field.Type) {
		c.spans = spansOf(n)
		return
	}
	switch n.Op {
	case query.Terms:
		if !query.Keyed(n.Field.Type) {
			c.terms = n.Terms
			return
		}
		for _, term := range n.Terms {
			if key, ok := query.Key(n.Field, term); ok {
				c.keys = append(c.keys, key)
			}
		}
		slices.Sort(c.keys)
		c.keys = slices.Compact(c.keys)
	case query.Range:
		c.lo, c.hi, c.hasRange = query.KeyRange(n.Field, n.From, n.To)
	case query.Patterns:
		for _, pattern := range n.Patterns {
			c.matchers = append(c.matchers, newMatcher(pattern, n.Fold))
		}
	default:
	}
}

// costs estimates the cost of a clause. Scanning a dictionary costs most, mapping elements to documents much.
func (c *Clause) costs() int {
	sum := 0
	for _, child := range c.children {
		sum += child.cost
	}
	if len(c.spans) > 0 {
		return 64
	}
	switch c.op {
	case query.Everything, query.Nothing:
		return 0
	case query.Terms:
		return 2 + (len(c.terms)+len(c.keys))/16
	case query.Exists:
		return 1
	case query.Range:
		return 8
	case query.Patterns:
		return 64 * len(c.matchers)
	case query.Some:
		return sum + 16*(1+strings.Count(c.path, "."))
	default:
		return sum + 1
	}
}
