// Package bulk implements the path of a document into the index: batches limited by bytes, count and age, pooled bodies that are
// immutable while in flight, adaptive concurrency, retries, and one core.Result per core.Write.
//
// Per index, one buffer fills while others are in flight. Indexes share the request slots so that one that hangs or is overloaded
// does not delay others (RELIABILITY, P10). A buffer returns to the pool only after Engine.Write has returned. Whatever happens to
// a request, each Write of a Ticket ends with exactly one Result: the engine's, or core.OutcomeRetry when the outcome is unknown.
// Config describes the memory limits.
//
// It is independent of engines, and of tutti must import only internal/core, internal/base/jsontext and internal/base/span.
package bulk
