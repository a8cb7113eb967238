// Package searchtest owns the differential suite of Index.Search and Index.Stream: random mappings, documents and filters, and
// an oracle that answers by trying every document (CONTRACT sections 4 and 5). The oracle reads the documents' JSON and the
// filter as it was written; it shares neither query's lowering nor the engines' ideas of values, so that a fault in those is
// not its own. It may import internal/core, internal/sqon, internal/index and its mapping and query, and is imported by tests
// alone.
package searchtest
