// Package results has the figures of a benchmark: their values, targets and noise, and their report as text and JSON.
package results
