// Package api routes requests to the surfaces: middleware, access, bodies, query parameters, responses and problems. Its functions
// return what a handler needs of a request, such as the body, the caller or the id. It must not import a surface.
package api
