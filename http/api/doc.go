// Package api routes requests to the surfaces: middleware, access, bodies, query parameters, answers and problems. What a handler needs
// of a request (its body, caller or id) it takes from the request, by functions. It must not import a surface.
package api
