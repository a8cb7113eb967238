package kinds

import (
	"iter"
	"slices"
	"strings"

	"tutti/internal/base/jsontext"
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
	// documents are those that were counted since the last Take.
	documents int64
	// record is the number of the current record, depth that of the objects and arrays around the current value.
	record uint32
	depth  int
	// counted are the nodes with counts.
	counted []*node
	// shapes are what records of a core.Record.Shape counted, noted what the current one did, if noting is set.
	shapes map[uint64][]kindAt
	noted  []kindAt
	noting bool
}

// kindAt is a kind that a record counts at a path.
type kindAt struct {
	*node
	kind int
}

// The kinds of kindAt. An element is an object in an array; what is one of others is one of texts, too.
const (
	objects = iota
	numbers
	booleans
	texts
	elements
	others // texts that are not days: they may be no dates
)

// maxShapes and maxNoted bound the shapes, and the kinds of each.
const (
	maxShapes = 256
	maxNoted  = 512
)

// node is a path; written is its last name with quotes and a colon, as the member begins in most documents.
type node struct {
	path, written string
	children      map[string]*node
	// first is the member with which objects at the path begin, next the one that follows this one, as they were when a name was last looked
	// up there: most objects of a page have the same members in the same order.
	first, next *node
	counts      core.PathKinds
	// seen are the numbers of the records that were counted last, by kind.
	seen [6]uint32
	// known is set for a field of a known type, which is not counted; typed if it is a value, so that nothing is below it. free is set for a
	// free-form object, of which only that it is an object counts.
	known, typed, free, counted bool
}

// nodeBytes is about the memory of a node without its path.
const nodeBytes = 224

// NewCounter returns a Counter that does not count the fields of known, whose types are never decided from counts. Kinds with more than most
// bytes are overflown.
func NewCounter(known *mapping.Field, most int) *Counter {
	c := &Counter{known: known, most: most}
	c.forget()
	return c
}

// forget forgets all paths.
func (c *Counter) forget() {
	c.root, c.bytes, c.counted, c.shapes = &node{}, 0, nil, make(map[uint64][]kindAt)
	c.root.add(c.known)
}

func (n *node) add(known *mapping.Field) {
	if known == nil {
		return
	}
	n.children = make(map[string]*node, len(known.Properties))
	for name, f := range known.Properties {
		child := n.below(name)
		child.known, child.typed = true, !f.Container() || f.Disabled()
		if n.children[child.name()] = child; !child.typed {
			child.add(f)
		}
	}
}

// below returns a new node for a member of n. A blank name is that of no field: an index rejects the document, so that nothing is counted there.
func (n *node) below(name string) *node {
	path := name
	if n.path != "" {
		path = n.path + "." + name
	}
	blank := strings.TrimSpace(name) == ""
	return &node{path: path, written: `"` + name + `":`, known: blank, typed: blank, free: name == mapping.ReservedInfo}
}

func (n *node) name() string { return n.written[1 : len(n.written)-len(`":`)] }

// child returns the node of a member of n, nil if the bound does not allow it.
func (c *Counter) child(n *node, name []byte) *node {
	if known := n.children[string(name)]; known != nil {
		return known
	}
	child := n.below(string(name))
	if c.bytes += nodeBytes + len(child.path); c.bytes > maxMemory(c.most) {
		c.overflown = true
		return nil
	}
	if n.children == nil {
		n.children = map[string]*node{}
	}
	n.children[child.name()] = child
	return child
}

// maxMemory returns the memory for the paths of Kinds with most bytes: encoded, a path is shorter than its node.
func maxMemory(most int) int { return 16 * most }

// Record begins a record: what follows counts once for each path and kind, until the next one begins.
func (c *Counter) Record() { c.record++ }

// Add counts a document of the record, up to what cannot be JSON.
func (c *Counter) Add(document []byte) {
	c.documents++
	if i := jsontext.Space(document, 0); !c.overflown && i < len(document) && document[i] == '{' {
		c.depth = 0
		c.members(document, i, c.root)
	}
}

// AddShaped is Record and Add for the only document of a record of a core.Record.Shape, 0 if it is unknown: all records of the shape must have
// documents with the same names and kinds. A document of a known shape is not read, unless it may have the first text of a page that is no date.
func (c *Counter) AddShaped(document []byte, shape uint64) {
	c.Record()
	kinds, known := c.shapes[shape]
	switch {
	case known && !c.overflown && !mayBeDates(kinds):
		c.documents++
		for _, k := range kinds {
			c.count(k.node, k.kind)
		}
	case known || shape == 0 || len(c.shapes) >= maxShapes:
		c.Add(document)
	default:
		c.noted, c.noting = c.noted[:0], true
		if c.Add(document); !c.overflown && len(c.noted) <= maxNoted {
			c.shapes[shape] = slices.Clone(c.noted)
		}
		c.noting = false
	}
}

// mayBeDates reports whether there may be the first text at one of the paths that is no date.
func mayBeDates(kinds []kindAt) bool {
	return slices.ContainsFunc(kinds, func(k kindAt) bool { return k.kind == others && k.counts.NoDate == 0 })
}

// Take returns the kinds that were counted since the last call, as those of a number of records, and begins anew.
func (c *Counter) Take(records int64) core.Kinds {
	kinds := core.OverflownKinds()
	if !c.overflown {
		slices.SortFunc(c.counted, func(a, b *node) int { return strings.Compare(a.path, b.path) })
		kinds = core.NewKinds(records, c.documents, c.all(), c.most)
	}
	for _, n := range c.counted {
		n.counts, n.counted = core.PathKinds{}, false
	}
	c.counted, c.overflown, c.documents = c.counted[:0], false, 0
	if len(c.shapes) >= maxShapes { // the next records may have others
		clear(c.shapes)
	}
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

// count counts a record once for a kind at a path.
func (c *Counter) count(n *node, kind int) {
	if n.seen[kind] == c.record {
		return
	}
	n.seen[kind] = c.record
	switch kind {
	case objects:
		n.counts.Objects++
	case numbers:
		n.counts.Numbers++
	case booleans:
		n.counts.Booleans++
	case texts:
		n.counts.Texts++
	case elements:
		n.counts.Lists = 1 // of the part that ends with Take
	}
	if c.noting {
		c.noted = append(c.noted, kindAt{n, kind})
	}
	if !n.counted {
		n.counted = true
		c.counted = append(c.counted, n)
	}
}
