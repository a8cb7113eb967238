// Package tools holds what only tests, the demo and the benchmarks use: conformance suites that each engine, queue and store must pass, repositories
// in process with faults (testkit, which must not import tutti), generators, seeded faults, and the checks of make lint.
package tools
