package request

import (
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/cache"
)

// Limits of the cached queries of a catalogue. A parsed query takes about thirty times the memory of its text.
const (
	maxQueries     = 1000
	maxCachedBytes = 128 << 10
	maxCachedQuery = 32 << 10
)

// documentCache caches validated queries by their texts, so that repeated queries are parsed and validated once.
type documentCache struct{ *cache.LRU[string, *document] }

func newDocumentCache() documentCache {
	return documentCache{cache.NewLRU[string, *document](maxCachedBytes)}
}

// put stores a document, unless its text is too long. A short text costs as much as maxQueries allows.
func (c documentCache) put(text string, doc *document) {
	if len(text) <= maxCachedQuery {
		c.Put(text, doc, int64(max(len(text), maxCachedBytes/maxQueries)))
	}
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
