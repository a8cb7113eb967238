package searchtest

import (
	"testing"

	"tutti/internal/index"
)

// TestLowering compares query's lowering of filters with the oracle.
func TestLowering(t *testing.T) {
	RunTypes(t, func(*testing.T) index.Index { return &naive{} }, Dialect{}, 150, 2000)
}

// TestTable compares the oracle, and query's lowering, with expected results.
func TestTable(t *testing.T) {
	RunTable(t, func(*testing.T) index.Index { return &naive{} }, Dialect{})
}
