package embedded_test

import (
	"testing"

	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/searchtest"
)

// TestSearchAgainstOracle holds searches to what random documents and filters should give; the environment makes it larger.
func TestSearchAgainstOracle(t *testing.T) {
	searchtest.Run(t, 1, 2000, func(t *testing.T) index.Index { return open(t, embedded.Config{}) }, "scaled_float", "unsigned_long")
}

// TestSearchTable holds searches to answers that were worked out by hand.
func TestSearchTable(t *testing.T) {
	searchtest.RunTable(t, func(t *testing.T) index.Index { return open(t, embedded.Config{}) })
}

// TestSearchPages pages through documents that hold their id in no field.
func TestSearchPages(t *testing.T) {
	searchtest.RunPages(t, func(t *testing.T) index.Index { return open(t, embedded.Config{}) })
}
