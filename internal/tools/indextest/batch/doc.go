// Package batch has what the suites of internal/tools/indextest write: the name of an alias, batches as the bulk writer encodes them, and why
// an engine did not take one.
package batch
