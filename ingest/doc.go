// Package ingest owns every way a Request comes in: triggers, notifications by webhook and by topic, retries of what was
// given up, and runs at regular times. It validates, publishes a Request, and answers only after the queue has stored it
// (CONTRACT section 1). It declares the interfaces it needs and must not import http, consumers, the queue, an index or an
// upstream; package kafka below it reads topics.
package ingest
