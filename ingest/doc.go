// Package ingest owns every way a Request comes in: it validates a trigger, publishes a Request and answers only after
// the queue has stored it (CONTRACT section 1). It declares the interfaces it needs and must not import http, consumers,
// the queue, an index or an upstream.
package ingest
