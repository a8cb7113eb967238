// Package indextest owns the conformance suite of the port internal/index: what every engine must do, whatever it is
// made of. It may import internal/core, internal/index and internal/index/mapping, and is imported by tests alone.
package indextest
