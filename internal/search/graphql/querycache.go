package graphql

import (
	"container/list"
	"slices"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// Limits of the cached queries of a catalogue. A parsed query takes about thirty times the memory of its text.
const (
	maxQueries     = 1000
	maxCachedBytes = 128 << 10
	maxCachedQuery = 32 << 10
)

// queryCache caches validated queries, least recently used first out, so that repeated queries are parsed and validated once. The
// zero value is an empty cache.
type queryCache struct {
	mu    sync.Mutex
	byKey map[string]*list.Element
	// order has the most recently used query first.
	order list.List
	bytes int
}

type cachedQuery struct {
	text string
	doc  *prepared
}

// prepared is a validated document with its cached edge selections.
type prepared struct {
	*ast.QueryDocument
	text  string
	edges edgeCache
}

// maxCachedEdges limits the cached edge selections of one document: one for each list of documents that it selects. Merged fields
// are new in each request and would fill the cache.
const maxCachedEdges = 32

// edgeCache caches the selections of edges that do not depend on variables.
type edgeCache struct {
	mu    sync.Mutex
	edges map[*ast.Field]cachedEdge
}

type cachedEdge struct {
	edge *edge
	// projection is what the selection reads of the documents.
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

// independentOfVariables reports whether a selection is the same for all variables. seen are the fragments visited before.
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

// usesVariable reports whether an argument contains a variable.
func usesVariable(a *ast.Argument) bool { return hasVariable(a.Value) }

func hasVariable(v *ast.Value) bool {
	return v.Kind == ast.Variable || slices.ContainsFunc(v.Children, func(c *ast.ChildValue) bool { return hasVariable(c.Value) })
}

// get returns the document of a query text, nil if it is not cached.
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
