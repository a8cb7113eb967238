// Package execute plans operations: which requests to send to the index, as few as possible, and how to write the response from their
// results. An Executor executes plans.
package execute
