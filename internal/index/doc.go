// Package index defines the port to the search index: the interface Index, which every engine implements as one concrete type, and
// Spec, the configuration of an alias. It imports only internal/core, internal/filter/query and internal/index/mapping, never an engine; the
// engines are index/embedded and index/elastic, and both pass the conformance suites internal/tools/indextest and
// internal/tools/searchtest.
package index
