package kinds

import (
	"iter"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// Counter counts the kinds of the documents of records. Its memory is bounded by the bytes of the paths. It is not safe for concurrent use.
type Counter struct {
	known *mapping.Field
	most  int
	root  *node
	// bytes is about the memory of the nodes beside those of known, overflown is set if it is over most.
	bytes     int
	overflown bool
	// record is the number of the current record, path leads to the current value.
	record uint32
	path   []*node
	// counted are the nodes with counts.
	counted []*node
}

// node is a path.
type node struct {
	path string
	// known is set for a field of a known type, which is not counted; typed if it is a value, so that nothing is below it. free is set for a
	// free-form object, of which only that it is an object counts.
	known, typed, free bool
	children           map[string]*node
	counts             core.PathKinds
	counted            bool
	// seen are the numbers of the records that were counted last, by kind.
	seen [4]uint32
}

// nodeBytes is about the memory of a node without its path.
const nodeBytes = 200

// NewCounter returns a Counter that does not count the fields of known, whose types are never decided from counts. Kinds with more than most
// bytes are overflown.
func NewCounter(known *mapping.Field, most int) *Counter {
	c := &Counter{known: known, most: most}
	c.forget()
	return c
}

// forget forgets all paths.
func (c *Counter) forget() {
	c.root, c.bytes, c.counted = &node{}, 0, nil
	c.root.add(c.known)
}

func (n *node) add(known *mapping.Field) {
	if known == nil {
		return
	}
	n.children = make(map[string]*node, len(known.Properties))
	for name, f := range known.Properties {
		child := n.child(name)
		child.known, child.typed = true, !f.Container() || f.Disabled()
		if n.children[name] = child; !child.typed {
			child.add(f)
		}
	}
}

func (n *node) child(name string) *node {
	path := name
	if n.path != "" {
		path = n.path + "." + name
	}
	return &node{path: path, free: name == mapping.ReservedInfo}
}

// Record begins a record: what follows counts once for each path and kind, until the next one begins.
func (c *Counter) Record() { c.record++ }

// Add counts a document of the record.
func (c *Counter) Add(document []byte) {
	if c.overflown {
		return
	}
	c.path = append(c.path[:0], c.root)
	mapping.Visit(document, c)
}

// Take returns the kinds that were counted since the last call, as those of a number of records, and begins anew.
func (c *Counter) Take(records int64) core.Kinds {
	kinds := core.OverflownKinds()
	if !c.overflown {
		slices.SortFunc(c.counted, func(a, b *node) int { return strings.Compare(a.path, b.path) })
		kinds = core.NewKinds(records, c.all(), c.most)
	}
	for _, n := range c.counted {
		n.counts, n.counted = core.PathKinds{}, false
	}
	c.counted, c.overflown = c.counted[:0], false
	if c.bytes > c.most { // otherwise the next records have most of the paths again
		c.forget()
	}
	return kinds
}

// all returns the paths that were counted.
func (c *Counter) all() iter.Seq2[string, core.PathKinds] {
	return func(yield func(string, core.PathKinds) bool) {
		for _, n := range c.counted {
			if !yield(n.path, n.counts) {
				return
			}
		}
	}
}

func (c *Counter) at() *node { return c.path[len(c.path)-1] }

// Enter implements mapping.Visitor.
func (c *Counter) Enter(name []byte) bool {
	above := c.at()
	n := above.children[string(name)]
	if n == nil {
		if n = above.child(string(name)); c.fits(n) {
			if above.children == nil {
				above.children = map[string]*node{}
			}
			above.children[string(name)] = n
		}
	}
	if n.typed || c.overflown {
		return false
	}
	c.path = append(c.path, n)
	return true
}

// fits adds the memory of a new node, and reports whether the bound allows it.
func (c *Counter) fits(n *node) bool {
	c.bytes += nodeBytes + len(n.path)
	c.overflown = c.overflown || c.bytes > maxMemory(c.most)
	return !c.overflown
}

// maxMemory returns the memory for the paths of Kinds with most bytes: encoded, a path is shorter than its node.
func maxMemory(most int) int { return 16 * most }

// Leave implements mapping.Visitor.
func (c *Counter) Leave() { c.path = c.path[:len(c.path)-1] }

// Object implements mapping.Visitor.
func (c *Counter) Object(element bool) bool {
	n := c.at()
	c.count(n, 0, &n.counts.Objects)
	n.counts.Lists = n.counts.Lists || element
	return !n.free
}

// Value implements mapping.Visitor.
func (c *Counter) Value(kind mapping.Kind, raw []byte) {
	n := c.at()
	switch kind {
	case mapping.KindNumber:
		c.count(n, 1, &n.counts.Numbers)
	case mapping.KindBoolean:
		c.count(n, 2, &n.counts.Booleans)
	case mapping.KindString:
		c.count(n, 3, &n.counts.Texts)
		if !n.counts.NoDate {
			dated, taken := mapping.DateText(raw)
			n.counts.Undated, n.counts.NoDate = n.counts.Undated || !dated, !taken
		}
	case mapping.KindObject, mapping.KindNull:
	}
}

// count counts a record once for a kind at a path.
func (c *Counter) count(n *node, kind int, counts *int64) {
	if n.seen[kind] == c.record || n.known {
		return
	}
	n.seen[kind] = c.record
	*counts++
	if !n.counted {
		n.counted = true
		c.counted = append(c.counted, n)
	}
}
