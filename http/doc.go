// Package http implements the HTTP API (CONTRACT sections 0 to 8). The tests of its packages ask a router of all surfaces (internal/tools/apitest).
//
//   - server listens: limits of connections, TLS, net/http's own error responses.
//   - api routes requests: middleware, access, bodies, query parameters, responses and problems.
//   - indexing, metadata, search and system are the surfaces: handlers, the ports they need, and openapi.yaml.
//   - problem is the body of every error response, openapi merges the OpenAPI document from the parts of the surfaces.
//
// Surfaces import api, never each other; internal/app wires them.
package http
