package graph

import (
	"container/list"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// Bounds of the queries that are kept of a catalogue. The tree of a query takes some thirty times the room of its text.
const (
	maxQueries   = 1000
	maxKeptBytes = 128 << 10
	maxKeptQuery = 32 << 10
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

type keptQuery struct {
	text string
	doc  *ast.QueryDocument
}

// get gives the document of a text, nil when it is not kept.
func (c *queryCache) get(text string) *ast.QueryDocument {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[text]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	kept, _ := e.Value.(keptQuery)
	return kept.doc
}

func (c *queryCache) put(text string, doc *ast.QueryDocument) {
	if len(text) > maxKeptQuery {
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
	c.byKey[text] = c.order.PushFront(keptQuery{text, doc})
	c.bytes += len(text)
	for c.bytes > maxKeptBytes || c.order.Len() > maxQueries {
		kept, _ := c.order.Remove(c.order.Back()).(keptQuery)
		delete(c.byKey, kept.text)
		c.bytes -= len(kept.text)
	}
}
