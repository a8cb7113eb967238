// Package index owns the port to the search index: the interface Index, which every engine implements as one
// concrete type, and Spec, which says what an alias shall look like. It imports internal/core and
// internal/index/mapping alone, never an engine; the engines are index/embedded and index/elastic, and both pass the
// conformance suite of index/indextest.
package index
