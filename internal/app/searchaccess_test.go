package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
)

// ask is one way to read or count documents.
type ask struct {
	name, path, body string
}

// graphql queries a catalogue; variables may be empty.
func graphql(name, query, variables string) ask {
	if variables == "" {
		variables = "null"
	}
	body, err := json.Marshal(map[string]any{"query": query, "variables": json.RawMessage(variables)})
	if err != nil {
		panic(err) // the test's own JSON
	}
	return ask{name: name, path: "/guarded/graphql", body: string(body)}
}

// asks are all ways to read or count documents. The answer of each must change when a document is added.
func asks() []ask {
	const (
		all     = `{"f":null}`
		secret  = `{"f":{"op":"in","content":{"fieldName":"studyId","value":["S2"]}}}`
		anyOf   = `{"f":{"op":"or","content":[{"op":"in","content":{"fieldName":"studyId","value":["S2"]}},{"op":"not-in","content":{"fieldName":"studyId","value":["S2"]}}]}}`
		missing = `{"f":{"op":"not","content":[{"op":"in","content":{"fieldName":"studyId","value":["__missing__"]}}]}}`
		wild    = `{"f":{"op":"wildcard","content":{"fieldNames":["files.fileName"],"value":"reads"}}}`
		pivot   = `{"f":{"op":"and","pivot":"files","content":[{"op":"gt","content":{"fieldName":"files.fileSize","value":0}}]}}`
	)
	hits := `query($f:JSON){guarded{hits(filters:$f,first:50,sort:[{fieldName:"experiment.number"}]){total edges{searchAfter node{studyId experiment{number} files{hits{total edges{node{fileName}}}}}}}}}`
	facet := func(parts string) string {
		return `query($f:JSON){guarded{aggregations(filters:$f){` + parts + `}}}`
	}
	list := []ask{
		graphql("the total alone", `{guarded{hits{total}}}`, ""),
		graphql("the total beside no hits", `{guarded{hits(first:0){total edges{node{studyId}}}}}`, ""),
		graphql("the last of an order", `{guarded{hits(first:1,sort:[{fieldName:"experiment.number",order:desc}]){edges{node{studyId}}}}}`, ""),
		graphql("what follows an offset", `{guarded{hits(first:5,offset:1,sort:[{fieldName:"experiment.number"}]){edges{node{studyId experiment{number}}}}}}`, ""),
		graphql("several at once", `{guarded{a:hits(first:0){total} b:hits(first:3){total} aggregations{studyId{bucket_count}}}}`, ""),
		graphql("a fragment", `query{guarded{...x}} fragment x on guarded{hits(first:9,sort:[{fieldName:"experiment.number"}]){edges{node{studyId}}}}`, ""),
		graphql("buckets", facet(`studyId{bucket_count buckets{key doc_count}}`), all),
		graphql("buckets of elements", facet(`files__fileName{buckets{key doc_count}}`), all),
		graphql("buckets of their own clause", facet(`studyId{buckets{key doc_count}}`), secret),
		graphql("buckets that filter themselves", `query($f:JSON){guarded{aggregations(filters:$f,aggregations_filter_themselves:true){studyId{buckets{key doc_count}}}}}`, anyOf),
		graphql("the missing bucket", facet(`experiment__hint{buckets{key doc_count}}`), all),
		graphql("distinct values", facet(`studyId{cardinality} files__fileName{cardinality}`), all),
		graphql("statistics", facet(`experiment__number{stats{min max avg sum count}}`), all),
		graphql("statistics of elements", facet(`files__fileSize{stats{min max avg sum count}}`), all),
		graphql("a histogram", facet(`experiment__number{histogram(interval:1){buckets{key doc_count}}}`), all),
		graphql("ranges", facet(`experiment__number{range(ranges:[{from:0,to:1000}]){buckets{doc_count}}}`), all),
		graphql("top hits", facet(`files__fileType{buckets{key doc_count top_hits(_source:["studyId"],size:10)}}`), all),
		graphql("a filter by term", facet(`files__fileType{buckets{key doc_count filter_by_term(filter:{op:"and",content:[{op:"in",content:{fieldName:"analysisState",value:["PUBLISHED"]}}]})}}`), all),
	}
	for name, variables := range map[string]string{
		"no filter": all, "what is secret or not": anyOf, "what has a study": missing, "a wildcard": wild, "a pivot": pivot,
	} {
		list = append(list, graphql("hits of "+name, hits, variables))
	}
	return list
}

// TestNothingForbiddenIsSeen: every answer to a caller who may see one study is, byte for byte, the one without the documents of the
// other studies.
func TestNothingForbiddenIsSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBuiltIn(t, plan{more: tokens + catalogueDir(dir)})
	folder{
		"guarded/base.json":   based("guarded", aliasWord, ""),
		"guarded/access.json": `{"field":"studyId","scope":"{value}.READ","public":null}`,
	}.write(b.world, dir)
	_, system := b.firstKey("tutti.WRITE")
	b.start()
	b.token = system
	b.prepareStudies("S1", "S2", "S3")
	_, reader := b.key(`["S1.READ"]`)
	_, writer := b.key(`["S1.WRITE"]`)
	_, odd := b.key(`["S.READ","S11.READ","__missing__.READ","S1.READ.READ"]`)

	// What the fields are is known once a document has been there.
	first := b.mustSend(http.MethodPost, "/submit/S3", b.payload("S3", `"hint":"x"`), http.StatusOK).get("analysisId").String()
	b.publish("S3", first)
	b.awaitConverged()
	b.mustSend(http.MethodPut, statePath("S3", "unpublish", first), "", http.StatusOK)
	b.awaitConverged()
	b.awaitField("guarded", "experiment.hint", "keyword")

	answers := func(token string) map[string]string {
		t.Helper()
		if err := b.app.Index().Refresh(t.Context(), b.alias); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, q := range asks() {
			a := b.mustSendAs(token, http.MethodPost, q.path, q.body, http.StatusOK)
			if a.get("errors").Exists() {
				t.Errorf("%s: %s", q.name, a.raw)
			}
			all[q.name] = string(a.raw)
		}
		return all
	}
	none := answers(system)
	for range 3 {
		b.publish("S1", b.submit("S1"))
	}
	b.awaitConverged()
	mine := answers(system)
	for range 2 {
		b.publish("S2", b.submit("S2"))
	}
	b.awaitConverged()
	whole := answers(system)
	for _, q := range asks() {
		if whole[q.name] == mine[q.name] || mine[q.name] == none[q.name] && !strings.Contains(q.name, "own clause") {
			t.Errorf("%s does not depend on the documents: %s", q.name, whole[q.name])
		}
	}
	for _, c := range []struct {
		who, token string
		want       map[string]string
	}{
		{"nobody", "", none}, {"who reads S1", reader, mine}, {"who writes S1", writer, none}, {"odd scopes", odd, none},
	} {
		if diff := cmp.Diff(c.want, answers(c.token)); diff != "" {
			t.Errorf("%s sees (-want +got):\n%s", c.who, diff)
		}
	}
}

// TestErrorsShowNothingForbidden: what is wrong with a question is said without looking at documents.
func TestErrorsShowNothingForbidden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBuiltIn(t, plan{more: tokens + catalogueDir(dir)})
	folder{
		"guarded/base.json":   based("guarded", aliasWord, ""),
		"guarded/access.json": `{"field":"studyId","scope":"{value}.READ","public":null}`,
	}.write(b.world, dir)
	_, system := b.firstKey("tutti.WRITE")
	b.start()
	b.token = system
	b.prepareStudies("S2")
	b.publish("S2", b.submit("S2"))
	b.awaitConverged()
	b.awaitAvailable("guarded")
	for _, query := range []string{
		`{guarded{hits(filters:{op:"in",content:{fieldName:"nope",value:["S2"]}}){total}}}`,
		`{guarded{hits(sort:[{fieldName:"nope"}]){total}}}`,
		`{guarded{hits(searchAfter:["S2",2,{}]){total edges{node{studyId}}}}}`,
		`{guarded{hits(filters:{op:"in",content:{fieldName:"studyId",value:["set_id:x"]}}){total}}}`,
	} {
		q := graphql("", query, "")
		a, err := b.sendAs("", http.MethodPost, q.path, q.body)
		if err != nil {
			t.Fatal(err)
		}
		if !a.get("errors").Exists() {
			t.Errorf("%s: %d %s", query, a.status, a.raw)
		}
		for _, secret := range []string{"reads-1", `"total":1`, "_index", "shard", "exception", b.alias} {
			if strings.Contains(string(a.raw), secret) {
				t.Errorf("%s reveals %q: %s", query, secret, a.raw)
			}
		}
	}
	b.wantStatus(core.CataloguesHealthy)
}
