// Package client owns the typed client of tutti's HTTP API (CONTRACT sections 0, 1, 6 and 7): triggers, jobs and how
// they go on, dead letters, analysis types, API keys. It imports internal/core alone, so that it knows of the server only what any client may rely on.
package client
