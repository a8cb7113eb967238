// Package loop pulls the Requests of a repository from its durable consumers and calls a handler for each message: bounded,
// only while the index takes writes, with heartbeats, retries, and a quarantine of poison messages after a crash.
//
// It imports internal/core and internal/retry, and knows no upstream, no document and no job.
package loop
