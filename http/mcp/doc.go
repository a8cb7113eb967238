// Package mcp serves the catalogues to clients of the Model Context Protocol, such as language models. Every tool reads as the caller of
// the HTTP request, through the same ports as GraphQL. It must not import engines or internal/search.
package mcp
