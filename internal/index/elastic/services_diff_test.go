//go:build services

package elastic_test

import (
	"fmt"
	"strings"
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
	searchtest.Run(t, 1, 2000, openTidy, dialect(t))
}

// TestSearchTable holds searches to answers that were worked out by hand.
func TestSearchTable(t *testing.T) { searchtest.RunTable(t, openTidy, dialect(t)) }

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
	if engineOf(t).Product != flavour.OpenSearch {
		return searchtest.Dialect{}
	}
	return searchtest.Dialect{
		Types:  map[mapping.Type]mapping.Type{mapping.Flattened: mapping.FlatObject},
		Values: strings.NewReplacer("-86400001", "-864"), // OpenSearch reads a sign and five or more digits as a year
	}
}
