// Package download returns the documents of a catalogue as files (CONTRACT section 5): TSV, CSV, JSON or JSON lines, one file
// directly and several in an archive. It streams the documents, so that its memory does not grow with their number.
//
// It accesses documents only through view.View, and may import the packages of its types: internal/search/catalogue with its
// definition, internal/index with its mapping and query, internal/search/view, internal/filter/sqon; and internal/search/download/extract.
package download
