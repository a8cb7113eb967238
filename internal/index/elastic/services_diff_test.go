//go:build services

package elastic_test

import (
	"sync"
	"testing"

	"tutti/internal/index"
	"tutti/internal/index/searchtest"
)

// TestSearchAgainstOracle holds searches to what random documents and filters should give; the environment makes it larger.
func TestSearchAgainstOracle(t *testing.T) {
	searchtest.Run(t, 1, 2000, openTidy)
}

// TestSearchTable holds searches to answers that were worked out by hand.
func TestSearchTable(t *testing.T) { searchtest.RunTable(t, openTidy) }

func openTidy(t *testing.T) index.Index {
	return tidy{Index: cluster(t), t: t, once: new(sync.Map)}
}
