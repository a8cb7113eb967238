package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/internal/index/mappingplan"
	"tutti/internal/report/recordtrace"
	"tutti/internal/tools/apitest"
)

// operation is one operation of the document.
type operation struct {
	method, pattern string
	*openapi3.Operation
}

func (o operation) String() string { return o.method + " " + o.pattern }

func operations(t *testing.T) []operation {
	t.Helper()
	var all []operation
	for pattern, item := range apitest.Document(t).Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, operation{method: method, pattern: pattern, Operation: op})
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// TestErrorsOfEveryOperationAreDescribed derives from what an operation is which errors it can answer: those and no
// others are described.
func TestErrorsOfEveryOperationAreDescribed(t *testing.T) {
	own := map[string][]string{
		"CancelJob": {"409"}, "IndexRepository": {"409"}, "RollbackRebuild": {"409"}, "DropPreviousIndex": {"409"}, "RetryDeadLetter": {"409"}, "Ready": {"503"},
		"CreateStudy": {"409"}, "CreateStudySlash": {"409"},
		"GetCatalogue": {"409"}, "GetCatalogueBelowItsId": {"409"}, "GetOnlyCatalogue": {"404"},
		"SubmitAnalysis": {"409", "422"}, "ReplaceAnalysis": {"409", "422"}, "PatchAnalysis": {"409", "422"},
		"PublishAnalysis": {"409", "502"}, "UnpublishAnalysis": {"409"}, "SuppressAnalysis": {"409"},
		"QueryCatalogue": {"409"}, "QueryCatalogueTagged": {"409"}, "QueryCatalogueByGet": {"403", "405", "409"}, "DownloadDocuments": {"409"},
		"QueryOnlyCatalogue": {"404"}, "QueryOnlyCatalogueByGet": {"403", "404", "405"}, "DownloadDocumentsOfOnlyCatalogue": {"404"},
		// What only some tokens may read.
		"ListAnalyses": {"403"}, "GetAnalysis": {"403"}, "ListAnalysisFiles": {"403"}, "PageAnalyses": {"403"}, "ListAPIKeys": {"403"},
		"ExportStudy": {"403"}, "TraceRecord": {"403"}, "PlanMapping": {"403"},
		// They read the store without a token.
		"ListEntities": {"503"}, "GetEntity": {"503"},
		"ChangeFile": {"409", "422"}, "Backup": {"403", "409"},
		"CallMCP": {"404", "429"}, "DescribeAuthorization": {"404"}, "DescribeMCPAuthorization": {"404"},
	}
	// The path names what is to be made.
	makes := map[string]bool{"CreateStudy": true, "CreateStudySlash": true}
	for _, op := range operations(t) {
		t.Run(op.OperationID, func(t *testing.T) {
			want := append([]string{"400", "413", "431", "500"}, own[op.OperationID]...)
			if op.pattern != "/metrics" {
				want = append(want, "406")
			}
			if monitored := op.pattern == "/ping" || op.pattern == "/ready" || op.pattern == "/metrics"; !monitored {
				want = append(want, "421")
			}
			if op.method != "GET" {
				want = append(want, "403")
			}
			if op.RequestBody != nil {
				want = append(want, "415")
			}
			// Those answer without a token.
			if op.Security == nil {
				t.Fatal("security is not described")
			}
			free := op.Tags[0] == "Introspection" || len(*op.Security) == 0
			if !free {
				want = append(want, "401", "503")
			}
			if strings.Contains(op.pattern, "{") && !makes[op.OperationID] {
				want = append(want, "404")
			}
			var got []string
			for status := range op.Responses.Map() {
				if status >= "400" {
					got = append(got, status)
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEveryInputAndAnswerHasAnExample: also what no answer of a test has shown.
func TestEveryInputAndAnswerHasAnExample(t *testing.T) {
	for _, op := range operations(t) {
		t.Run(op.OperationID, func(t *testing.T) {
			for _, p := range op.Parameters {
				if p.Value.Example == nil && len(p.Value.Examples) == 0 {
					t.Errorf("parameter %s", p.Value.Name)
				}
			}
			if op.RequestBody != nil {
				for mediaType, content := range op.RequestBody.Value.Content {
					if len(apitest.ExamplesOf(content)) == 0 {
						t.Errorf("request body %s", mediaType)
					}
				}
			}
			for status, r := range op.Responses.Map() {
				for mediaType, content := range r.Value.Content {
					if len(apitest.ExamplesOf(content)) == 0 {
						t.Errorf("%s %s", status, mediaType)
					}
				}
			}
		})
	}
}

// TestExamplesFitTheirSchemas holds every example against its schema, and an answer's problem against its status.
func TestExamplesFitTheirSchemas(t *testing.T) {
	if err := apitest.Document(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
	for _, op := range operations(t) {
		t.Run(op.OperationID, func(t *testing.T) {
			for _, p := range op.Parameters {
				fit(t, "parameter "+p.Value.Name, p.Value.Schema, p.Value.Example)
			}
			if op.RequestBody != nil {
				for mediaType, content := range op.RequestBody.Value.Content {
					for _, example := range apitest.ExamplesOf(content) {
						fit(t, mediaType, content.Schema, example)
					}
				}
			}
			for status, r := range op.Responses.Map() {
				for name, header := range r.Value.Headers {
					if header.Value.Example != nil {
						fit(t, status+" header "+name, header.Value.Schema, header.Value.Example)
					}
				}
				for mediaType, content := range r.Value.Content {
					for _, example := range apitest.ExamplesOf(content) {
						fit(t, status+" "+mediaType, content.Schema, example)
						if problem, ok := example.(map[string]any); mediaType == "application/problem+json" && (!ok || fmt.Sprint(problem["status"]) != status) {
							t.Errorf("%s: the example is %v", status, example)
						}
					}
				}
			}
		})
	}
}

// TestExampleThatDoesNotFitIsFound: the check of examples can fail.
func TestExampleThatDoesNotFitIsFound(t *testing.T) {
	raw := apitest.ReadDocument()
	broken := strings.Replace(string(raw), `"message":"tutti is alive"`, `"massage":"tutti is alive"`, 1)
	doc, err := openapi3.NewLoader().LoadFromData([]byte(broken))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err == nil || !strings.Contains(err.Error(), "massage") {
		t.Errorf("got %v", err)
	}
}

// TestExampleLinesAreDeadLetters: the schema of the export is text, whose lines it cannot describe.
func TestExampleLinesAreDeadLetters(t *testing.T) {
	content := apitest.Document(t).Paths.Value("/dead-letters").Get.Responses.Value("200").Value.Content["application/x-ndjson"]
	lines := strings.SplitAfter(content.Example.(string), "\n")
	if len(lines) != 3 || lines[2] != "" {
		t.Fatalf("%q", lines)
	}
	for _, line := range lines[:2] {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		fit(t, "line", apitest.Document(t).Components.Schemas["DeadLetter"], v)
	}
}

func fit(t *testing.T, where string, schema *openapi3.SchemaRef, example any) {
	t.Helper()
	if err := schema.Value.VisitJSON(example, openapi3.MultiErrors()); err != nil {
		t.Errorf("%s: %v", where, err)
	}
}

// TestNoTypeLists: no schema has several types, except one and null, because most generators of clients cannot read that.
func TestNoTypeLists(t *testing.T) {
	var check func(at string, part any)
	check = func(at string, part any) {
		switch part := part.(type) {
		case map[string]any:
			for name, value := range part {
				if list, _ := value.([]any); name == "type" && (len(list) > 2 || len(list) == 2 && !slices.Contains(list, any("null"))) {
					t.Errorf("%s has the types %v", at, list)
				}
				if name != "example" && name != "examples" {
					check(at+"/"+name, value)
				}
			}
		case []any:
			for i, value := range part {
				check(fmt.Sprintf("%s/%d", at, i), value)
			}
		}
	}
	_, body := apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{}), apitest.Ask{Method: "GET", Target: "/openapi.json"})
	var whole any
	if err := json.Unmarshal(body, &whole); err != nil {
		t.Fatal(err)
	}
	check("#", whole)
}

// TestMembersOfPlansAreDescribed: every member that a handler may write of what it encodes as it is, is in the document.
func TestMembersOfPlansAreDescribed(t *testing.T) {
	schemas := apitest.Document(t).Components.Schemas
	for name, value := range map[string]any{"MappingPlan": mappingplan.Plan{}, "RecordTrace": recordtrace.Trace{}} {
		for _, missing := range undescribed(reflect.TypeOf(value), schemas[name].Value, name) {
			t.Errorf("%s is not described", missing)
		}
	}
}

// undescribed returns the members of a struct that a schema lacks, by path.
func undescribed(in reflect.Type, schema *openapi3.Schema, path string) []string {
	for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice && in.Elem().Kind() == reflect.Struct {
		if in.Kind() == reflect.Slice {
			if schema.Items == nil {
				return []string{path + "[]"}
			}
			schema = schema.Items.Value
		}
		in = in.Elem()
	}
	if in.Kind() != reflect.Struct {
		return nil
	}
	var missing []string
	for f := range in.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch member := schema.Properties[name]; {
		case name == "" || name == "-":
		case member == nil:
			missing = append(missing, path+"."+name)
		default:
			missing = append(missing, undescribed(f.Type, member.Value, path+"."+name)...)
		}
	}
	return missing
}
