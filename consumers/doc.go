// Package consumers owns the durable consumers: they expand runs into chains of page Requests, fetch records, make
// documents, write them in bulk, and acknowledge a message only after the final outcome of each of its documents
// (RELIABILITY, P1 to P6). It also keeps the progress of jobs, the sweep that ends a run, and what is rejected.
//
// It imports internal/core and internal/bulk, and the interfaces that it declares in ports.go; never a queue, an
// engine, an upstream client or HTTP.
package consumers
