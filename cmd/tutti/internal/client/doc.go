// Package client is the typed client of tutti's HTTP API (CONTRACT sections 0, 1, 6 and 7): triggers, jobs and their progress, dead
// letters, analysis types, API keys. It imports only internal/core and the types of
// answers (internal/report/recordtrace, internal/index/mappingplan), so that it relies on nothing but the public API of the server.
package client
