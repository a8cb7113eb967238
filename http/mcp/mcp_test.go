package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/http/mcp"
	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/tools/apitest"
)

// TestMCPTransport: what the specification of streamable HTTP asks of a server without sessions.
func TestMCPTransport(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	open := apitest.NewHandler(t, apitest.Working(), api.Config{CORSOrigins: []string{"https://chat.example.org"}})
	p := apitest.Working()
	p.Mcp.PublicURL = "https://tutti.example.org/base"
	tokens := apitest.GuardedHandler(t, p, d, api.Config{Hosts: []string{"tutti.lan"}})
	for name, tt := range map[string]struct {
		h             apitest.Handler
		message, want string
		status        int
		headers       []string
	}{
		"a list":                       {open, apitest.ListTools, `"name":"execute_query"`, 200, nil},
		"a notification":               {open, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", 202, nil},
		"a ping":                       {open, `{"jsonrpc":"2.0","id":"a","method":"ping"}`, `"result":{`, 200, nil},
		"only JSON is accepted":        {open, apitest.ListTools, `"tools"`, 200, []string{"Accept", "application/json"}},
		"a session of another server":  {open, apitest.ListTools, `"tools"`, 200, []string{"Mcp-Session-Id", "x"}},
		"an older version":             {open, apitest.ListTools, `"tools"`, 200, []string{"Mcp-Protocol-Version", "2025-06-18"}},
		"an unknown version":           {open, apitest.ListTools, "Unsupported protocol version", 400, []string{"Mcp-Protocol-Version", "1999-01-01"}},
		"a version to come":            {open, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, `"requested":"2099-01-01"`, 400, []string{"Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list"}},
		"a batch":                      {open, "[" + apitest.ListTools + "]", "batches are not supported", 400, nil},
		"no JSON":                      {open, `{`, "rejected", 400, nil},
		"nothing":                      {open, ``, "rejected", 400, nil},
		"an unknown method":            {open, `{"jsonrpc":"2.0","id":1,"method":"tools/none"}`, "tools/none", 400, nil},
		"text":                         {open, apitest.ListTools, "not declared as JSON", 415, []string{"Content-Type", "text/plain"}},
		"a page of the server":         {open, apitest.ListTools, `"tools"`, 200, []string{"Origin", "http://localhost"}},
		"a page that is allowed":       {open, apitest.ListTools, `"tools"`, 200, []string{"Origin", "https://chat.example.org"}},
		"a page of another origin":     {open, apitest.ListTools, "another origin", 403, []string{"Origin", "https://evil.example.org"}},
		"no origin":                    {open, apitest.ListTools, "another origin", 403, []string{"Origin", "null"}},
		"DNS rebinding with tokens":    {tokens, apitest.ListTools, "another origin", 403, []string{"Host", "evil.example.org", "Origin", "http://evil.example.org"}},
		"the same from a program":      {tokens, apitest.ListTools, `"tools"`, 200, []string{"Host", "evil.example.org"}},
		"a page of a known host":       {tokens, apitest.ListTools, `"tools"`, 200, []string{"Host", "tutti.lan:8080", "Origin", "http://tutti.lan:8080"}},
		"a page of the public address": {tokens, apitest.ListTools, `"tools"`, 200, []string{"Host", "tutti.example.org", "Origin", "https://tutti.example.org"}},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := apitest.SendMCP(t, tt.h, tt.message, tt.headers...)
			if res.StatusCode != tt.status || !strings.Contains(string(body), tt.want) || res.Header.Get("Mcp-Session-Id") != "" {
				t.Errorf("got %d %s, want %d and %q", res.StatusCode, body, tt.status, tt.want)
			}
		})
	}
	for _, method := range []string{"GET", "DELETE"} { // a stream of the server's own messages, the end of a session
		res, body := apitest.Do(t, open, apitest.Ask{Method: method, Target: "/mcp", Header: http.Header{"Accept": {"text/event-stream"}}})
		apitest.WantProblem(t, res, body, 405, "method_not_allowed", "")
		if allow := res.Header.Get("Allow"); allow != "POST" {
			t.Errorf("%s: Allow: %s", method, allow)
		}
	}
}

// TestMCPVersions: the server negotiates every version, and announces no notifications, which it could not send.
func TestMCPVersions(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for asked, want := range map[string]string{"2024-11-05": "2024-11-05", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "1999-01-01": "2025-11-25"} {
		_, body := apitest.SendMCP(t, h, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+asked+
			`","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`)
		result := gjson.GetBytes(body, "result")
		if got := result.Get("protocolVersion").String(); got != want {
			t.Errorf("%s: got %s", asked, body)
		}
		if c := result.Get("capabilities").Raw; c != `{"resources":{},"tools":{}}` {
			t.Errorf("capabilities %s", c)
		}
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	newest := []string{"Mcp-Protocol-Version", "2026-07-28", "Accept", "application/json, text/event-stream", "Mcp-Method"}
	res, body := apitest.SendMCP(t, h, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`, append(newest, "server/discover")...)
	if res.StatusCode != 200 || !slices.ContainsFunc(gjson.GetBytes(body, "result.supportedVersions").Array(), func(v gjson.Result) bool { return v.String() == "2026-07-28" }) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	// A result of this version says that it is complete.
	res, body = apitest.SendMCP(t, h, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none","arguments":{},`+meta+`}}`, append(newest, "tools/call", "Mcp-Name", "none")...)
	if res.StatusCode != 200 || !gjson.GetBytes(body, "result.isError").Bool() || gjson.GetBytes(body, "result.resultType").String() != "complete" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	// A stream of changes ends at once: the response would be held for ever.
	res, body = apitest.SendMCP(t, h, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourcesListChanged":true},`+meta+`}}`,
		append(newest, "subscriptions/listen")...)
	if res.StatusCode != 200 || !strings.Contains(string(body), `"result"`) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// TestMCPToolsDescribeThemselves: a model can call every tool by its description alone.
func TestMCPToolsDescribeThemselves(t *testing.T) {
	p := apitest.Working()
	p.Catalogues.Put(apitest.Participants())
	h := apitest.NewHandler(t, p, api.Config{})
	_, body := apitest.SendMCP(t, h, apitest.ListTools)
	tools := gjson.GetBytes(body, "result.tools").Array()
	var names []string
	for _, tool := range tools {
		name := tool.Get("name").String()
		names = append(names, name)
		if tool.Get("annotations").Raw != `{"destructiveHint":false,"idempotentHint":true,"openWorldHint":false,"readOnlyHint":true,"title":`+tool.Get("title").Raw+`}` {
			t.Errorf("%s: %s", name, tool.Get("annotations").Raw)
		}
		if len(tool.Get("description").String()) < 40 || tool.Get("title").String() == "" {
			t.Errorf("%s is not described: %s", name, tool.Raw)
		}
		wantDescribed(t, name, tool.Get("inputSchema"))
		// The arguments are those that the tool reads.
		arguments := map[string]any{}
		tool.Get("inputSchema.properties").ForEach(func(argument, schema gjson.Result) bool {
			if example := schema.Get("examples.0"); example.Exists() {
				arguments[argument.String()] = example.Value()
			}
			return true
		})
		if arguments["catalogueId"] != nil {
			arguments["catalogueId"] = "participants"
		}
		encoded, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		if text := apitest.CallMCP(t, h, name, string(encoded)).Get("content.0.text").String(); strings.Contains(text, "argument") || strings.Contains(text, "unknown member") {
			t.Errorf("%s %s: %s", name, encoded, text)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"build_sqon", "execute_query", "get_catalogue_fields", "get_sqon_schema", "index_status", "list_catalogues"}, names); diff != "" {
		t.Error(diff)
	}
	// The operators are those of the language.
	described := gjson.ParseBytes(sqon.Description()).Get("operators")
	var want, got []string
	for _, op := range append(described.Get("field.#.op").Array(), described.Get("combination").Array()...) {
		want = append(want, strings.Replace(op.String(), "wildcard", "filter", 1))
	}
	build := gjson.GetBytes(body, `result.tools.#(name=="build_sqon").inputSchema.properties`)
	for _, op := range build.Get("clauses.items.properties.op.enum").Array() {
		got = append(got, op.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// wantDescribed checks that the properties of a schema are described, at every depth.
func wantDescribed(t *testing.T, where string, schema gjson.Result) {
	t.Helper()
	schema.Get("properties").ForEach(func(name, property gjson.Result) bool {
		at := where + "." + name.String()
		if property.Get("description").String() == "" {
			t.Errorf("%s is not described", at)
		}
		if property.Get("items").IsObject() {
			wantDescribed(t, at, property.Get("items"))
		}
		return true
	})
}

// TestMCPErrors: every failure is a result with a text that says what to do, and is counted by what it is.
func TestMCPErrors(t *testing.T) {
	p := apitest.Working()
	p.Catalogues.Put(apitest.Participants(), apitest.Biosamples())
	secret := core.WrapError(core.CodeUnavailable, "the index does not answer", errForTest)
	p.Searches.ExecuteFn = func(_ context.Context, _ string, _ core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error) {
		switch gjson.GetBytes(r.Variables, "offset").Int() {
		case 1:
			return core.GraphQLResponse{}, secret
		case 2:
			return core.GraphQLResponse{Body: []byte(`{"errors":[{"message":"request timed out","extensions":{"code":"SERVICE_UNAVAILABLE"}}]}`)}, nil
		case 3:
			panic("secret")
		case 4:
			return core.GraphQLResponse{Body: []byte(`{"errors":[{"message":"no such order","extensions":{"code":"BAD_USER_INPUT","hint":"sort by min"}}]}`)}, nil
		case 6:
			return core.GraphQLResponse{Body: []byte(`{"errors":[{"message":"no such order","extensions":{"code":"BAD_USER_INPUT"}}]}`)}, nil
		default:
			return core.GraphQLResponse{}, errForTest
		}
	}
	p.RepositoriesFn = func() ([]core.RepositoryStatus, error) { return nil, errForTest }
	registry := prometheus.NewPedanticRegistry()
	p.Mcp.Metrics = mcp.NewMetrics(registry)
	h := apitest.NewHandler(t, p, api.Config{})
	for _, tt := range []struct{ tool, arguments, result, want string }{
		{"execute_qwery", `{}`, "", `there is no tool "execute_qwery"; did you mean "execute_query"?; the tools are list_catalogues, `},
		{"get_catalogue_fields", `{}`, "invalid", "the argument catalogueId is missing; list_catalogues lists the ids"},
		{"get_catalogue_fields", `{"catalogueId":"participant"}`, "ok", `"catalogueId":"participants"`},
		{"get_catalogue_fields", `{"catalogueId":"particpants"}`, "invalid", `there is no catalogue "particpants"; did you mean "participants"?; list_catalogues lists the ids`},
		{"get_catalogue_fields", `{"catalogueId":"biosamples"}`, "unavailable", `the catalogue "biosamples" has failed with index_not_found: The configured index does not exist; use another catalogue, or try again later`},
		{"get_catalogue_fields", `{"catalogueId":7}`, "invalid", "the argument catalogueId must not be of the type number; see the tool's input schema"},
		{"get_catalogue_fields", `{"catalogId":"a"}`, "invalid", `unknown member "catalogId"; the nearest member is catalogueId`},
		{"get_catalogue_fields", `[]`, "invalid", "not a JSON object"},
		{"execute_query", `{"catalogueId":"participants","offset":1}`, "unavailable", "the index does not answer"},
		{"execute_query", `{"catalogueId":"participants","offset":2}`, "unavailable", "request timed out; try again later; index_status shows the state"},
		{"execute_query", `{"catalogueId":"participants","offset":3}`, "internal", "an internal error occurred"},
		{"execute_query", `{"catalogueId":"participants","offset":4}`, "invalid", "no such order; sort by min"},
		{"execute_query", `{"catalogueId":"participants","offset":6}`, "invalid", "no such order; change the sqon, fields, facets or sort"},
		{"execute_query", `{"catalogueId":"participants","offset":5}`, "internal", "an internal error occurred"},
		{"execute_query", `{"catalogueId":"participants","offset":9901}`, "invalid", "offset must be 0 to 9900, not 9901"},
		{"execute_query", `{"catalogueId":"participants","first":101}`, "invalid", "first must be 0 to 100, not 101"},
		{"execute_query", `{"catalogueId":"participants","facetValues":0}`, "invalid", "facetValues must be 1 to 200, not 0"},
		{"execute_query", `{"catalogueId":"participants","fields":[` + strings.Repeat(`"a",`, 50) + `"a"]}`, "invalid", "fields must be 0 to 50 names, not 51"},
		{"execute_query", `{"catalogueId":"participants","fields":["samples"]}`, "invalid", "of the type nested cannot be shown or counted; name the fields inside an object or a nested field"},
		{"execute_query", `{"catalogueId":"participants","facets":["sample.type"]}`, "invalid", `there is no field "sample.type"; did you mean "samples.type"?; get_catalogue_fields lists the fields`},
		{"execute_query", `{"catalogueId":"participants","sort":[{"fieldName":"age_at_diagnos"}]}`, "invalid", `there is no field "age_at_diagnos"; did you mean "age_at_diagnosis"?`},
		{"execute_query", `{"catalogueId":"participants","sort":[{"fieldName":"samples.type","order":"up"}]}`, "invalid", `unknown order "up"; use asc or desc`},
		{"execute_query", `{"catalogueId":"participants","sqon":{"op":"inn","content":{"fieldName":"participant_id","value":1}}}`, "invalid", `did you mean "in"?`},
		{"execute_query", `{"catalogueId":"participants","sqon":"x"}`, "invalid", "the sqon is invalid: "},
		{"index_status", `{}`, "internal", "an internal error occurred"},
	} {
		result := apitest.CallMCP(t, h, tt.tool, tt.arguments)
		text := result.Get("content.0.text").String()
		if !strings.Contains(text, tt.want) || strings.Contains(text, "secret") || result.Get("isError").Bool() != (tt.result != "ok") {
			t.Errorf("%s %s: got %s, want %q", tt.tool, tt.arguments, result.Raw, tt.want)
		}
		tool, label := tt.tool, tt.result
		if label == "" {
			tool, label = "unknown", "invalid"
		}
		if n := gathered(t, registry, map[string]string{"tool": tool, "result": label}); n == 0 {
			t.Errorf("%s %s is not counted as %s %s", tt.tool, tt.arguments, tool, label)
		}
	}
}

// errForTest is an error whose text no client may see.
var errForTest = errors.New("secret")

// gathered returns how many calls have some labels.
func gathered(t *testing.T, registry *prometheus.Registry, labels map[string]string) uint64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			same := family.GetName() == "tutti_mcp_call_duration_seconds"
			for _, l := range m.GetLabel() {
				same = same && labels[l.GetName()] == l.GetValue()
			}
			if same {
				return m.GetHistogram().GetSampleCount()
			}
		}
	}
	return 0
}

// TestMCPBuildsFilters: clauses become the filter they say, or every clause says what is wrong with it.
func TestMCPBuildsFilters(t *testing.T) {
	p := apitest.Working()
	p.Catalogues.Put(apitest.Participants())
	h := apitest.NewHandler(t, p, api.Config{})
	for name, tt := range map[string]struct{ arguments, sqon, summary string }{
		"nothing": {`"clauses":[]`, `{"content":[],"op":"and"}`, "all documents"},
		"one": {
			`"clauses":[{"op":"in","fieldName":"participant_id","value":["P1","P2"]}]`,
			`{"content":[{"content":{"fieldName":"participant_id","value":["P1","P2"]},"op":"in"}],"op":"and"}`, `participant_id is "P1" or "P2"`,
		},
		"digits": {
			`"clauses":[{"op":"gt","fieldName":"age_at_diagnosis","value":1234567890123456789}]`,
			`{"content":[{"content":{"fieldName":"age_at_diagnosis","value":1234567890123456789},"op":"gt"}],"op":"and"}`, `age_at_diagnosis is greater than 1234567890123456789`,
		},
		"groups": {
			`"op":"or","clauses":[{"op":"not","clauses":[{"op":"between","fieldName":"age_at_diagnosis","value":[1,9]}]},{"op":"and","clauses":[{"op":"filter","fieldName":"participant_id","value":"P*"},{"op":"not-in","fieldName":"participant_id","value":"P1"}]}]`,
			`{"content":[{"content":[{"content":{"fieldName":"age_at_diagnosis","value":[1,9]},"op":"between"}],"op":"not"},{"content":[{"content":{"fieldNames":["participant_id"],"value":"P*"},"op":"filter"},{"content":{"fieldName":"participant_id","value":"P1"},"op":"not-in"}],"op":"and"}],"op":"or"}`,
			`not age_at_diagnosis is between 1 and 9 or (participant_id matches "P*" and participant_id is not "P1")`,
		},
		"patterns": {
			`"clauses":[{"op":"in","fieldName":"participant_id","value":["HLA-A*02:01","P1"]},{"op":"not-in","fieldName":"participant_id","value":"HLA-?\\*02"},{"op":"all","fieldName":"participant_id","value":["a*","b"]}]`,
			`{"content":[{"content":{"fieldName":"participant_id","value":["HLA-A*02:01","P1"]},"op":"in"},{"content":{"fieldName":"participant_id","value":"HLA-?\\*02"},"op":"not-in"},{"content":{"fieldName":"participant_id","value":["a*","b"]},"op":"all"}],"op":"and"}`,
			`participant_id is something that matches "HLA-A*02:01" or "P1" and participant_id is not "HLA-?*02" and participant_id has all of something that matches "a*" and "b"`,
		},
		"a pivot": {
			`"pivot":"samples","clauses":[{"op":"in","fieldName":"samples.type","value":"blood"},{"op":"lte","fieldName":"samples.weight","value":2}]`,
			`{"content":[{"content":{"fieldName":"samples.type","value":"blood"},"op":"in"},{"content":{"fieldName":"samples.weight","value":2},"op":"lte"}],"op":"and","pivot":"samples"}`,
			`one element of samples with: samples.type is "blood" and samples.weight is at most 2`,
		},
		"a pivot within": {
			`"clauses":[{"op":"and","pivot":"samples","clauses":[{"op":"in","fieldName":"samples.type","value":"blood"}]},{"op":"in","fieldName":"participant_id","value":"P1"}]`,
			`{"content":[{"content":[{"content":{"fieldName":"samples.type","value":"blood"},"op":"in"}],"op":"and","pivot":"samples"},{"content":{"fieldName":"participant_id","value":"P1"},"op":"in"}],"op":"and"}`,
			`(one element of samples with: samples.type is "blood") and participant_id is "P1"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := apitest.CallMCP(t, h, "build_sqon", `{"catalogueId":"participants",`+tt.arguments+`}`)
			if got := result.Get("structuredContent"); got.Get("sqon").Raw != tt.sqon || got.Get("summary").String() != tt.summary || !got.Get("valid").Bool() {
				t.Errorf("got %s\nwant %s\n%s", result.Raw, tt.sqon, tt.summary)
			}
			if _, err := sqon.Parse([]byte(tt.sqon)); err != nil {
				t.Error(err)
			}
		})
	}
	result := apitest.CallMCP(t, h, "build_sqon", `{"catalogueId":"participants","op":"nott","clauses":[
		{"op":"in","fieldName":"participant","value":"x"},
		7,
		{"op":"in","fieldName":"participant_id","value":"x"},
		{"op":"betwen","fieldName":"age_at_diagnosis","value":1},
		{"op":"or","pivot":"sample","clauses":[{"op":"gt","fieldName":"samples.type","value":1},{"op":"and","clauses":[{"op":"in","fieldName":"samples.wait","value":1},{"op":"gt","fieldName":"samples.weight","value":"heavy"}]}]},
		{"op":"and","content":[{"op":"in","content":{"fieldName":"diagnosis","value":"x"}}]}]}`)
	if !result.Get("isError").Bool() || result.Get("structuredContent.valid").Raw != "false" {
		t.Errorf("got %s", result.Raw)
	}
	got := map[string]string{}
	for _, e := range result.Get("structuredContent.errors").Array() {
		got[e.Get("at").String()] = e.Get("message").String()
		if !strings.Contains(result.Get("content.0.text").String(), e.Get("at").String()+": "+e.Get("message").String()+"\n") {
			t.Errorf("the text lacks %s: %s", e.Raw, result.Get("content.0.text"))
		}
	}
	want := map[string]string{
		"op":                     `did you mean "not"?`,
		"clauses/0/fieldName":    `unknown field "participant", did you mean "participant_id"?`,
		"clauses/1":              "object",
		"clauses/3/op":           `did you mean "between"?`,
		"clauses/4/pivot":        `unknown pivot "sample", did you mean "samples"?`,
		"clauses/4/clauses/0/op": "which takes in, not-in, some-not-in, all, filter",
		"clauses/4/clauses/1/clauses/0/fieldName": `unknown field "samples.wait", did you mean "samples.`,
		"clauses/4/clauses/1/clauses/1/value":     "number",
		"clauses/5/content/0/content/fieldName":   `did you mean "diagnosis_date"?`,
	}
	for at, part := range want {
		if !strings.Contains(got[at], part) {
			t.Errorf("%s: got %q, want %q", at, got[at], part)
		}
		delete(got, at)
	}
	if len(got) > 0 {
		t.Errorf("further errors: %v", got)
	}
	many := apitest.CallMCP(t, h, "build_sqon", `{"catalogueId":"participants","clauses":[`+strings.Repeat(`{"op":"in","fieldName":"x","value":1},`, 200)+`{}]}`)
	if text := many.Get("content.0.text").String(); !strings.Contains(text, "201 clauses are more than 200") {
		t.Error(text)
	}
}

// TestMCPResult: documents have nested fields as lists, facets have the names of their fields, and a large result says what is missing.
func TestMCPResult(t *testing.T) {
	response := `{"data":{"participant":{"hits":{"total":3,"edges":[` +
		`{"node":{"id":"1","participant_id":"<P1>","age_at_diagnosis":41,"samples":{"hits":{"edges":[{"node":{"type":["a","b"],"weight":0.10}},{"node":{"type":null,"weight":2}}]}}}},` +
		`{"node":{"id":"2","participant_id":null,"age_at_diagnosis":null,"samples":null}}]},` +
		`"aggregations":{"samples__type":{"buckets":[{"key":"a","key_as_string":null,"doc_count":2},{"key":"b","doc_count":1},{"key":"c","doc_count":1}]},` +
		`"age_at_diagnosis":{"stats":{"min":41,"max":41.5,"count":2}},"diagnosis_date":{"stats":{"min":1709596800000,"max":1709596800001,"count":1}}}}},` +
		`"extensions":{"warnings":[{"code":"MULTIPLE_VALUES"}]}}`
	p := apitest.Working()
	p.Catalogues.Put(apitest.Participants())
	var asked core.GraphQLRequest
	released := 0
	p.Searches.ExecuteFn = func(_ context.Context, _ string, _ core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error) {
		asked = r
		return core.GraphQLResponse{Body: []byte(response), Release: func() { released++ }}, nil
	}
	h := apitest.NewHandler(t, p, api.Config{})
	const all = `{"catalogueId":"participants","fields":["participant_id","samples.type","samples.weight"],"facets":["samples.type","age_at_diagnosis","diagnosis_date"],"facetValues":2,` +
		`"first":2,"offset":1,"sort":[{"fieldName":"age_at_diagnosis","order":"desc"}],"sqon":{"op":"in","content":{"fieldName":"participant_id","value":"P1"}}}`
	result := apitest.CallMCP(t, h, "execute_query", all)
	got := result.Get("structuredContent").Raw
	if got == "" {
		t.Fatal(result.Raw)
	}
	want := `{"facets":{"age_at_diagnosis":{"count":2,"max":41.5,"min":41},"diagnosis_date":{"count":1,"max":"2024-03-05T00:00:00.001Z","min":"2024-03-05T00:00:00Z"},` +
		`"samples.type":{"more":true,"values":[{"count":2,"value":"a"},{"count":1,"value":"b"}]}},` +
		`"hits":[{"id":"1","participant_id":"<P1>","age_at_diagnosis":41,"samples":[{"type":["a","b"],"weight":0.10},{"type":null,"weight":2}]},` +
		`{"id":"2","participant_id":null,"age_at_diagnosis":null,"samples":null}],"total":3,"warnings":[{"code":"MULTIPLE_VALUES"}]}`
	if diff := cmp.Diff(jsonOf(t, want), jsonOf(t, got)); diff != "" || !strings.Contains(got, "0.10") {
		t.Errorf("%s\n%s", got, diff)
	}
	variables := `{"first":2,"offset":1,"sort":[{"fieldName":"age_at_diagnosis","order":"desc"}],"sqon":{"op":"in","content":{"fieldName":"participant_id","value":"P1"}}}`
	if diff := cmp.Diff(jsonOf(t, variables), jsonOf(t, string(asked.Variables))); diff != "" || !asked.ReadOnly || released != 1 {
		t.Errorf("%d %s", released, diff)
	}
	if apitest.CallMCP(t, h, "execute_query", `{"catalogueId":"participants"}`); !regexp.MustCompile(`\bparticipant_id\b.*\bsamples\{`).MatchString(asked.Query) {
		t.Errorf("without fields: %s", asked.Query)
	}
	// 300 KiB of documents.
	response = `{"data":{"participant":{"hits":{"total":3,"edges":[` + strings.TrimSuffix(strings.Repeat(`{"node":{"id":"`+strings.Repeat("x", 100<<10)+`"}},`, 3), ",") + `]}}}}`
	large := apitest.CallMCP(t, h, "execute_query", `{"catalogueId":"participants"}`).Get("structuredContent")
	if len(large.Get("hits").Array()) != 2 || !strings.HasPrefix(large.Get("truncated").String(), "2 of 3 documents") {
		t.Errorf("%.300s", large.Get("truncated"))
	}
	response = `{"data":{"participant":{"hits":{"total":3,"edges":[]},"aggregations":{"samples__type":{"buckets":[{"key":"` + strings.Repeat("x", 300<<10) + `","doc_count":1}]}}}}}`
	large = apitest.CallMCP(t, h, "execute_query", `{"catalogueId":"participants","facets":["samples.type"]}`).Get("structuredContent")
	if !strings.HasPrefix(large.Get("truncated").String(), "the values of facets are too large") || !large.Get("facets.samples\\.type.more").Bool() {
		t.Errorf("%.300s", large.Raw)
	}
}

func jsonOf(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// TestMCPFields: a large catalogue is listed in parts that a model can ask for.
func TestMCPFields(t *testing.T) {
	p := apitest.Working()
	large := apitest.Plain("large")
	large.Fields = nil
	for i := range 600 {
		large.Fields = append(large.Fields, core.CatalogueField{Name: "f" + strconv.Itoa(i), DisplayName: "Field", Type: "keyword"})
	}
	p.Catalogues.Put(apitest.Participants(), large)
	h := apitest.NewHandler(t, p, api.Config{})
	got := apitest.CallMCP(t, h, "get_catalogue_fields", `{"catalogueId":"large"}`).Get("structuredContent")
	if len(got.Get("fields").Array()) != 500 || got.Get("omitted").Int() != 100 {
		t.Errorf("%d fields, %s omitted", len(got.Get("fields").Array()), got.Get("omitted"))
	}
	got = apitest.CallMCP(t, h, "get_catalogue_fields", `{"catalogueId":"participants","contains":"TYPE"}`).Get("structuredContent")
	want := `{"catalogueId":"participants","documentType":"participant","description":"Clinical trial participant records.",` +
		`"operators":{"keyword":["in","not-in","some-not-in","all","filter"]},"fields":[{"fieldName":"samples.type","displayName":"Type","type":"keyword","multiValued":true,"pivot":"samples"}]}`
	if diff := cmp.Diff(jsonOf(t, want), jsonOf(t, got.Raw)); diff != "" {
		t.Error(diff)
	}
}

// TestMCPResources: the introspection can be listed and read.
func TestMCPResources(t *testing.T) {
	p := apitest.Working()
	odd := apitest.Plain("a b/ü")
	p.Catalogues.Put(apitest.Participants(), apitest.Biosamples(), odd)
	h := apitest.NewHandler(t, p, api.Config{})
	_, body := apitest.SendMCP(t, h, `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
	read := map[string]string{
		"tutti://introspection": `"catalogueId":"participants"`, "tutti://introspection/sqon": `"operators"`,
		"tutti://introspection/catalogues/participants": `"fieldName":"samples.type"`, "tutti://introspection/catalogues/a%20b%2F%C3%BC": `"catalogueId":"a b/ü"`,
		"tutti://introspection/catalogues/biosamples": "index_not_found",
	}
	var listed []string
	for _, resource := range gjson.GetBytes(body, "result.resources").Array() {
		listed = append(listed, resource.Get("uri").String())
		if resource.Get("mimeType").String() != "application/json" || resource.Get("title").String() == "" {
			t.Errorf("%s", resource.Raw)
		}
	}
	for uri, want := range read {
		if !slices.Contains(listed, uri) {
			t.Errorf("%s is not listed", uri)
		}
		_, body := apitest.SendMCP(t, h, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"`+uri+`"}}`)
		text := gjson.GetBytes(body, "result.contents.0.text").String()
		if strings.HasSuffix(uri, "biosamples") {
			text = gjson.GetBytes(body, "error.message").String()
		} else if !json.Valid([]byte(text)) {
			t.Errorf("%s: %s", uri, body)
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s", uri, body)
		}
	}
	if len(listed) != len(read) {
		t.Errorf("%v", listed)
	}
	_, body = apitest.SendMCP(t, h, `{"jsonrpc":"2.0","id":1,"method":"resources/templates/list"}`)
	if got := gjson.GetBytes(body, "result.resourceTemplates.0.uriTemplate").String(); got != "tutti://introspection/catalogues/{catalogueId}" {
		t.Errorf("%s", body)
	}
	for _, uri := range []string{"tutti://introspection/catalogues/none", "tutti://introspection/catalogues/%zz", "file:///etc/passwd"} {
		if _, body := apitest.SendMCP(t, h, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"`+uri+`"}}`); !strings.Contains(gjson.GetBytes(body, "error.message").String(), "not found") {
			t.Errorf("%s: %s", uri, body)
		}
	}
}

// TestMCPLimit: a caller that sends too much waits, others do not.
func TestMCPLimit(t *testing.T) {
	now := apitest.Noon
	p := apitest.Working()
	p.Mcp.RequestsPerMinute = 3
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	h := apitest.GuardedHandler(t, p, d, api.Config{Now: func() time.Time { return now }})
	header := func(who string) string {
		if who == apitest.Anonymous {
			return ""
		}
		return d.Header(who)[0]
	}
	for i, tt := range []struct {
		who    string
		wait   time.Duration
		status int
		after  string
	}{
		{apitest.SystemRight, 0, 200, ""},
		{apitest.SystemRight, 0, 200, ""},
		{apitest.SystemRight, 0, 200, ""},
		{apitest.SystemRight, 0, 429, "20"},
		{apitest.SystemRight, 5 * time.Second, 429, "15"},
		{apitest.WriteRight, 0, 200, ""},
		{apitest.Anonymous, 0, 200, ""},
		{apitest.SystemRight, 15 * time.Second, 200, ""},
		{apitest.SystemRight, 0, 429, "20"},
		{apitest.SystemRight, time.Hour, 200, ""},
		{apitest.SystemRight, 0, 200, ""},
		{apitest.SystemRight, 0, 200, ""},
		{apitest.SystemRight, 0, 429, "20"},
	} {
		now = now.Add(tt.wait)
		headers := []string{}
		if value := header(tt.who); value != "" {
			headers = []string{"Authorization", value}
		}
		res, body := apitest.SendMCP(t, h, apitest.ListTools, headers...)
		if res.StatusCode != tt.status || res.Header.Get("Retry-After") != tt.after {
			t.Errorf("%d: %s: got %d %s %s", i, tt.who, res.StatusCode, res.Header.Get("Retry-After"), body)
		}
		if tt.status == 429 {
			p := apitest.WantProblem(t, res, body, 429, "too_many_requests", "3 messages in a minute")
			if p.Hint != "wait for the seconds in Retry-After, or raise mcp.requestsPerMinute" {
				t.Errorf("hint %q", p.Hint)
			}
		}
	}
}

// TestMCPChallenge: a client that needs a token is told where it learns how to get one, by 401 if it can get one itself.
func TestMCPChallenge(t *testing.T) {
	closed := apitest.Plain("closed")
	closed.DefaultAccess = core.AccessAuthenticated
	const query = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_query","arguments":{"catalogueId":"closed","first":0}}}`
	for name, tt := range map[string]struct {
		cfg           mcp.Config
		message, auth string
		status        int
		challenge     string
	}{
		"an invalid token": {mcp.Config{Auth: true}, apitest.ListTools, "Bearer x", 401, `Bearer error="invalid_token", resource_metadata="http://localhost/.well-known/oauth-protected-resource/mcp"`},
		"no bearer token": {
			mcp.Config{Auth: true, PublicURL: "https://a.example/b/"},
			apitest.ListTools, "Basic eA==", 401,
			`Bearer resource_metadata="https://a.example/b/.well-known/oauth-protected-resource/mcp"`,
		},
		"a catalogue for tokens, an issuer": {
			mcp.Config{Auth: true, Issuer: "https://login.example.org"},
			query, "", 401,
			`Bearer resource_metadata="http://localhost/.well-known/oauth-protected-resource/mcp"`,
		},
		"a catalogue for tokens, API keys": {mcp.Config{Auth: true}, query, "", 200, ""},
		"the state of the index, an issuer": {
			mcp.Config{Auth: true, Issuer: "https://login.example.org"},
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"index_status"}}`, "", 401,
			`Bearer resource_metadata="http://localhost/.well-known/oauth-protected-resource/mcp"`,
		},
		"what needs none, an issuer": {mcp.Config{Auth: true, Issuer: "https://login.example.org"}, apitest.ListTools, "", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			p.Catalogues.Put(closed)
			p.Mcp = tt.cfg
			h := apitest.GuardedHandler(t, p, apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{}), api.Config{})
			var headers []string
			if tt.auth != "" {
				headers = []string{"Authorization", tt.auth}
			}
			res, body := apitest.SendMCP(t, h, tt.message, headers...)
			if res.StatusCode != tt.status || res.Header.Get("WWW-Authenticate") != tt.challenge {
				t.Errorf("got %d %s\n%s", res.StatusCode, res.Header.Get("WWW-Authenticate"), body)
			}
			if tt.message == query && tt.status == 200 && !strings.Contains(gjson.GetBytes(body, "result.content.0.text").String(), "this catalogue needs a token; send the header Authorization") {
				t.Errorf("%s", body)
			}
		})
	}
}

// TestMCPUncounted: a field whose values the index does not have by document is neither counted nor sorted, and the error says why.
func TestMCPUncounted(t *testing.T) {
	p := apitest.Working()
	off := apitest.Plain("off")
	off.Fields = append(off.Fields, core.CatalogueField{Name: "w", DisplayName: "W", Type: "keyword", Uncounted: "it is off"}, core.CatalogueField{Name: "p", DisplayName: "P", Type: "geo_point"})
	p.Catalogues.Put(off)
	h := apitest.NewHandler(t, p, api.Config{})
	listed := apitest.CallMCP(t, h, "get_catalogue_fields", `{"catalogueId":"off"}`).Get("structuredContent.fields")
	for name, want := range map[string]string{"id": "", "w": "it is off", "p": "values of type geo_point are not counted"} {
		field := listed.Get(`#(fieldName=="` + name + `")`)
		if got := field.Get("uncounted").String(); !field.Exists() || got != want {
			t.Errorf("%s: uncounted is %q, want %q", name, got, want)
		}
	}
	for arguments, want := range map[string]string{
		`{"catalogueId":"off","facets":["id","w"]}`:           `the field "w" has no facet: it is off`,
		`{"catalogueId":"off","sort":[{"fieldName":"w"}]}`:    `the field "w" has no sort: it is off`,
		`{"catalogueId":"off","fields":["w"],"facets":["w"]}`: `the field "w" has no facet: it is off`,
	} {
		if got := apitest.CallMCP(t, h, "execute_query", arguments); !got.Get("isError").Bool() || !strings.Contains(got.Raw, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%s: got %s, want %s", arguments, got.Raw, want)
		}
	}
}
