// Package mapping owns the tree of fields of an index: its form as an Elasticsearch mapping, the fields that are known
// from the start, the types that are derived for paths that a document brings along, and the check of a document
// against the tree. Both engines derive and check by it, so that they agree. It imports internal/core alone, never an
// engine.
package mapping
