//go:build services

package elastic_test

import (
	"fmt"
	"sync"
	"testing"

	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest"
)

// TestSearchAgainstOracle compares searches of random documents and filters with the oracle; the environment sets how many.
func TestSearchAgainstOracle(t *testing.T) {
	// OpenSearch stores no values of a wildcard to sort and count by, and counts too few of several values of an unsigned_long (3.2.0).
	searchtest.Run(t, 1, 2000, openTidy, dialect(t), "wildcard", "unsigned_long")
}

// TestSearchTable holds searches to answers that were worked out by hand.
func TestSearchTable(t *testing.T) { searchtest.RunTable(t, openTidy, dialect(t)) }

// TestPeriodsOfRanges checks bounds of ranges that are a year or a month.
func TestPeriodsOfRanges(t *testing.T) { searchtest.RunPeriods(t, openTidy, dialect(t)) }

// TestFormats checks dates with a format, zeros and constants.
func TestFormats(t *testing.T) { searchtest.RunFormats(t, openTidy) }

// TestSearchPages pages through documents that hold their id in no field, in one shard and in several.
func TestSearchPages(t *testing.T) {
	for _, shards := range []int{1, 3} {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) {
			searchtest.RunPages(t, func(t *testing.T) index.Index {
				return tidy{Index: cluster(t, func(c *elastic.Config) { c.Shards = shards }), t: t, once: new(sync.Map)}
			})
		})
	}
}

func openTidy(t *testing.T) index.Index {
	return tidy{Index: cluster(t), t: t, once: new(sync.Map)}
}

// dialect returns how the engine departs from Elasticsearch 8.
func dialect(t testing.TB) searchtest.Dialect {
	switch engine := engineOf(t); {
	case engine.Product == flavour.OpenSearch: // it reads a sign and five or more digits as a year
		return searchtest.Dialect{
			Types:   map[mapping.Type]mapping.Type{mapping.Flattened: mapping.FlatObject},
			Omitted: map[mapping.Type][]string{mapping.Date: {"-86400001"}},

			FirstInstants: true,
		}
	case engine.Version.Major < 8:
		return searchtest.Dialect{Omitted: map[mapping.Type][]string{mapping.Date: {"-1", "-86400001"}}}
	default:
		return searchtest.Dialect{}
	}
}

// TestManyFacetValues checks a facet with more values than a response has.
func TestManyFacetValues(t *testing.T) { searchtest.RunManyValues(t, openTidy) }

// TestHiddenValues checks that hidden documents change nothing.
func TestHiddenValues(t *testing.T) {
	searchtest.RunHidden(t, openTidy)
}
