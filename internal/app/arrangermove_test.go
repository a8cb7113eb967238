package app_test

import (
	"encoding/json"
	"testing"

	"tutti/internal/core"
)

// TestMoveFromArranger: what deploy/docs/migrating.md says about tutti in its table for those who move from Arranger.
func TestMoveFromArranger(t *testing.T) {
	t.Parallel()
	w, _ := newCatalogued(t, settings{}, folder{"a/base.json": based("a", aliasWord, "")})
	w.put("S1", "A1", `"updatedAt":"2024-03-20T10:00:00Z","files":[{"fileType":"bam","fileSize":11},{"fileType":"vcf","fileSize":12}]`)
	w.put("S1", "A2", `"updatedAt":"2024-04-01T00:00:00Z","files":[{"fileType":"bam","fileSize":25},{"fileSize":3}]`)
	w.put("S2", "B3", `"updatedAt":"2024-02-29T00:00:00Z"`)
	w.start()
	w.run("", "", core.JobSucceeded)
	w.awaitAvailable("a")
	ask := func(query, filter, path string) string {
		t.Helper()
		body, err := json.Marshal(map[string]any{"query": query, "variables": map[string]any{"f": json.RawMessage(filter)}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := w.tryPostBody("/a/graphql", string(body))
		if err != nil {
			t.Fatal(err)
		}
		if found := a.get(path); found.Exists() {
			return found.Raw
		}
		return string(a.raw)
	}
	const hits = `query($f:JSON){a{hits(filters:$f,sort:[{fieldName:"analysisId"}]){edges{node{analysisId}}}}}`
	const facet = `query($f:JSON){a{aggregations(filters:$f){studyId{buckets{key doc_count}}}}}`
	for name, c := range map[string]struct{ query, filter, path, want string }{
		"lte a month": {hits, `{"op":"lte","content":{"fieldName":"updatedAt","value":"2024-03"}}`, ids, `["A1","B3"]`},
		"in a month":  {hits, `{"op":"in","content":{"fieldName":"updatedAt","value":["2024-03"]}}`, ids, `["A1"]`},
		"contains":    {hits, `{"op":"filter","content":{"fieldNames":["analysisId"],"value":"1"}}`, ids, `["A1"]`},
		"missing":     {hits, `{"op":"in","content":{"fieldName":"files.fileType","value":["__missing__"]}}`, ids, `["B3"]`},
		"missing below a pivot": {
			hits, `{"op":"and","pivot":"files","content":[{"op":"in","content":{"fieldName":"files.fileType","value":["__missing__"]}}]}`, ids, `["A2"]`,
		},
		"two values of gt": {
			hits, `{"op":"gt","content":{"fieldName":"files.fileSize","value":[1,20]}}`, "errors.0.extensions.code", `"BAD_USER_INPUT"`,
		},
		"own clause inside or": {
			facet, `{"op":"or","content":[{"op":"in","content":{"fieldName":"studyId","value":["S1"]}},{"op":"in","content":{"fieldName":"analysisId","value":["none"]}}]}`,
			"data.a.aggregations.studyId.buckets", `[{"key":"S1","doc_count":2}]`,
		},
		"own clause": {
			facet, `{"op":"and","content":[{"op":"in","content":{"fieldName":"studyId","value":["S1"]}}]}`,
			"data.a.aggregations.studyId.buckets", `[{"key":"S1","doc_count":2},{"key":"S2","doc_count":1}]`,
		},
		"own searchAfter":                     {`{a{hits(searchAfter:["A1"],sort:[{fieldName:"analysisId"}]){edges{node{analysisId}}}}}`, `{}`, ids, `["A2","B3"]`},
		"own searchAfter without tie-breaker": {`{a{hits(searchAfter:["S1"],sort:[{fieldName:"studyId"}]){edges{node{analysisId}}}}}`, `{}`, "errors.0.extensions.code", `"BAD_USER_INPUT"`},
		"histogram": {
			`{a{aggregations{files__fileSize{histogram(interval:10){buckets{key doc_count}}}}}}`, `{}`,
			"data.a.aggregations.files__fileSize.histogram.buckets", `[{"key":"0","doc_count":1},{"key":"10","doc_count":1},{"key":"20","doc_count":1}]`,
		},
		"top_hits of size 2": {
			`{a{aggregations{studyId{buckets{key top_hits(_source:["analysisId"],size:2)}}}}}`, `{}`, "data.a.aggregations.studyId.buckets.0.top_hits", `[{"analysisId":"A1"},{"analysisId":"A2"}]`,
		},
		"top_hits of size 1": {
			`{a{aggregations{studyId{buckets{key top_hits(_source:["analysisId"],size:1)}}}}}`, `{}`, "data.a.aggregations.studyId.buckets.0.top_hits", `{"analysisId":"A1"}`,
		},
	} {
		if got := ask(c.query, c.filter, c.path); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// ids is the path of the ids of hits in a response.
const ids = "data.a.hits.edges.#.node.analysisId"
