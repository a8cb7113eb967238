// Package index defines the port to the search index: the interface Index, which every engine implements as one concrete type, and
// Spec, the configuration of an alias. It imports only internal/core and internal/index/mapping, never an engine; the engines are
// index/embedded and index/elastic, and both pass the conformance suite of index/indextest.
package index
