// Package search implements the routes of introspection, GraphQL and downloads (CONTRACT sections 2 and 5). It imports http/api and
// http/problem, no other package of routes.
package search
