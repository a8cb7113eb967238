// Package consumers has the durable consumers: they expand runs into chains of page Requests, fetch records, convert them
// to documents, write these in bulk, and acknowledge a message only after the final outcome of each of its documents
// (RELIABILITY, P1 to P6). They also store the progress of jobs, sweep the index at the end of a run, and store rejected
// records as dead letters.
//
// This package configures and starts the parts, and watches the index: loop pulls messages and retries them, record and run
// are the workers of single records and of runs, page that of the pages of runs, retry that of the retries of dead letters, fetch calls the upstream, outcome handles the results of writing
// documents.
//
// They import internal/core, internal/index/bulk and internal/base/span, and declare their interfaces; they never import a queue, an engine, an
// upstream client or HTTP.
package consumers
