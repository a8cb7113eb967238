package extract

import (
	"strings"

	"tutti/internal/index/mapping"
	"tutti/internal/jsontext"
)

// Plan defines the values to find and the rows. It is immutable.
type Plan struct {
	columns int
	// levels are the document and, below it, the nested elements that make rows.
	levels []level
}

// level is a document, or a nested element that makes rows.
type level struct {
	root *node
	// columns are the columns with values at this level.
	columns []int
}

// node is a path segment below a level.
type node struct {
	names    []string
	children []*node
	// byName is an index of the children if there are many.
	byName map[string]*node
	// columns are the columns with values at this node.
	columns []int
	// rows is set if the elements of the next level are at this node.
	rows bool
}

// manyNames is the number of names from which a map is faster than a linear search.
const manyNames = 8

// NewPlan returns a Plan for columns at dotted paths of objects or values, "" for the whole document.
//
// Each document is one row, unless rows names nested paths, each below the previous one: then each element of the last path is a
// row, with its own values and those of the elements that contain it.
func NewPlan(paths, rows []string) *Plan {
	p := &Plan{columns: len(paths), levels: make([]level, len(rows)+1)}
	bases := append([]string{""}, rows...)
	for i := range p.levels {
		p.levels[i].root = &node{}
	}
	for i, row := range rows {
		p.levels[i].root.at(relative(bases[i], row)).rows = true
	}
	for column, path := range paths {
		at := 0
		for i, base := range bases {
			if base == "" || path == base || strings.HasPrefix(path, base+".") {
				at = i
			}
		}
		l := &p.levels[at]
		l.columns = append(l.columns, column)
		n := l.root.at(relative(bases[at], path))
		n.columns = append(n.columns, column)
	}
	for i := range p.levels {
		p.levels[i].root.index()
	}
	return p
}

// relative returns a path relative to another.
func relative(base, path string) string {
	if base == "" {
		return path
	}
	return strings.TrimPrefix(strings.TrimPrefix(path, base), ".")
}

// at returns the node of a path, and adds it if there is none.
func (n *node) at(path string) *node {
	if path == "" {
		return n
	}
	for name := range strings.SplitSeq(path, ".") {
		child := n.child([]byte(name))
		if child == nil {
			child = &node{}
			n.names, n.children = append(n.names, name), append(n.children, child)
		}
		n = child
	}
	return n
}

// index builds the lookup tables of a node and of its descendants.
func (n *node) index() {
	if len(n.names) >= manyNames {
		n.byName = make(map[string]*node, len(n.names))
		for i, name := range n.names {
			n.byName[name] = n.children[i]
		}
	}
	for _, child := range n.children {
		child.index()
	}
}

// child returns the node of a name, nil if nothing below it is selected.
func (n *node) child(name []byte) *node {
	if n.byName != nil {
		return n.byName[string(name)]
	}
	for i := range n.names {
		if n.names[i] == string(name) {
			return n.children[i]
		}
	}
	return nil
}

// SourcePath returns the path in documents of the values of the field at an engine's path: a multi-field has the values of its
// parent. False for a field that no document holds, because the engine computes it.
func SourcePath(tree *mapping.Field, path string) (string, bool) {
	if tree.Lookup(path) == nil {
		return "", false
	}
	for {
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			return path, true
		}
		above := tree.Lookup(path[:dot])
		if above == nil || above.Container() {
			return path, true
		}
		path = path[:dot]
	}
}

// Span is the position of a value in a document.
type Span = jsontext.Span

// AppendCompact appends a value without white space between tokens, so that it has no line breaks. A truncated value is null.
func AppendCompact(dst, raw []byte) []byte {
	out, closed := jsontext.AppendCompact(dst, raw)
	if !closed || len(out) == len(dst) {
		return append(dst, "null"...)
	}
	return out
}
