package graph

import (
	"slices"

	"tutti/internal/catalogue"
	"tutti/internal/graph/schema"
	"tutti/internal/index"
)

// projection is what of the documents a query needs.
type projection struct {
	model *catalogue.Model
	// seen is made when there is something to be compared with.
	seen map[string]bool
	// names are by the catalogue, paths by the mapping.
	names, paths []string
}

// add notes a field by the catalogue's name.
func (n *projection) add(name string) {
	if n.seen == nil {
		n.seen = make(map[string]bool, len(n.names)+1)
		for _, known := range n.names {
			n.seen[known] = true
		}
	}
	if n.seen[name] {
		return
	}
	n.seen[name] = true
	path, known := n.model.Path(name)
	if !known {
		path = name
	}
	n.names, n.paths = append(n.names, name), append(n.paths, path)
}

// join notes the fields of another one.
func (n *projection) join(other *projection) {
	if len(n.names) == 0 { // as a rule there is no more than one
		n.names, n.paths = slices.Clip(other.names), slices.Clip(other.paths)
		return
	}
	for _, name := range other.names {
		n.add(name)
	}
}

func (n *projection) count() int { return len(n.paths) }

// wholeDocumentShare is which part of all values makes the whole document cheaper than its parts.
const wholeDocumentShare = 0.6

// source returns what is asked of the index. Of a document most of which is needed it is the whole: an engine returns that as it
// is, and makes parts of it by reading it.
func (n *projection) source(leaves int) index.Source {
	switch {
	case len(n.paths) == 0:
		return index.Source{None: true}
	case float64(len(n.paths)) > wholeDocumentShare*float64(leaves):
		return index.Source{}
	default:
		return index.Source{Paths: n.paths}
	}
}

// countLeaves counts the values below a type that schema.Object knows.
func countLeaves(s *schema.Schema, typeName string) int {
	object, known := s.Object(typeName)
	if !known {
		return 0
	}
	n := 0
	for _, m := range object.Members {
		switch m.Kind {
		case schema.Plain:
			n += countLeaves(s, m.Type)
		case schema.Connection:
			n += countLeaves(s, m.Node)
		default:
			n++
		}
	}
	return n
}
