package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// The queries of the demo, like those of a portal.
const (
	// facetQuery counts analyses per value with a filter: the filtered field still shows its other values.
	facetQuery = `{analysis{aggregations(filters:{op:"in",content:{fieldName:"files.fileType",value:["VCF"]}})` +
		`{files__fileType{buckets{key doc_count}} experiment__experimentalStrategy{buckets{key doc_count}}}}}`
	// hitsQuery selects documents with one file that is both large and a CRAM.
	hitsQuery = `{analysis{hits(first:2,sort:[{fieldName:"updatedAt",order:desc}],filters:{op:"and",pivot:"files",content:[` +
		`{op:"in",content:{fieldName:"files.fileType",value:["CRAM"]}},{op:"gt",content:{fieldName:"files.fileSize",value:30000000000}}]})` +
		`{total edges{node{analysisId studyId files{hits{edges{node{fileType fileSize}}}}}}}}}`
)

// downloadParams selects a table.
const downloadParams = `{"format":"tsv","columns":["analysisId","studyId","files.fileName","files.fileSize"],"maxRows":20}`

// search queries facets and hits.
func (d *demo) search(ctx context.Context) error {
	path := "/" + catalogueAnalyses + "/graphql"
	d.say("\n8. Facets and hits with GraphQL: POST %s", path)
	answer, took, err := d.graphql(ctx, path, facetQuery)
	if err != nil {
		return err
	}
	d.say("   Of the analyses with a VCF file (%s):", took.Round(10*time.Microsecond))
	for _, field := range []string{"files__fileType", "experiment__experimentalStrategy"} {
		var values []string
		for _, bucket := range answer.Get("analysis.aggregations." + field + ".buckets").Array() {
			values = append(values, fmt.Sprintf("%s %s", bucket.Get("key"), bucket.Get("doc_count")))
		}
		d.say("   %-36s %s", strings.ReplaceAll(field, "__", "."), strings.Join(values, ", "))
	}
	answer, took, err = d.graphql(ctx, path, hitsQuery)
	if err != nil {
		return err
	}
	hits := answer.Get("analysis.hits")
	d.say("   Analyses with one file that is a CRAM and larger than 30 GB: %s (%s), the newest:", hits.Get("total"), took.Round(10*time.Microsecond))
	for _, edge := range hits.Get("edges").Array() {
		var files []string
		for _, file := range edge.Get("node.files.hits.edges").Array() {
			files = append(files, file.Get("node.fileType").String()+" "+fileSize(file.Get("node.fileSize").Float()))
		}
		d.say("   %s %s: %s", edge.Get("node.analysisId"), edge.Get("node.studyId"), strings.Join(files, ", "))
	}
	return nil
}

// graphql runs a query and returns its data. GraphQL errors are errors.
func (d *demo) graphql(ctx context.Context, path, query string) (gjson.Result, time.Duration, error) {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return gjson.Result{}, 0, fmt.Errorf("encoding a query: %w", err)
	}
	began := time.Now()
	status, answer, err := d.client.try(ctx, http.MethodPost, path, body)
	if err != nil {
		return gjson.Result{}, 0, err
	}
	if status != http.StatusOK || answer.Get("errors").Exists() {
		return gjson.Result{}, 0, fmt.Errorf("%s returned %d: %.500s", path, status, answer.Raw)
	}
	return answer.Get("data"), time.Since(began), nil
}

// graphqlCommand returns the command that runs a query.
func graphqlCommand(base, catalogue, query string) string {
	body, _ := json.Marshal(map[string]string{"query": query}) // a constant of this file
	return fmt.Sprintf("curl -X POST %s/%s/graphql -H 'Content-Type: application/json' -d '%s'", base, catalogue, body)
}

// fileSize returns a number of bytes in GB, or in MB below one GB.
func fileSize(n float64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", n/1e6)
	}
	return fmt.Sprintf("%.1f GB", n/1e9)
}
