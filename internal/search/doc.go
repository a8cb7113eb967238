// Package search is the one way to the documents of a catalogue: a View knows the catalogue and who asks, and and-s the
// catalogue's access filter (CONTRACT section 6) to every question before the index gets it. What shows documents, counts or
// values to a caller (graph, downloads, saved sets, federation) has a View and no index.
package search
