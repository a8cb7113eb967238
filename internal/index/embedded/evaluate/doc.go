// Package evaluate executes searches of the embedded index: facets, and pages and streams in a sort order, of the documents that match finds. It
// reads segments only, never the index file.
package evaluate
