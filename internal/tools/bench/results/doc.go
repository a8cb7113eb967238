// Package results has the figures of a benchmark: their values and targets, what a ratio compares, whether a target is met, and the
// report of all as text and JSON.
package results
