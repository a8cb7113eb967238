// Package searchtest is the differential test suite of Index.Search and Index.Stream: random mappings, documents and filters, and
// an oracle that evaluates them by testing every document (CONTRACT sections 4 and 5). The oracle reads the documents' JSON and the
// parsed filter; it shares neither query's lowering nor the engines' handling of values, so that it does not repeat their errors.
// It may import internal/core, internal/filter/sqon, internal/index and its mapping and query, and is imported only by tests.
package searchtest
