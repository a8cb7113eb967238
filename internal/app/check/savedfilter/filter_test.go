package savedfilter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tutti/internal/app/check"
	"tutti/internal/app/check/savedfilter"
	"tutti/internal/core"
)

// TestAdviceOnFilters: a filter or a request that follows the hint of a finding has none.
func TestAdviceOnFilters(t *testing.T) {
	t.Parallel()
	fields := []core.CatalogueField{
		{Name: "day", Type: "date"}, {Name: "size", Type: "long"}, {Name: "name", Type: "keyword"}, {Name: "files", Type: "nested"}, {Name: "files.type", Type: "keyword"},
	}
	query := func(text string) string { return fmt.Sprintf(`{"query":%q}`, text) }
	top := func(size int) string {
		return query(fmt.Sprintf(`{a{aggregations{name{buckets{top_hits(_source:["name"],size:%d)}}}}}`, size))
	}
	for _, tt := range []struct{ filter, hint, followed string }{
		{
			`{"op":"gt","content":{"fieldName":"size","value":[1,2]}}`, "Arranger uses the largest value for gt and gte, the smallest for lt and lte: keep that one",
			`{"op":"gt","content":{"fieldName":"size","value":[2]}}`,
		},
		{
			`{"op":"filter","content":{"fieldNames":["name"],"value":"ann"}}`, "for values that equal the text use in, which distinguishes upper and lower case",
			`{"op":"in","content":{"fieldName":"name","value":["ann"]}}`,
		},
		{`{"op":"lte","content":{"fieldName":"day","value":"2024-03"}}`, "write the day: a date such as 2024-03-01", `{"op":"lte","content":{"fieldName":"day","value":"2024-03-01"}}`},
		{
			`{"op":"in","content":{"fieldName":"files.type","value":["__missing__"]}}`, "for Arranger's meaning put the clause below a pivot on the nested path",
			`{"op":"and","pivot":"files","content":[{"op":"in","content":{"fieldName":"files.type","value":["__missing__"]}}]}`,
		},
		{query(`{a{hits(sort:[{fieldName:"size"}],searchAfter:[5]){total}}}`), "send the searchAfter of an edge of the page before", ""},
		{query(`{a{hits(sort:[{fieldName:"size"}],searchAfter:[5,"x"]){total}}}`), "begin with the first page", query(`{a{hits(sort:[{fieldName:"size"}]){total}}}`)},
		{top(2), "read the first of the list, or ask for size: 1", top(1)},
		{`{"op":"not-in","content":{"fieldName":"files.type","value":["a"]}}`, "for the same documents use some-not-in", ""},
		{`{"op":"some-not-in","content":{"fieldName":"files.type","value":["a"]}}`, "for the same documents use not-in", ""},
	} {
		if r := savedfilter.Check([]byte(tt.filter), fields); len(r.Findings) != 1 || r.Findings[0].Hint != tt.hint {
			t.Errorf("%s: %+v, want the hint %q", tt.filter, r.Findings, tt.hint)
		}
		if tt.followed == "" { // a note about another tool or another page
			continue
		}
		if r := savedfilter.Check([]byte(tt.followed), fields); len(r.Findings) != 1 || r.Findings[0].Status != check.StatusOK {
			t.Errorf("%s follows the hint: %+v", tt.followed, r.Findings)
		}
	}
}

// TestFiltersOfCatalogue: with the types of fields a clause is judged as what it is on. Each row of the guide's table has a case.
func TestFiltersOfCatalogue(t *testing.T) {
	t.Parallel()
	fields := []core.CatalogueField{
		{Name: "day", Type: "date"},
		{Name: "period", Type: "date_range"},
		{Name: "size", Type: "long"},
		{Name: "name", Type: "keyword"},
		{Name: "dotted", Type: "object"},
		{Name: "dotted.name", Type: "keyword"},
		{Name: "files", Type: "nested"},
		{Name: "files.type", Type: "keyword"},
		{Name: "files.index", Type: "object"},
		{Name: "files.index.size", Type: "long"},
		{Name: "note", Type: "text"},
	}
	query := func(text, variables string) string {
		return fmt.Sprintf(`{"query":%q,"variables":{%s}}`, text, variables)
	}
	pivoted := `{"op":"and","pivot":"files","content":[{"op":"in","content":{"fieldName":"files.type","value":["__missing__"]}}]}`
	const (
		partial, day, pattern = "a date without a day, such as `2024-03`", "a range with a day as its bound, such as `2024-03-01`", "`filter` with a value without `*` and `?`"
		missing, two          = "`__missing__` on a nested field, outside of a `pivot`", "`gt`, `gte`, `lt`, `lte` with two values"
		facet, cursor         = "a facet whose field has a clause inside an `or`, or with others inside a `not`", "`searchAfter` that the client made itself"
		interval, top         = "`histogram` of a nested field", "`top_hits` of a `size` above 1"
	)
	rows := map[string]bool{}
	for _, c := range []struct{ row, filter, want string }{
		{partial, `{"op":"lte","content":{"fieldName":"day","value":"2024-03"}}`, "fail lte on day"},
		{partial, `{"op":"gte","content":{"fieldName":"day","value":"2024-03"}}`, ""},
		{partial, `{"op":"in","content":{"fieldName":"day","value":["2024-03"]}}`, "fail in on day"},
		{partial, `{"op":"in","content":{"fieldName":"period","value":["2024-03"]}}`, "fail in on period"},
		{partial, `{"op":"in","content":{"fieldName":"name","value":["2024"]}}`, ""},
		{partial, `{"op":"lte","content":{"fieldName":"size","value":"2024"}}`, ""},
		{day, `{"op":"lte","content":{"fieldName":"day","value":"2024-03-01"}}`, ""},
		{pattern, `{"op":"filter","content":{"fieldNames":["name"],"value":"ann"}}`, "fail filter on name"},
		{pattern, `{"op":"filter","content":{"fieldNames":["note"],"value":"ann"}}`, "fail filter on note"},
		{pattern, `{"op":"filter","content":{"fieldNames":["name"],"value":"ann*"}}`, ""},
		{pattern, `{"op":"filter","content":{"fieldNames":["size"],"value":"1*"}}`, "fail /op: tutti refuses it"},
		{missing, `{"op":"in","content":{"fieldName":"files.type","value":["__missing__"]}}`, "fail __missing__ on files.type"},
		{missing, `{"op":"in","content":{"fieldName":"files.index.size","value":["__missing__"]}}`, "fail __missing__ on files.index.size"},
		{missing, `{"op":"in","content":{"fieldName":"dotted.name","value":["__missing__"]}}`, ""},
		{missing, pivoted, ""},
		{two, `{"op":"gt","content":{"fieldName":"size","value":[1,2]}}`, "fail /content/value: tutti refuses it"},
		{two, `{"op":"gt","content":{"fieldName":"size","value":[1]}}`, ""},
		{facet, `{"op":"or","content":[{"op":"in","content":{"fieldName":"name","value":["a"]}},{"op":"filter","content":{"fieldNames":["note"],"value":"a*"}}]}`, "warn /content/0: the facet of name"},
		{facet, `{"op":"or","content":[{"op":"filter","content":{"fieldNames":["note"],"value":"a*"}}]}`, ""},
		{facet, `{"op":"and","content":[{"op":"not","content":[{"op":"in","content":{"fieldName":"name","value":["a"]}}]}]}`, ""},
		{cursor, query(`{a{hits(sort:[{fieldName:"size"}],searchAfter:[5]){total}}}`, ""), "fail /query, line 1: searchAfter has 1 values for 1 sort keys"},
		{cursor, query(`query($s:[Sort],$a:JSON){a{hits(sort:$s,searchAfter:$a){total}}}`, `"s":[{"fieldName":"size"}],"a":[5,"x"]`), "warn /query, line 1: searchAfter must be"},
		{cursor, query(`query($a:JSON){a{hits(searchAfter:$a){total}}}`, `"a":null`), ""},
		{interval, query(`{a{aggregations{files__index__size{histogram(interval:10){buckets{key}}}}}}`, ""), "fail /query, line 1: histogram of files.index.size"},
		{interval, query(`{a{aggregations{size{histogram(interval:10){buckets{key}}}}}}`, ""), ""},
		{top, query(`query($n:Int){a{aggregations{name{buckets{top_hits(_source:["name"],size:$n)}}}}}`, `"n":2`), "fail /query, line 1: top_hits of"},
		{top, query(`{a{aggregations{name{buckets{top_hits(_source:["name"],size:1)}}}}}`, ""), ""},
		{"", `{"op":"in","content":{"fieldName":"nam","value":["a"]}}`, "fail /content/fieldName: tutti refuses it: unknown field"},
		{"", `{"op":"not-in","content":{"fieldName":"files.type","value":["a"]}}`, "fail not-in on files.type"},
		{"", `{"op":"not-in","content":{"fieldName":"dotted.name","value":["a"]}}`, ""},
		{"", query(`query($f:JSON){a{hits(filters:$f){total}}}`, `"f":{"op":"lte","content":{"fieldName":"day","value":"2024-03"}}`), "fail /variables/f: lte on day"},
		{"", query(`{a{hits(filters:{op:"lte",content:{fieldName:"day",value:"2024-03"}}){total}}}`, ""), "fail /query, line 1, filters: lte on day"},
		{"", query(`{a{`, ""), "fail /query: it is not GraphQL"},
	} {
		rows[c.row] = true
		r := savedfilter.Check([]byte(c.filter), fields)
		got := ""
		if f := r.Findings[0]; f.Status != check.StatusOK {
			got = string(f.Status) + " " + f.Message
		}
		if len(r.Findings) != 1 || !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %+v, want %q", c.filter, r.Findings, c.want)
		}
	}
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "deploy", "docs", "migrating.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(raw), "| what | Arranger | tutti |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(table, -1) {
		if !rows[row[1]] {
			t.Errorf("the row %q of the guide has no case", row[1])
		}
	}
}

// TestFiltersOfFile: a file is filters, in an array or one after the other; what is not says so, after the filters before it.
func TestFiltersOfFile(t *testing.T) {
	t.Parallel()
	const filter = `{"op":"in","content":{"fieldName":"name","value":["ann"]}}`
	for text, want := range map[string]string{
		filter:                            "ok 1 filter, with the same meaning in tutti",
		filter + "\n" + filter:            "ok 2 filters, with the same meaning in tutti",
		"[" + filter + "," + filter + "]": "ok 2 filters, with the same meaning in tutti",
		" \n ":                            "fail the file has no filter",
		"[]":                              "fail the file has no filter",
		filter + "{":                      "fail after 1 filter the file is not JSON: unexpected EOF",
		"[" + filter:                      "fail after 1 filter the file is not JSON: unexpected EOF",
	} {
		r := savedfilter.Check([]byte(text), nil)
		if len(r.Findings) != 1 {
			t.Fatalf("%q: %+v", text, r)
		}
		f, hint := r.Findings[0], ""
		if f.Status == check.StatusFail {
			hint = "pass one filter, an array of filters, or one filter per line"
		}
		if got := string(f.Status) + " " + f.Message; got != want || f.Hint != hint || r.OK != (hint == "") {
			t.Errorf("%q: got %q, %q, want %q", text, got, f.Hint, want)
		}
	}
}
