// Package intake has the benchmarks of what tutti takes in: the rates of requests, and submissions to the built-in metadata repository, their
// validation and its pages.
package intake
