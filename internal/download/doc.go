// Package download gives the documents of a catalogue as files (CONTRACT section 5): TSV, CSV, JSON or JSON lines, one as it is and
// several in an archive. It reads the documents as a stream and writes them as one, so that its memory does not grow with their
// number.
//
// It asks search.View alone, and may import what that gives: internal/catalogue with its definition, internal/index with its
// mapping and query, internal/search, internal/sqon; and internal/download/extract.
package download
