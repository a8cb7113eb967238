// Package mapping defines the tree of fields of an index: its encoding as an Elasticsearch mapping, the fields that are known from
// the start, the types derived for new fields of documents, and the check of a document against the tree. Both engines use it, so
// that they agree. It imports only internal/core, never an engine.
package mapping
