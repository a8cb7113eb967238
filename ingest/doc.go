// Package ingest turns triggers, notifications by webhook and by topic, retries of dead letters, and scheduled runs
// into Requests. It validates and publishes a Request, and returns only after the queue has stored it (CONTRACT
// section 1). It declares the interfaces it needs and must not import http, consumers, the queue, an index or an
// upstream; its sub-package kafka reads topics.
package ingest
