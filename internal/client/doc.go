// Package client owns the typed client of tutti's HTTP API (CONTRACT sections 0 and 1): triggers, jobs and how they go
// on, dead letters. It imports internal/core alone, so that it knows of the server only what any client may rely on.
package client
