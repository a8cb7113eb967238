// Package http owns what a client sees: routes, middleware, request parsing, response bodies, problems and the OpenAPI
// document (CONTRACT). It declares the interfaces it needs and must not import ingest, consumers, the queue, an index,
// an upstream or the configuration; the program wires them.
package http
