package embedded_test

import (
	"testing"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/tools/searchtest"
	"tutti/internal/tools/testkit"
)

// TestTypesAgainstOracle compares searches with a reference implementation, in fields of all types.
func TestTypesAgainstOracle(t *testing.T) {
	searchtest.RunTypes(t, func(t *testing.T) index.Index { return open(t, embedded.Config{}) }, searchtest.Dialect{Name: "the embedded index", Engine: fieldtype.Embedded}, testkit.Cases(2000), testkit.Cases(200))
}

// TestSearchTable compares searches with expected results.
func TestSearchTable(t *testing.T) {
	searchtest.RunTable(t, func(t *testing.T) index.Index { return open(t, embedded.Config{}) }, searchtest.Dialect{})
}

// TestSearchPages pages through documents that do not have their id in a field.
func TestSearchPages(t *testing.T) {
	searchtest.RunPages(t, func(t *testing.T) index.Index { return open(t, embedded.Config{}) })
}

// TestManyFacetValues checks a facet with more values than a response has.
func TestManyFacetValues(t *testing.T) {
	searchtest.RunManyValues(t, func(t *testing.T) index.Index { return open(t, embedded.Config{}) })
}

// TestHiddenValues checks that hidden documents change nothing.
func TestHiddenValues(t *testing.T) {
	searchtest.RunHidden(t, func(t *testing.T) index.Index { return open(t, embedded.Config{}) })
}

// TestPeriodsOfRanges checks bounds of ranges that are a year or a month.
func TestPeriodsOfRanges(t *testing.T) {
	searchtest.RunPeriods(t, func(t *testing.T) index.Index { return open(t, embedded.Config{}) }, searchtest.Dialect{})
}

// TestFormats checks dates with a format, zeros and constants.
func TestFormats(t *testing.T) {
	searchtest.RunFormats(t, func(t *testing.T) index.Index { return open(t, embedded.Config{}) })
}
