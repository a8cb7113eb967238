// Package server accepts connections: it limits them, terminates TLS, and converts net/http's own error responses into problems. It
// knows no routes and must not import api.
package server
