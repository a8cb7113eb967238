// Package http owns what a client sees (CONTRACT); its tests try all surfaces together, behind one router.
//
//   - server listens: limits of connections, TLS, what net/http refuses by itself.
//   - api routes requests: middleware, access, bodies, query parameters, answers and problems.
//   - indexing, metadata, search and system are the surfaces: handlers, the ports they need, and openapi.yaml.
//   - problem is the body of every error, openapi makes the served document of the surfaces' parts.
//
// Surfaces import api, never each other; internal/app wires them.
package http
