package console_test

import (
	"html"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

// TestExplore: the filters of the form become one SQON, which the page shows and every query gets.
func TestExplore(t *testing.T) {
	w := newWorld()
	q := url.Values{
		"in.sex": {"male", "<i>"}, "from.age": {"3"}, "to.born": {"2020-01-02"}, "q": {"o'x"}, "sqon": {`{"op":"not","content":[]}`},
		"column": {"age", "visits.id", "nothing"}, "sort": {"age"}, "order": {"desc"}, "page": {"1"}, "in.nothing": {"x"},
	}
	got := send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/catalogues/donors/explore?" + q.Encode()})
	body := got.Body.String()
	if got.Code != http.StatusOK {
		t.Fatalf("status %d: %s", got.Code, body)
	}
	const sqon = `{"op":"and","content":[{"op":"in","content":{"fieldName":"sex","value":["male","<i>"]}},{"op":"gte","content":{"fieldName":"age","value":3}},` +
		`{"op":"lte","content":{"fieldName":"born","value":"2020-01-02"}},{"op":"filter","content":{"fieldNames":["sex","visits.id","city"],"value":"*o'x*"}},{"op":"not","content":[]}]}`
	if len(w.queries) != 3 {
		t.Fatalf("%d queries", len(w.queries))
	}
	for _, asked := range w.queries[1:] {
		filter := gjson.GetBytes(asked.Variables, "sqon")
		unescaped := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(filter.Raw)
		if unescaped != sqon || !asked.ReadOnly {
			t.Errorf("the filter is %s, want %s", unescaped, sqon)
		}
	}
	main := w.queries[1]
	if !strings.Contains(main.Query, "node{id age visits{hits{edges{node{id }}}}") || !strings.Contains(main.Query, "age{stats{min max count}}") ||
		gjson.GetBytes(main.Variables, "sort").Raw != `[{"fieldName":"age","order":"desc"}]` || gjson.GetBytes(main.Variables, "offset").Int() != 25 {
		t.Errorf("%s with %s", main.Query, main.Variables)
	}
	if !strings.Contains(w.queries[2].Query, "age{histogram(interval:5)") {
		t.Errorf("%s", w.queries[2].Query)
	}
	for _, says := range []string{
		"v1, v2", `value="&lt;i&gt;" id="v-0-1" checked`, `aria-sort="descending"`, `data-histogram="[[0,5],[3,6]]"`, "Age ≥ 3", "Born ≤ 2020-01-02",
		"Searches 3 fields</summary>Sex, City, Visit</details>", `<meter max="100" value="40" aria-hidden="true">`,
		`<a href="/console/catalogues/donors/document?id=d1">7</a>`, `data-name="Visit"`, "data-copy-address",
		`o&#39;\&#39;&#39;x`, "curl http://localhost/donors/graphql", "Previous",
	} {
		if !strings.Contains(body, says) {
			t.Errorf("the page lacks %s: %s", says, body)
		}
	}
}

// TestExploreLiteralValues: a chosen value matches itself, also if it has characters with a meaning in a SQON. The address, the boxes and the
// chips have the value.
func TestExploreLiteralValues(t *testing.T) {
	for value, want := range map[string]sqon.Term{
		"HLA-A*02:01": {Text: "HLA-A*02:01"}, `C:\*`: {Text: `C:\*`}, `a\\b?`: {Text: `a\\b?`}, "what?": {Text: "what?"}, "plain": {Text: "plain"},
		"__missing__": {Kind: sqon.TermMissing}, "set_id:a*b": {Kind: sqon.TermPattern, Pattern: `*set_id:a\*b`},
		"set_id:set_id:*": {Kind: sqon.TermPattern, Pattern: `*set_id:set_id:\*`},
	} {
		w := newWorld()
		q := url.Values{"in.sex": {value}}
		body := send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/catalogues/donors/explore?" + q.Encode()}).Body.String()
		sent := gjson.GetBytes(w.queries[1].Variables, "sqon.content.0.content.value.0").String()
		if got := (sqon.Value{Kind: sqon.String, Text: sent}).Term(); got != want {
			t.Errorf("%s: %s means %+v, want %+v", value, sent, got, want)
		}
		if !strings.Contains(body, `value="`+value+`" id="v-0-2" checked`) || !strings.Contains(body, "Sex: "+value+" <") {
			t.Errorf("%s: %s", value, body)
		}
	}
}

// TestExploreErrors: what cannot be asked is said, with what to do.
func TestExploreErrors(t *testing.T) {
	rejected := newWorld()
	rejected.graph = func(core.GraphQLRequest) string { return `{"errors":[{"message":"unknown field \"x\""}]}` }
	for name, tt := range map[string]struct {
		world  *world
		path   string
		status int
		says   string
	}{
		"no number": {newWorld(), "donors/explore?from.age=x", 400, "a bound of Age is not a number"},
		"no SQON":   {newWorld(), "donors/explore?sqon=x", 400, "the additional SQON is not a JSON object"},
		"its hint":  {newWorld(), "donors/explore?sqon=x", 400, html.EscapeString(`write one such as {"op":"in","content":{"fieldName":"studyId","value":["S1"]}}`)},
		"failed":    {newWorld(), "broken/explore", 404, "the index does not exist"},
		"none":      {newWorld(), "x/explore", 404, "there is no such catalogue"},
		"rejected":  {rejected, "donors/explore", 400, "unknown field"},
	} {
		got := send(t, router(t, tt.world, api.Config{}), request{method: "GET", path: "/console/catalogues/" + tt.path})
		if got.Code != tt.status || !strings.Contains(got.Body.String(), tt.says) {
			t.Errorf("%s: status %d: %s", name, got.Code, got.Body)
		}
	}
}

// TestCatalogueAccess: a catalogue that is closed to a caller is shown without its documents, and neither explored nor downloaded.
func TestCatalogueAccess(t *testing.T) {
	w := newWorld()
	w.catalogues.Catalogues[1].DefaultAccess = core.AccessAuthenticated
	h := router(t, w, api.Config{Authenticator: tokens{}})
	for _, path := range []string{"/console/catalogues", "/console/catalogues/donors"} {
		if got := send(t, h, request{method: "GET", path: path}); got.Code != http.StatusOK || strings.Contains(got.Body.String(), "42") || !strings.Contains(got.Body.String(), "needs a token") {
			t.Errorf("%s: status %d: %s", path, got.Code, got.Body)
		}
	}
	if got := send(t, h, request{method: "GET", path: "/console/catalogues/donors/explore"}); got.Code != http.StatusUnauthorized || len(w.queries) > 0 {
		t.Errorf("status %d, %d queries", got.Code, len(w.queries))
	}
	form := url.Values{"params": {`{"format":"tsv"}`}}
	if got := send(t, h, request{method: "POST", path: "/console/catalogues/donors/download", form: form}); got.Code != http.StatusUnauthorized || w.params != nil {
		t.Errorf("status %d", got.Code)
	}
	got := send(t, h, request{method: "POST", path: "/console/catalogues/donors/download", form: form, token: "none"})
	if got.Code != http.StatusOK || got.Body.String() != "a\tb\n" || string(w.params) != `{"format":"tsv"}` || !strings.Contains(got.Header().Get("Content-Disposition"), "rows.tsv") {
		t.Errorf("status %d %v: %s", got.Code, got.Header(), got.Body)
	}
}

// TestCatalogueNames: the page of a catalogue shows the names of a field in GraphQL where they do not follow from its own, and a failed one why.
func TestCatalogueNames(t *testing.T) {
	w := newWorld()
	w.catalogues.Catalogues[1].Fields = []core.CatalogueField{
		{Name: "age-at", DisplayName: "Age", Type: "long", GraphQL: &core.GraphQLNames{Field: "age_at", Aggregation: "age_at_2"}},
		{Name: "sex", DisplayName: "Sex", Type: "keyword"},
	}
	h := router(t, w, api.Config{})
	got := send(t, h, request{method: "GET", path: "/console/catalogues/donors"}).Body.String()
	const named = `<code>age-at</code><br><span class="muted small">GraphQL: <code>age_at</code>, <code>age_at_2</code> in aggregations</span>`
	if !strings.Contains(got, named) || strings.Count(got, "in aggregations") != 1 {
		t.Errorf("the names are not shown: %s", got)
	}
	if got := send(t, h, request{method: "GET", path: "/console/catalogues/broken"}).Body.String(); !strings.Contains(got, "the index does not exist (<code>index_not_found</code>)") {
		t.Errorf("why it failed is not shown: %s", got)
	}
}

// TestHungIndex: however many catalogues wait for an index, the page of all waits once, shortly, and says of which the number is unknown.
func TestHungIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.hangs = "hung"
		for i := range 20 {
			w.catalogues.Catalogues = append(w.catalogues.Catalogues, &core.Catalogue{ID: "hung" + strconv.Itoa(i), DocumentType: "donor", DefaultAccess: core.AccessPublic})
		}
		w.catalogues.Catalogues = append(w.catalogues.Catalogues, &core.Catalogue{ID: "last", DocumentType: "donor", DefaultAccess: core.AccessPublic})
		h := router(t, w, api.Config{})
		for path, unknown := range map[string]int{"/console/catalogues": 20, "/console/catalogues/hung7": 1} {
			start := time.Now()
			got := send(t, h, request{method: "GET", path: path})
			body := got.Body.String()
			if took := time.Since(start); took != 3*time.Second || got.Code != http.StatusOK || strings.Count(body, "the index did not answer within 3 s") != unknown {
				t.Errorf("%s: status %d after %s: %s", path, got.Code, took, body)
			}
			if unknown > 1 && strings.Count(body, "<dd>42</dd>") != 2 { // before and after them
				t.Errorf("%s lacks the number of the others: %s", path, body)
			}
		}
	})
}

// TestExploreFind: a text is searched in all values of a facet that has more of them than a page, under the other filters.
func TestExploreFind(t *testing.T) {
	w := newWorld()
	q := url.Values{"find.city": {"ERN-w"}, "in.city": {"Rome"}, "in.sex": {"male"}, "find.sex": {"MA"}}
	got := send(t, router(t, w, api.Config{BasePath: "/tutti"}), request{method: "GET", path: "/tutti/console/catalogues/donors/explore?" + q.Encode()})
	body := got.Body.String()
	var found []string
	for _, asked := range w.queries {
		if strings.Contains(asked.Query, "themselves:true") {
			found = append(found, asked.Query+" "+gjson.GetBytes(asked.Variables, "sqon").Raw)
		}
	}
	const want = `{"op":"and","content":[{"op":"filter","content":{"fieldNames":["city"],"value":"*ERN-w*"}},` +
		`{"op":"and","content":[{"op":"in","content":{"fieldName":"sex","value":["male"]}}]}]}`
	if len(found) != 1 || !strings.HasSuffix(found[0], want) || !strings.Contains(found[0], "{city{buckets(max:61)") {
		t.Errorf("%q", found)
	}
	for text, shown := range map[string]bool{
		`value="Bern-West"`: true, `value="Basel"`: false, `value="Rome" id="v-1-1" checked`: true, `value="&lt;i&gt;"`: false, `value="male"`: true,
		`hx-get="/tutti/console/catalogues/donors/explore"`: true, `hx-target="#values-1"`: true, "Search all values": true, "Oslo": false,
	} {
		if strings.Contains(body, text) != shown {
			t.Errorf("the page has %s: %v", text, !shown)
		}
	}
	checkPage(t, "/tutti", got.Header(), body)
	w = newWorld()
	body = send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/catalogues/donors/explore"}).Body.String()
	if !strings.Contains(body, "Only the most frequent values are shown. Search for the others.") || !strings.Contains(body, `data-low="0" data-high="90" data-step="1" data-dates="false"`) {
		t.Errorf("%s", body)
	}
	if n := strings.Count(body, `value="Oslo"`); n != 59 {
		t.Errorf("%d values besides the first", n)
	}
}

// TestExploreList: a pasted list is one filter of the page, also of its facets and its download, and the page says which values were not found.
func TestExploreList(t *testing.T) {
	w := newWorld()
	w.graph = func(r core.GraphQLRequest) string {
		if strings.Contains(r.Query, "city{buckets(max:10000)") {
			return `{"data":{"donor":{"aggregations":{"city":{"buckets":[{"key":"Rome"},{"key":"Bern"}]}}}}}`
		}
		return donorGraph(r)
	}
	q := url.Values{"list": {"Rome\r\nAtlantis, <i>"}, "list.field": {"city"}}
	got := send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/catalogues/donors/explore?" + q.Encode()})
	body := got.Body.String()
	checkPage(t, "", got.Header(), body)
	for _, says := range []string{
		"2 of 3 values were not found", ">Atlantis\n&lt;i&gt;</pre>", "City: list of 3", `<option value="city" selected>City</option>`, "Document ID",
	} {
		if !strings.Contains(body, says) {
			t.Errorf("the page lacks %s: %s", says, body)
		}
	}
	if main := gjson.GetBytes(w.queries[1].Variables, "sqon.content.0.content.value.#").Int(); main != 3 {
		t.Errorf("the filter is %s", w.queries[1].Variables)
	}
	q.Set("list.field", "age")
	got = send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/catalogues/donors/explore?" + q.Encode(), header: http.Header{"Accept": {acceptPage}}})
	if got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), "a list cannot be of the field") {
		t.Errorf("status %d: %s", got.Code, got.Body)
	}
}
