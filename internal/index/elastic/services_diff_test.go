//go:build services

package elastic_test

import (
	"fmt"
	"testing"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest"
)

// TestTypesAgainstOracle compares searches with the oracle, in fields of all types that the engine has, of an index with two shards.
func TestTypesAgainstOracle(t *testing.T) {
	t.Parallel()
	searchtest.RunTypes(t, func(t *testing.T) index.Index { return tidyIndex(t, func(c *elastic.Config) { c.Shards = 2 }) }, dialect(t), 2000, 200)
}

// TestSearchTable holds searches to answers that were worked out by hand.
func TestSearchTable(t *testing.T) { searchtest.RunTable(t, tidyCluster, dialect(t)) }

// TestPeriodsOfRanges checks bounds of ranges that are a year or a month.
func TestPeriodsOfRanges(t *testing.T) { searchtest.RunPeriods(t, tidyCluster, dialect(t)) }

// TestFormats checks dates with a format, zeros and constants.
func TestFormats(t *testing.T) { searchtest.RunFormats(t, tidyCluster) }

// TestSearchPages pages through documents that hold their id in no field, in one shard and in several.
func TestSearchPages(t *testing.T) {
	for _, shards := range []int{1, 3} {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) {
			searchtest.RunPages(t, func(t *testing.T) index.Index {
				return tidyIndex(t, func(c *elastic.Config) { c.Shards = shards })
			})
		})
	}
}

// dialect returns how the engine departs from Elasticsearch 8.
func dialect(t testing.TB) searchtest.Dialect {
	engine := engineOf(t)
	d := searchtest.Dialect{Name: engine.String(), Engine: fieldtype.Elasticsearch, Conflates: true, ZerosApart: true}
	switch {
	case engine.Product == flavour.OpenSearch:
		d.Engine, d.FirstInstants, d.Signed, d.PlainWildcards = fieldtype.OpenSearch, true, true, true
		d.Types = map[mapping.Type]mapping.Type{mapping.Flattened: mapping.FlatObject}
		d.Omitted = map[mapping.Type][]string{mapping.Date: {"-86400001"}} // a sign and five or more digits are a year
	case engine.Version.Major < 8:
		d.FirstInstants, d.Omitted = true, map[mapping.Type][]string{mapping.Date: {"-1", "-86400001"}}
	}
	return d
}

// TestManyFacetValues checks a facet with more values than a response has.
func TestManyFacetValues(t *testing.T) { searchtest.RunManyValues(t, tidyCluster) }

// TestHiddenValues checks that hidden documents change nothing.
func TestHiddenValues(t *testing.T) {
	searchtest.RunHidden(t, tidyCluster)
}
