// Package consumers owns the durable consumers: they expand runs into chains of page Requests, fetch records, make
// documents, write them in bulk, and acknowledge a message only after the final outcome of each of its documents
// (RELIABILITY, P1 to P6). They also store the progress of jobs, sweep the index at the end of a run, and store rejected
// records as dead letters.
//
// It imports internal/core and internal/bulk, and declares its interfaces in ports.go; it never imports a queue, an
// engine, an upstream client or HTTP.
package consumers
