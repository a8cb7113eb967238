// Package bulk owns the path of a document into the index: batches by bytes, count and age, pooled bodies that nobody
// changes while they fly, adaptive concurrency, retries, and one core.Result for each core.Write.
//
// One buffer fills per index while others fly. Indexes share the slots for requests so that one that hangs or is overloaded
// delays no other (RELIABILITY, P10). A buffer goes back to the pool only after Engine.Write has returned.
// Whatever happens to a request, each Write of a Ticket ends with exactly one Result: what the engine said of it, or
// core.OutcomeRetry where nothing is known. See Config for what bounds the memory.
//
// It knows no engine, and of tutti it must not import anything but internal/core.
package bulk
