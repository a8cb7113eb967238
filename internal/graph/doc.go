// Package graph owns the GraphQL of the catalogues (CONTRACT section 5): it validates an operation, plans the fewest questions
// to the index that answer it, asks them through a search.View, and writes the answer from the bytes of the documents.
package graph
