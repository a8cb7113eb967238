package querying

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"tutti/internal/tools/bench/results"
)

// page is a page of a portal, as one GraphQL operation and as an expert's hand-written search.
type page struct {
	name string
	// target is the target of tutti's rate relative to the engine's with one and four connections, many with sixteen; nil for none.
	target, many *results.Target
	// operation is the GraphQL query, whose variable filters differs for each request.
	operation string
	// fixed repeats the same request, so that caches have an effect; otherwise each request has its own bound.
	fixed bool
	// path and body are the hand-written request of a filter's bound.
	path string
	body func(bound string) []byte
}

// facetField is a field whose values a page counts.
type facetField struct {
	name string
	// nested is the path of its nested elements, "" for none.
	nested string
}

func facetFields() []facetField {
	return []facetField{
		{name: "studyId"},
		{name: "analysisType.name"},
		{name: "experiment.experimentalStrategy"},
		{name: "experiment.platform"},
		{name: "workflow.workflowName"},
		{name: "files.fileType", nested: "files"},
		{name: "files.dataType", nested: "files"},
		{name: "samples.specimen.tumourNormalDesignation", nested: "samples"},
	}
}

// hitFields are the ten columns of a table.
func hitFields() []string {
	return []string{
		"analysisId", "studyId", "analysisState", "createdAt", "updatedAt", "analysisType.name", "experiment.platform",
		"experiment.experimentalStrategy", "workflow.workflowName", "workflow.genomeBuild",
	}
}

// The filters that a user has chosen, by field.
const (
	chosenStudies = `["PANC-CA","LIVR-JP","BRST-DE"]`
	chosenTypes   = `["VCF","BAM","CRAM"]`
)

func pages() []page {
	return []page{
		{
			name: "8 facets with filters", target: results.AtLeast(1.2), operation: facetOperation(), path: "/_search", body: handwrittenFacets,
		},
		{
			name: "8 facets with filters, the same each time, beside one hand-written multi-search", target: results.AtLeast(0.7), many: results.AtLeast(0.7),
			operation: facetOperation(), fixed: true, path: "/_msearch", body: handwrittenFacetsByFilter,
		},
		{
			name: "20 hits of 10 fields", target: results.AtLeast(0.85), many: results.AtLeast(0.85), operation: hitsOperation(20, plainSelection(hitFields())),
			path: "/_search", body: func(bound string) []byte { return handwrittenHits(20, hitFields(), bound) },
		},
		{
			name: "1,000 hits with nested files", target: results.AtLeast(1.2), many: results.AtLeast(1.2),
			operation: hitsOperation(1000, plainSelection(hitFields())+filesSelection()), path: "/_search",
			body: func(bound string) []byte {
				return handwrittenHits(1000, append(hitFields(), handwrittenFiles()...), bound)
			},
		},
	}
}

// bound returns the next bound of the range that every page filters by.
func (p page) bound(rng *rand.Rand) string {
	if p.fixed {
		return "20.5"
	}
	return fmt.Sprintf("%.4f", 10+20*rng.Float64())
}

// request returns the request to tutti.
func (p page) request(bound string) []byte {
	filters := fmt.Sprintf(`{"op":"and","content":[{"op":"in","content":{"fieldName":"studyId","value":%s}},`+
		`{"op":"in","content":{"fieldName":"files.fileType","value":%s}},{"op":"gte","content":{"fieldName":"experiment.coverage","value":%s}}]}`,
		chosenStudies, chosenTypes, bound)
	body, _ := json.Marshal(map[string]any{ // strings and constant JSON
		"query": p.operation, "variables": map[string]json.RawMessage{"filters": json.RawMessage(filters)},
	})
	return body
}

func facetOperation() string {
	var b strings.Builder
	b.WriteString(`query($filters:JSON){analysis{aggregations(filters:$filters,aggregations_filter_themselves:false,include_missing:false){`)
	for _, f := range facetFields() {
		fmt.Fprintf(&b, "%s{buckets(max:20){key doc_count}} ", strings.ReplaceAll(f.name, ".", "__"))
	}
	b.WriteString("}}}")
	return b.String()
}

func hitsOperation(first int, selection string) string {
	return fmt.Sprintf(`query($filters:JSON){analysis{hits(filters:$filters,first:%d,sort:[{fieldName:"analysisId",order:asc}]){total edges{node{%s}}}}}`,
		first, selection)
}

// plainSelection selects fields of objects: their names are grouped by object.
func plainSelection(names []string) string {
	var b strings.Builder
	open := ""
	for _, name := range names {
		object, member, below := strings.Cut(name, ".")
		if !below {
			object, member = "", name
		}
		if object != open {
			if open != "" {
				b.WriteString("} ")
			}
			if object != "" {
				b.WriteString(object + "{")
			}
			open = object
		}
		b.WriteString(member + " ")
	}
	if open != "" {
		b.WriteString("} ")
	}
	return b.String()
}

func filesSelection() string {
	return `files{hits{total edges{node{objectId fileName fileSize fileType fileMd5sum fileAccess dataType}}}}`
}

func handwrittenFiles() []string {
	return []string{
		"files.objectId", "files.fileName", "files.fileSize", "files.fileType", "files.fileMd5sum", "files.fileAccess", "files.dataType",
	}
}

// object is a JSON object, encoded with sorted members.
type object map[string]any

func encoded(v any) []byte {
	body, _ := json.Marshal(v) // strings and numbers
	return body
}

// clauses returns the filters of the page by field.
func clauses(bound string) map[string]any {
	return map[string]any{
		"studyId": object{"terms": object{"studyId": json.RawMessage(chosenStudies)}},
		"files.fileType": object{"nested": object{
			"path": "files", "query": object{"terms": object{"files.fileType": json.RawMessage(chosenTypes)}},
		}},
		"experiment.coverage": object{"range": object{"experiment.coverage": object{"gte": json.RawMessage(bound)}}},
	}
}

// without returns the filters except that of one field.
func without(bound, field string) any {
	var rest []any
	for _, name := range []string{"studyId", "files.fileType", "experiment.coverage"} {
		if name != field {
			rest = append(rest, clauses(bound)[name])
		}
	}
	return object{"bool": object{"filter": rest}}
}

// counting returns the aggregation that counts the documents of a field by value, with the elements filtered by the choice of a sibling.
func counting(f facetField) object {
	terms := object{"terms": object{"field": f.name, "size": 20}}
	if f.nested == "" {
		return terms
	}
	terms = object{
		"terms": object{"field": f.name, "size": 20, "order": []any{object{"documents": "desc"}, object{"_key": "asc"}}},
		"aggs":  object{"documents": object{"reverse_nested": object{}}},
	}
	if f.name == "files.dataType" {
		terms = object{
			"filter": object{"terms": object{"files.fileType": json.RawMessage(chosenTypes)}}, "aggs": object{"narrowed": terms},
		}
	}
	return object{"nested": object{"path": f.nested}, "aggs": object{"elements": terms}}
}

// handwrittenFacets returns the page as one search: each facet has its own filter.
func handwrittenFacets(bound string) []byte {
	all := object{}
	for _, f := range facetFields() {
		all[f.name] = object{"filter": without(bound, f.name), "aggs": object{"values": counting(f)}}
	}
	return encoded(object{"size": 0, "track_total_hits": false, "aggs": all})
}

// handwrittenFacetsByFilter returns the page as one multi-search: one search for each distinct filter, which the engine can cache.
func handwrittenFacetsByFilter(bound string) []byte {
	var b []byte
	for _, own := range []string{"", "studyId", "files.fileType"} {
		all := object{}
		for _, f := range facetFields() {
			chosen := f.name == "studyId" || f.name == "files.fileType"
			if f.name == own || own == "" && !chosen {
				all[f.name] = counting(f)
			}
		}
		b = append(b, "{}\n"...)
		b = append(b, encoded(object{"size": 0, "track_total_hits": false, "query": without(bound, own), "aggs": all})...)
		b = append(b, '\n')
	}
	return b
}

func handwrittenHits(size int, fields []string, bound string) []byte {
	return encoded(object{
		"size": size, "track_total_hits": true, "query": without(bound, ""), "_source": fields, "sort": []any{object{"analysisId": "asc"}},
	})
}

// contentType returns the content type of the hand-written request.
func (p page) contentType() string {
	if strings.HasSuffix(p.path, "_msearch") {
		return "application/x-ndjson"
	}
	return "application/json"
}

// method is the method of all requests of a page.
const method = http.MethodPost
