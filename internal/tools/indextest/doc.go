// Package indextest is the conformance suite of the port internal/index, which every engine must pass. It may import internal/core,
// internal/index and internal/index/mapping, and is imported only by tests.
package indextest
