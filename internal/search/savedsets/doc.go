// Package savedsets saves sets of documents that a search finds, and finds saved sets. It connects the sets of package sets with
// GraphQL.
package savedsets
