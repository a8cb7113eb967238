package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// moveMapping is the mapping of the documents of moveDocuments.
const moveMapping = `{"properties":{"code":{"type":"keyword"},"name":{"type":"keyword"},"note":{"type":"text"},"day":{"type":"date"},
	"size":{"type":"long"},"tags":{"type":"keyword"},
	"files":{"type":"nested","properties":{"type":{"type":"keyword"},"size":{"type":"long"}}}}}`

// moveDocuments are documents for which the rules of Arranger and tutti have different results.
func moveDocuments() []string {
	return []string{
		`{"code":"a","name":"ann","note":"the ann hath","day":"2024-02-10","size":1,"tags":["x"],"files":[{"type":"bam","size":1},{"type":"vcf","size":12}]}`,
		`{"code":"b","name":"joann","note":"joann hath","day":"2024-03-01T00:00:00Z","size":5,"tags":["x","y"],"files":[{"type":"bam","size":3},{"type":"bam","size":2}]}`,
		`{"code":"c","name":"annette","note":"blue annette","day":"2024-03-01T10:00:00Z","size":10,"tags":["y"],"files":[{"size":4},{"type":"vcf","size":15}]}`,
		`{"code":"d","name":"x*y","note":"ann* x","day":"2024-03-20T10:00:00Z","size":20,"files":[{"size":4}]}`,
		`{"code":"e","name":"zed","day":"2024-04-02","size":30}`,
	}
}

// moveCase is an operation that Arranger and tutti answer differently, and what each answers.
type moveCase struct {
	// row is that of the table in deploy/docs/migrating.md, name the case.
	row, name string
	// filter is the variable f of query, which is of documents if it is "".
	query, filter   string
	arranger, tutti string
}

// Rows of the guide's table.
const (
	rowPartial  = "a date without a day, such as `2024-03`"
	rowDay      = "a range with a day as its bound, such as `2024-03-01`"
	rowPattern  = "`filter` with a value without `*` and `?`"
	rowMissing  = "`__missing__` on a nested field, outside of a `pivot`"
	rowTwo      = "`gt`, `gte`, `lt`, `lte` with two values"
	rowFacet    = "a facet whose field has a clause inside an `or`, or with others inside a `not`"
	rowCursor   = "`searchAfter` that the client made itself"
	rowInterval = "`histogram` of a nested field"
	rowTop      = "`top_hits` of a `size` above 1"
)

// moveCases returns the operations. An answer is the ids of the documents, the member of the response, or "error".
func moveCases() []moveCase {
	clause := func(op, field string, value any) string {
		raw, _ := json.Marshal(map[string]any{"op": op, "content": map[string]any{"fieldName": field, "value": value}}) // texts and numbers
		return string(raw)
	}
	pattern := func(field, value string) string {
		return fmt.Sprintf(`{"op":"filter","content":{"fieldNames":[%q],"value":%q}}`, field, value)
	}
	group := func(op string, members ...string) string {
		return fmt.Sprintf(`{"op":%q,"content":[%s]}`, op, strings.Join(members, ","))
	}
	const facet = `query($f:JSON){a{aggregations(filters:$f){tags{buckets{key doc_count}}}}}`
	all := `{"buckets":[{"key":"x","doc_count":2},{"key":"y","doc_count":2},{"key":"__missing__","doc_count":2}]}`
	page := func(after string) string {
		return `{a{hits(first:2,sort:[{fieldName:"size"}],searchAfter:` + after + `){edges{node{code}}}}}`
	}
	top := func(size int) string {
		return fmt.Sprintf(`{a{aggregations{tags{buckets{key top_hits(_source:["code"],size:%d)}}}}}`, size)
	}
	return []moveCase{
		{rowPartial, "lte", "", clause("lte", "day", "2024-03"), "abc", "abcd"},
		{rowPartial, "gt", "", clause("gt", "day", "2024-03"), "de", "e"},
		{rowPartial, "between", "", clause("between", "day", []string{"2024-03", "2024-03"}), "bc", "bcd"},
		{rowPartial, "in", "", clause("in", "day", []string{"2024-03"}), "bc", "bcd"},
		{rowPartial, "gte: no difference", "", clause("gte", "day", "2024-03"), "bcde", "bcde"},
		{rowPartial, "in of a day: no difference", "", clause("in", "day", []string{"2024-03-01"}), "bc", "bc"},
		{rowDay, "lte", "", clause("lte", "day", "2024-03-01"), "error", "abc"},
		{rowPattern, "keyword", "", group("and", pattern("name", "ANN")), "a", "abc"},
		{rowPattern, "text", "", group("and", pattern("note", "ann")), "ad", "abcd"},
		{rowPattern, "a star: no difference", "", group("and", pattern("name", "Ann*")), "ac", "ac"},
		{rowMissing, "in", "", group("and", clause("in", "files.type", []string{"__missing__"})), "cd", "de"},
		{rowMissing, "not-in", "", group("and", clause("not-in", "files.type", []string{"__missing__"})), "abc", "abc"},
		{rowMissing, "below a pivot: no difference", "", `{"op":"and","pivot":"files","content":[` + clause("in", "files.type", []string{"__missing__"}) + `]}`, "cd", "cd"},
		{rowMissing, "not nested: no difference", "", group("and", clause("in", "tags", []string{"__missing__"})), "de", "de"},
		{rowTwo, "gt", "", group("and", clause("gt", "size", []int{5, 20})), "e", "error"},
		{rowTwo, "lte", "", group("and", clause("lte", "size", []int{5, 20})), "ab", "error"},
		{rowFacet, "or", facet, group("and", group("or", clause("in", "tags", []string{"x"}), clause("in", "name", []string{"zed"}))), `{"buckets":[{"key":"__missing__","doc_count":1}]}`, `{"buckets":[{"key":"x","doc_count":2},{"key":"y","doc_count":1},{"key":"__missing__","doc_count":1}]}`},
		{rowFacet, "not of and", facet, group("not", group("and", clause("in", "tags", []string{"x"}), clause("in", "name", []string{"zed"}))), `{"buckets":[{"key":"x","doc_count":2},{"key":"y","doc_count":2},{"key":"__missing__","doc_count":1}]}`, `{"buckets":[{"key":"x","doc_count":2},{"key":"y","doc_count":2},{"key":"__missing__","doc_count":2}]}`},
		{rowFacet, "not: no difference", facet, group("and", group("not", clause("in", "tags", []string{"x"}))), all, all},
		{rowFacet, "not of two", facet, group("not", clause("in", "tags", []string{"x"}), clause("in", "name", []string{"zed"})), `{"buckets":[{"key":"x","doc_count":2},{"key":"y","doc_count":2},{"key":"__missing__","doc_count":1}]}`, `{"buckets":[{"key":"y","doc_count":1},{"key":"__missing__","doc_count":1}]}`},
		{rowFacet, "not of or", facet, group("not", group("or", clause("in", "tags", []string{"x"}), clause("in", "name", []string{"zed"}))), `{"buckets":[{"key":"x","doc_count":2},{"key":"y","doc_count":2},{"key":"__missing__","doc_count":1}]}`, `{"buckets":[{"key":"y","doc_count":1},{"key":"__missing__","doc_count":1}]}`},
		{rowFacet, "and in and: no difference", facet, group("and", group("and", clause("in", "tags", []string{"x"}))), all, all},
		{rowFacet, "the topmost and: no difference", facet, group("and", clause("in", "tags", []string{"x"})), all, all},
		{rowCursor, "values of the sort", page(`[5]`), "", "cd", "error"},
		{rowInterval, "elements", `{a{aggregations{files__size{histogram(interval:10){buckets{key doc_count}}}}}}`, "", `{"histogram":{"buckets":[{"key":"0","doc_count":5},{"key":"10","doc_count":2}]}}`, `{"histogram":{"buckets":[{"key":"0","doc_count":4},{"key":"10","doc_count":2}]}}`},
		{rowTop, "size 2", top(2), "", `{"buckets":[{"key":"x","top_hits":{"code":"a"}},{"key":"y","top_hits":{"code":"b"}},{"key":"__missing__","top_hits":null}]}`, `{"buckets":[{"key":"x","top_hits":[{"code":"a"},{"code":"b"}]},{"key":"y","top_hits":[{"code":"b"},{"code":"c"}]},{"key":"__missing__","top_hits":[{"code":"d"},{"code":"e"}]}]}`},
		{rowTop, "size 1", top(1), "", `{"buckets":[{"key":"x","top_hits":{"code":"a"}},{"key":"y","top_hits":{"code":"b"}},{"key":"__missing__","top_hits":null}]}`, `{"buckets":[{"key":"x","top_hits":{"code":"a"}},{"key":"y","top_hits":{"code":"b"}},{"key":"__missing__","top_hits":{"code":"d"}}]}`},
	}
}

// ask returns the answer of GraphQL at a URL.
func (c moveCase) ask(t *testing.T, post func(body string) answer) string {
	t.Helper()
	query, filter := c.query, c.filter
	if query == "" {
		query = `query($f:JSON){a{hits(filters:$f,first:20,sort:[{fieldName:"code"}]){edges{node{code}}}}}`
	}
	if filter == "" {
		filter = "null"
	}
	body, err := json.Marshal(map[string]any{"query": query, "variables": map[string]any{"f": json.RawMessage(filter)}})
	if err != nil {
		t.Fatal(err)
	}
	a := post(string(body))
	if a.get("errors.0").Exists() {
		return "error"
	}
	if edges := a.get("data.a.hits.edges"); edges.Exists() {
		var ids strings.Builder
		edges.ForEach(func(_, edge gjson.Result) bool { ids.WriteString(edge.Get("node.code").Str); return true })
		return ids.String()
	}
	return a.get("data.a.aggregations.*").Raw
}

// moved compares the answers with those that are wanted.
func moved(t *testing.T, post func(body string) answer, want func(moveCase) string) {
	t.Helper()
	for _, c := range moveCases() {
		if got := c.ask(t, post); got != want(c) {
			t.Errorf("%s, %s: %s, want %s", c.row, c.name, got, want(c))
		}
	}
}

// TestMoveFromArranger: what deploy/docs/migrating.md says about tutti in its table for those who move from Arranger, each row of which has a
// case. What it says about Arranger is tried by TestMoveFromArrangerItself.
func TestMoveFromArranger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mapping := filepath.Join(dir, "mapping.json")
	if err := os.WriteFile(mapping, []byte(`{"properties":{"experiment":`+moveMapping+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBuiltIn(t, plan{repository: fmt.Sprintf("mappingFile: %q", mapping), more: fmt.Sprintf("catalogues: {dir: %q}\n", filepath.Join(dir, "catalogues"))})
	folder{"a/base.json": based("a", aliasWord, `"nestingPrefix":"experiment"`)}.write(b.world, filepath.Join(dir, "catalogues"))
	b.startReady()
	b.prepareStudies("S1")
	for _, document := range moveDocuments() {
		body := b.payload("S1", strings.TrimSuffix(strings.TrimPrefix(document, "{"), "}"))
		b.publish("S1", b.mustSend(http.MethodPost, "/submit/S1", body, http.StatusOK).get("analysisId").String())
	}
	b.awaitConverged()
	b.awaitAvailable("a")
	moved(t, func(body string) answer {
		a, err := b.send(http.MethodPost, "/a/graphql", body)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}, func(c moveCase) string { return c.tutti })

	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "docs", "migrating.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(raw), "| what | Arranger | tutti |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var rows, tried []string
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(table, -1) {
		rows = append(rows, row[1])
	}
	for _, c := range moveCases() {
		if !slices.Contains(tried, c.row) {
			tried = append(tried, c.row)
		}
	}
	if diff := cmp.Diff(rows, tried); diff != "" {
		t.Errorf("the rows of the guide, and those that are tried: %s", diff)
	}
}
