package request

import (
	"container/list"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// Limits of the cached queries of a catalogue. A parsed query takes about thirty times the memory of its text.
const (
	maxQueries     = 1000
	maxCachedBytes = 128 << 10
	maxCachedQuery = 32 << 10
)

// documentCache caches validated queries, least recently used first out, so that repeated queries are parsed and validated once. The
// zero value is an empty cache.
type documentCache struct {
	mu    sync.Mutex
	byKey map[string]*list.Element
	// order has the most recently used query first.
	order list.List
	bytes int
}

type cachedDocument struct {
	text string
	doc  *document
}

// document is a validated document.
type document struct {
	*ast.QueryDocument

	mu sync.Mutex
	// derived are values derived from fields that do not depend on variables.
	derived map[*ast.Field]any
}

// maxDerived limits the derived values of one document: one for each list of documents that it selects. Merged fields are new in
// each request and would fill the cache.
const maxDerived = 32

// load returns the value derived from a field, nil for none.
func (d *document) load(f *ast.Field) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.derived[f]
}

func (d *document) store(f *ast.Field, value any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.derived == nil {
		d.derived = map[*ast.Field]any{}
	}
	if len(d.derived) < maxDerived {
		d.derived[f] = value
	}
}

// get returns the document of a query text, nil if it is not cached.
func (c *documentCache) get(text string) *document {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[text]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	kept, _ := e.Value.(cachedDocument)
	return kept.doc
}

func (c *documentCache) put(text string, doc *document) {
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
	c.byKey[text] = c.order.PushFront(cachedDocument{text, doc})
	c.bytes += len(text)
	for c.bytes > maxCachedBytes || c.order.Len() > maxQueries {
		kept, _ := c.order.Remove(c.order.Back()).(cachedDocument)
		delete(c.byKey, kept.text)
		c.bytes -= len(kept.text)
	}
}
