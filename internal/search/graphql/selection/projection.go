package selection

import (
	"slices"

	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql/schema"
)

// Projection is the set of source fields that a query reads.
type Projection struct {
	model *catalogue.Model
	// seen is built when there is a second field to compare.
	seen map[string]bool
	// names are field names of the catalogue, paths their paths in the mapping.
	names, paths []string
}

// NewProjection returns an empty projection.
func NewProjection(m *catalogue.Model) *Projection { return &Projection{model: m} }

// add adds a field by name.
func (n *Projection) add(name string) {
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

// Join adds the fields of another projection.
func (n *Projection) Join(other *Projection) {
	if len(n.names) == 0 { // the usual case: one projection only
		n.names, n.paths = slices.Clip(other.names), slices.Clip(other.paths)
		return
	}
	for _, name := range other.names {
		n.add(name)
	}
}

func (n *Projection) count() int { return len(n.paths) }

// wholeDocumentShare is the share of a document's values from which on the whole document is cheaper than its parts.
const wholeDocumentShare = 0.6

// Source returns the source filter for the index. If the query reads most of a document, it requests the whole: an engine returns
// that without parsing it.
func (n *Projection) Source(leaves int) index.Source {
	switch {
	case len(n.paths) == 0:
		return index.Source{None: true}
	case float64(len(n.paths)) > wholeDocumentShare*float64(leaves):
		return index.Source{}
	default:
		return index.Source{Paths: n.paths}
	}
}

// CountLeaves counts the values below a type that schema.Object knows.
func CountLeaves(s *schema.Schema, typeName string) int {
	object, known := s.Object(typeName)
	if !known {
		return 0
	}
	n := 0
	for _, m := range object.Members {
		switch m.Kind {
		case schema.Plain:
			n += CountLeaves(s, m.Type)
		case schema.Connection:
			n += CountLeaves(s, m.Node)
		default:
			n++
		}
	}
	return n
}
