package explore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/http/explore"
	"tutti/internal/core"
)

// TestExample: the first query has the catalogue's own fields, without multi-fields, which documents do not have.
func TestExample(t *testing.T) {
	var fields []core.CatalogueField
	for _, f := range [][2]string{
		{"id", "keyword"},
		{"donor", "object"},
		{"donor.name", "text"},
		{"donor.name.raw", "keyword"},
		{"a-b", "keyword"},
		{"donor.center", "keyword"},
		{"sex", "keyword"},
		{"age", "integer"},
		{"born", "date"},
		{"visits", "nested"},
		{"visits.id", "keyword"},
	} {
		fields = append(fields, core.CatalogueField{Name: f[0], Type: f[1]})
	}
	const want = `query ($filters: JSON) {
  donor {
    hits(filters: $filters, first: 5) {
      total
      edges {
        node {
          id
          donor {
            center
          }
          sex
          age
          born
          visits {
            hits {
              edges {
                node {
                  id
                }
              }
            }
          }
        }
      }
    }
    aggregations(filters: $filters) {
      id {
        bucket_count
        buckets(max: 10) {
          key
          doc_count
        }
      }
      donor__name__raw {
        bucket_count
        buckets(max: 10) {
          key
          doc_count
        }
      }
      age {
        stats {
          min
          max
        }
      }
    }
  }
}
`
	if got := explore.Example("donor", fields); got != want {
		t.Errorf("the example is\n%s", got)
	}
}

// TestLayoutOfTypes: a page has columns for words of every type, counts only values that engines count, and searches all words.
func TestLayoutOfTypes(t *testing.T) {
	var fields []core.CatalogueField
	for _, name := range []string{"text", "match_only_text", "search_as_you_type", "keyword", "version", "flattened", "flat_object", "ip", "long", "date_nanos", "binary", "geo_point"} {
		fields = append(fields, core.CatalogueField{Name: "a_" + name, Type: name})
	}
	for _, name := range []string{"keyword", "long"} { // in the index without values by document
		fields = append(fields, core.CatalogueField{Name: "b_" + name, Type: name, Uncounted: "why"})
	}
	if l := explore.NewLayout(fields, gjson.Parse(`{"table":{"defaultSorting":[{"fieldName":"b_long"}]},"facets":{"aggregations":[{"fieldName":"b_long"},{"fieldName":"b_keyword"},{"fieldName":"a_ip"}]}}`)); l.Sort != "" ||
		len(l.Terms) != 1 || slices.ContainsFunc(l.Ranges, func(f core.CatalogueField) bool { return f.Uncounted != "" }) {
		t.Errorf("of fields without facets and sorts: sort %q, terms %v, ranges %v", l.Sort, l.Terms, l.Ranges)
	}
	l := explore.NewLayout(fields, gjson.Result{})
	names := func(fields []core.CatalogueField) (names []string) {
		for _, f := range fields {
			names = append(names, strings.TrimPrefix(f.Name, "a_"))
		}
		return names
	}
	for what, got := range map[string]struct{ got, want []string }{
		"columns": {names(l.Columns), []string{"text", "match_only_text", "search_as_you_type", "keyword", "version", "ip", "long", "date_nanos", "b_keyword", "b_long"}},
		"terms":   {names(l.Terms), []string{"keyword", "ip"}},
		"ranges":  {names(l.Ranges), []string{"long", "date_nanos"}},
		"default": {l.Default, []string{"a_keyword", "a_version", "a_ip", "a_long", "a_date_nanos", "b_keyword"}},
	} {
		if !slices.Equal(got.got, got.want) {
			t.Errorf("%s: %v, want %v", what, got.got, got.want)
		}
	}
}
