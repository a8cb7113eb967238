// Package kv holds the key-value bucket of tutti: jobs, compare-and-swap cells, notes of pages, and counts of how
// often a message was handed out for processing.
package kv
