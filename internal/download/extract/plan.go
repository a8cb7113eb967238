package extract

import "strings"

// Plan says which values are found, and what makes a row. It is not changed after it was made.
type Plan struct {
	columns int
	// levels are the document and, below it, the elements that make rows.
	levels []level
}

// level is what is found in a document, or in an element that makes rows.
type level struct {
	root *node
	// columns are those whose values are found here.
	columns []int
}

// node is a place below a level.
type node struct {
	names    []string
	children []*node
	// byName finds a child where there are many.
	byName map[string]*node
	// columns are those whose values stand here.
	columns []int
	// rows is set where the elements of the next level stand.
	rows bool
}

// manyNames is from how many names on a map finds one sooner than comparing.
const manyNames = 8

// NewPlan makes a Plan for the columns at some paths of documents, dotted ones of objects or of values, "" for the whole document.
//
// Each document is one row, unless rows names nested paths, each below the one before: then each element of the last is one, with
// the values of its own and of those elements that it is in.
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

// relative returns a path below another.
func relative(base, path string) string {
	if base == "" {
		return path
	}
	return strings.TrimPrefix(strings.TrimPrefix(path, base), ".")
}

// at returns the node of a path, which it makes where there is none.
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

// index makes the names of a node and of all below it quick to find.
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

// child returns the node of a name, nil when nothing is wanted of it.
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
