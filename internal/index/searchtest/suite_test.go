package searchtest

import (
	"testing"

	"tutti/internal/index"
)

// TestLowering holds what query makes of filters against the oracle.
func TestLowering(t *testing.T) {
	Run(t, 1, 2000, func(*testing.T) index.Index { return &naive{} }, "scaled_float", "unsigned_long")
}

// TestTable holds the oracle to answers that were worked out by hand, and what query makes of filters too.
func TestTable(t *testing.T) {
	RunTable(t, func(*testing.T) index.Index { return &naive{} })
}
