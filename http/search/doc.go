// Package search is the surface of introspection, GraphQL and downloads (CONTRACT sections 2 and 5). It imports the core of http, no
// other surface.
package search
