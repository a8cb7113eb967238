package graph

import (
	"container/list"
	"slices"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// Bounds of the queries that are kept of a catalogue. The tree of a query takes some thirty times the room of its text.
const (
	maxQueries     = 1000
	maxCachedBytes = 128 << 10
	maxCachedQuery = 32 << 10
)

// queryCache keeps the last queries that were found right, so that those which clients repeat are parsed and validated
// once. The zero value is empty.
type queryCache struct {
	mu    sync.Mutex
	byKey map[string]*list.Element
	// order has the last used first.
	order list.List
	bytes int
}

type cachedQuery struct {
	text string
	doc  *prepared
}

// prepared is a document that was found to be right, and what was made of it.
type prepared struct {
	*ast.QueryDocument
	text  string
	edges edgeCache
}

// maxCachedEdges is how many shapes of one document are kept: one for each list of documents that it asks for, and no more where
// the fields of several selections are one in each request anew.
const maxCachedEdges = 32

// edgeCache keeps the shapes of those selections of a document that no variable changes.
type edgeCache struct {
	mu    sync.Mutex
	edges map[*ast.Field]cachedEdge
}

type cachedEdge struct {
	edge *edge
	// projection is what of the documents it needs.
	projection *projection
}

func (c *edgeCache) get(edges *ast.Field) (cachedEdge, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, found := c.edges[edges]
	return kept, found
}

func (c *edgeCache) put(edges *ast.Field, kept cachedEdge) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.edges == nil {
		c.edges = map[*ast.Field]cachedEdge{}
	}
	if len(c.edges) < maxCachedEdges {
		c.edges[edges] = kept
	}
}

// independentOfVariables reports whether a selection asks for the same whatever the variables are. seen are the fragments that were looked at.
func independentOfVariables(set ast.SelectionSet, seen map[*ast.FragmentDefinition]bool) bool {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			if len(s.Directives) > 0 || !independentOfVariables(s.SelectionSet, seen) || slices.ContainsFunc(s.Arguments, usesVariable) {
				return false
			}
		case *ast.InlineFragment:
			if len(s.Directives) > 0 || !independentOfVariables(s.SelectionSet, seen) {
				return false
			}
		case *ast.FragmentSpread:
			if len(s.Directives) > 0 || s.Definition == nil {
				return false
			}
			if !seen[s.Definition] {
				seen[s.Definition] = true
				if !independentOfVariables(s.Definition.SelectionSet, seen) {
					return false
				}
			}
		}
	}
	return true
}

// usesVariable reports whether a variable is in an argument.
func usesVariable(a *ast.Argument) bool { return hasVariable(a.Value) }

func hasVariable(v *ast.Value) bool {
	return v.Kind == ast.Variable || slices.ContainsFunc(v.Children, func(c *ast.ChildValue) bool { return hasVariable(c.Value) })
}

// get returns the document of a text, nil when it is not kept.
func (c *queryCache) get(text string) *prepared {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[text]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	kept, _ := e.Value.(cachedQuery)
	return kept.doc
}

func (c *queryCache) put(text string, doc *prepared) {
	if len(text) > maxCachedQuery {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[text] != nil {
		return
	}
	if c.byKey == nil {
		c.byKey = map[string]*list.Element{}
	}
	c.byKey[text] = c.order.PushFront(cachedQuery{text, doc})
	c.bytes += len(text)
	for c.bytes > maxCachedBytes || c.order.Len() > maxQueries {
		kept, _ := c.order.Remove(c.order.Back()).(cachedQuery)
		delete(c.byKey, kept.text)
		c.bytes -= len(kept.text)
	}
}
