// Package kv holds the key-value bucket of tutti: jobs, compare-and-swap cells, notes of pages and hand-out counts.
package kv
