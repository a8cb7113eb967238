// Package querying has the benchmarks of what reads an index: a portal's pages, downloads, introspection, and the embedded index with its
// writes.
package querying
