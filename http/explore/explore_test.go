package explore_test

import (
	"fmt"
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

// TestQuickFields: the quick search searches its own fields and what is on the screen: words of columns and facets, no numbers, each once.
func TestQuickFields(t *testing.T) {
	field := func(name, kind string) core.CatalogueField { return core.CatalogueField{Name: name, Type: kind} }
	l := explore.Layout{Quick: []string{"id"}, Terms: []core.CatalogueField{field("study", "keyword"), field("ok", "boolean")}}
	got := l.QuickFields([]core.CatalogueField{field("id", "keyword"), field("strategy", "keyword"), field("age", "long"), field("notes", "text")})
	if want := []string{"id", "strategy", "notes", "study"}; !slices.Equal(got, want) || len(l.Quick) != 1 {
		t.Errorf("%v, want %v", got, want)
	}
	many := make([]core.CatalogueField, 100)
	for i := range many {
		many[i] = field(strings.Repeat("x", i+1), "keyword")
	}
	if n := len(l.QuickFields(many)); n != 16 {
		t.Errorf("%d fields are searched", n)
	}
}

// TestSteps: a field of fractions whose lowest and highest value are whole has whole steps, unless they are close.
func TestSteps(t *testing.T) {
	for _, c := range []struct{ stats, kind, step, low, high string }{
		{`{"min":50,"max":250,"count":9}`, "double", "1", "50", "250"},
		{`{"min":50.5,"max":250,"count":9}`, "double", "any", "50.5", "250"},
		{`{"min":0,"max":1,"count":9}`, "double", "any", "0", "1"},
		{`{"min":0,"max":3,"count":9}`, "long", "1", "0", "3"},
	} {
		f := core.CatalogueField{Name: "n", Type: c.kind}
		got := explore.RangeFacets(explore.Layout{Ranges: []core.CatalogueField{f}}, explore.Selection{}, gjson.Parse(`{"n":{"stats":`+c.stats+`}}`), gjson.Result{})[0]
		if got.Step != c.step || got.Low != c.low || got.High != c.high {
			t.Errorf("%s of %s: %+v", c.stats, c.kind, got)
		}
	}
}

// TestList: a pasted list is its distinct values, of a field that is compared as a whole, and has a limit; what no document has is missing.
func TestList(t *testing.T) {
	fields := []core.CatalogueField{{Name: "donor.id", DisplayName: "Donor", Type: "keyword"}, {Name: "age", Type: "long"}, {Name: "notes", Type: "text"}}
	l, err := explore.ParseList("donor.id", " D1, D2;D1\r\n\tD*3\u00a0\"D 4\"", fields)
	if want := []string{"D1", "D2", "D*3", "D", "4"}; err != nil || !slices.Equal(l.Values, want) || l.Field.DisplayName != "Donor" {
		t.Fatalf("%+v, %v", l, err)
	}
	text, variables, err := l.Request("file")
	if want := `{"op":"and","content":[{"op":"in","content":{"fieldName":"donor.id","value":["D1","D2","D\\*3","D","4"]}}]}`; err != nil ||
		!strings.Contains(text, "donor__id{buckets(max:10000)") || fmt.Sprintf("%s", variables["sqon"]) != want {
		t.Errorf("%s with %s, %v", text, variables["sqon"], err)
	}
	missing, known := l.Missing("file", gjson.Parse(`{"file":{"aggregations":{"donor__id":{"buckets":[{"key":"D1"},{"key":"D9"},{"key":"D"}]}}}}`))
	if !known || !slices.Equal(missing, []string{"D2", "D*3", "4"}) {
		t.Errorf("missing are %v, known %v", missing, known)
	}
	if _, known := l.Missing("file", gjson.Parse(`{"file":{"aggregations":{"donor__id":{"buckets":[`+strings.Repeat(`{"key":"x"},`, 9999)+`{"key":"x"}]}}}}`)); known {
		t.Error("of documents with more values than are read, what is missing counts as known")
	}
	ids, err := explore.ParseList("_id", "a b", fields)
	if text, _, _ := ids.Request("file"); err != nil || !strings.Contains(text, "hits(filters:$sqon,first:1000)") {
		t.Errorf("%s, %v", text, err)
	}
	if missing, _ := ids.Missing("file", gjson.Parse(`{"file":{"hits":{"edges":[{"node":{"id":"b"}}]}}}`)); !slices.Equal(missing, []string{"a"}) {
		t.Errorf("missing are %v", missing)
	}
	if l, err := explore.ParseList("age", " \n", fields); err != nil || len(l.Values) > 0 {
		t.Errorf("an empty list: %+v, %v", l, err)
	}
	var long strings.Builder
	for i := range explore.MaxList + 1 {
		fmt.Fprintln(&long, i)
	}
	if _, err := explore.ParseList("donor.id", long.String(), fields); core.HintOf(err) != "search for parts of it, or save a set by GraphQL and use set_id" {
		t.Errorf("a long list: %v", err)
	}
	for field, text := range map[string]string{"age": "1", "notes": "a", "nothing": "a", "donor.id": long.String()} {
		if _, err := explore.ParseList(field, text, fields); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("a list of %s: %v", field, err)
		}
	}
}
