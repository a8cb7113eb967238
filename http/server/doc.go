// Package server listens: it bounds connections, speaks TLS, and turns what net/http refuses by itself into problems. It knows no
// route and must not import api.
package server
