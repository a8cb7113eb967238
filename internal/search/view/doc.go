// Package view is the only way to the documents of a catalogue: a View combines the catalogue and the caller, and adds the
// catalogue's access filter (CONTRACT section 6) to every request to the index. Packages that show documents, counts or values to
// a caller (graphql, downloads, saved sets, federation) use a View, never an index.
package view
