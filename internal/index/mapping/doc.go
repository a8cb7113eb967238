// Package mapping defines the tree of fields of an index: its encoding as an Elasticsearch mapping, the fields that are known from
// the start, the types that are declared or decided for new fields, the limits of a tree, and how trees are compared and merged. Both
// engines use it, so that they agree. What documents have at the fields is read by internal/index/document. It imports only internal/core,
// internal/base and internal/filter/fieldtype, never an engine.
package mapping
