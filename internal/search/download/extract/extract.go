package extract

import (
	"bytes"
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/index/mapping"
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
// parent. False for a field that is in no document, because the engine computes it.
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

// Row is one row of a document. It is valid until the callback that receives it returns.
type Row struct {
	Doc []byte
	// Values are the values of each column in document order, with arrays flattened and null omitted.
	Values [][]Span
	// Lists reports for each column whether an array was flattened for it, or for an object that contains it below the row's own
	// element.
	Lists []bool
}

// Reader reads documents by a Plan, and reuses its buffers. It is not safe for concurrent use.
type Reader struct {
	plan *Plan
	row  Row
	// elements are the pending elements of each level.
	elements [][]Span
	// list is set within an array.
	list bool
}

// NewReader returns a Reader.
func NewReader(p *Plan) *Reader {
	return &Reader{
		plan: p, row: Row{Values: make([][]Span, p.columns), Lists: make([]bool, p.columns)}, elements: make([][]Span, len(p.levels)),
	}
}

// Rows calls each with the rows of a document in order: one, or those of the nested elements, which may be none.
func (r *Reader) Rows(doc []byte, each func(*Row) error) error {
	r.row.Doc = doc
	return r.read(0, Span{End: len(doc)}, each)
}

// read finds the values of an element of a level, and continues with the elements in it.
func (r *Reader) read(depth int, element Span, each func(*Row) error) error {
	l := &r.plan.levels[depth]
	for _, c := range l.columns {
		r.row.Values[c], r.row.Lists[c] = r.row.Values[c][:0], false
	}
	last := depth == len(r.plan.levels)-1
	if !last {
		r.elements[depth+1] = r.elements[depth+1][:0]
	}
	r.list = false
	s := scan{Reader: r, doc: r.row.Doc[:element.End], depth: depth}
	s.value(jsontext.Space(s.doc, element.Start), l.root)
	if last {
		return each(&r.row)
	}
	for i := 0; i < len(r.elements[depth+1]); i++ {
		if err := r.read(depth+1, r.elements[depth+1][i], each); err != nil {
			return err
		}
	}
	return nil
}

// scan is the pass over one element.
type scan struct {
	*Reader
	doc   []byte
	depth int
}

// value reads the value at i for a node, and returns the offset after it.
func (s *scan) value(i int, n *node) int {
	if i >= len(s.doc) {
		return len(s.doc)
	}
	if s.doc[i] != '[' {
		return s.item(i, n)
	}
	before := s.list
	s.list = true
	s.noteList(n)
	end := s.array(i, n)
	s.list = before
	return end
}

// noteList records that there is an array at a node, possibly empty.
func (s *scan) noteList(n *node) {
	for _, c := range n.columns {
		s.row.Lists[c] = true
	}
}

// array reads the items of an array. Nested arrays of any depth are flattened, as engines do.
func (s *scan) array(i int, n *node) int {
	depth := 0
	for i < len(s.doc) {
		switch c := s.doc[i]; {
		case c == '[':
			depth++
			i++
		case c == ']':
			i++
			if depth--; depth == 0 {
				return i
			}
		case c == ',' || jsontext.IsSpace(c):
			i++
		default:
			end := s.item(i, n)
			if end == i {
				return len(s.doc)
			}
			i = end
		}
	}
	return len(s.doc)
}

// item reads a value that is not an array.
func (s *scan) item(i int, n *node) int {
	object := s.doc[i] == '{'
	if object && !n.rows && len(n.names) > 0 {
		end := s.members(i, n)
		s.found(n, Span{Start: i, End: end})
		return end
	}
	end := jsontext.Value(s.doc, i)
	if object && n.rows {
		s.elements[s.depth+1] = append(s.elements[s.depth+1], Span{Start: i, End: end})
	}
	s.found(n, Span{Start: i, End: end})
	return end
}

// found records a value for the columns of a node.
func (s *scan) found(n *node, v Span) {
	if len(n.columns) == 0 || v.Start == v.End || s.doc[v.Start] == 'n' {
		return
	}
	for _, c := range n.columns {
		s.row.Values[c] = append(s.row.Values[c], v)
		s.row.Lists[c] = s.row.Lists[c] || s.list
	}
}

// members reads the object at i, and returns the offset after it.
func (s *scan) members(i int, n *node) int {
	for i++; ; {
		i = jsontext.Space(s.doc, i)
		if i >= len(s.doc) || s.doc[i] != '"' {
			return min(i+1, len(s.doc)) // behind the object, or invalid
		}
		end, escaped := jsontext.String(s.doc, i)
		if end-1 <= i {
			return len(s.doc)
		}
		child := n.childByName(s.doc[i+1:end-1], escaped)
		if i = jsontext.Space(s.doc, end); i >= len(s.doc) || s.doc[i] != ':' {
			return len(s.doc)
		}
		i = jsontext.Space(s.doc, i+1)
		if child == nil {
			end = jsontext.Value(s.doc, i)
		} else {
			end = s.value(i, child)
		}
		if end == i {
			return len(s.doc)
		}
		if i = jsontext.Space(s.doc, end); i < len(s.doc) && s.doc[i] == ',' {
			i++
		}
	}
}

// childByName returns the node of a member name, which may contain dots: engines treat such objects the same.
func (n *node) childByName(name []byte, escaped bool) *node {
	if escaped {
		name = jsontext.AppendUnescaped(nil, name)
	}
	child := n.child(name)
	for child == nil {
		dot := bytes.IndexByte(name, '.')
		if dot < 0 {
			return nil
		}
		n = n.child(name[:dot])
		if n == nil {
			return nil
		}
		name = name[dot+1:]
		child = n.child(name)
	}
	return child
}
