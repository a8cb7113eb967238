package system_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/http/system"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

func TestPing(t *testing.T) {
	res, body := apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{}), apitest.Ask{Method: "GET", Target: "/ping"})
	if res.StatusCode != 200 || string(body) != `{"message":"tutti is alive"}` {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

func TestReady(t *testing.T) {
	type components = map[string]system.ComponentState
	for name, tt := range map[string]struct {
		health system.Health
		// failed are whether each catalogue has failed.
		failed []bool
		status int
		body   string
	}{
		"nothing said": {system.Health{}, nil, 200, `{"status":"healthy","ready":true,"reasons":[],"components":{},"paused":[]}`},
		"all up": {
			system.Health{Components: components{"queue": "up", "index": "up"}},
			nil,
			200,
			`{"status":"healthy","ready":true,"reasons":[],"components":{"index":"up","queue":"up"},"paused":[]}`,
		},
		"index down": {
			system.Health{
				Components: components{"queue": "up", "index": "down"}, Reasons: []string{"index: it does not answer"},
				Paused: []core.Pause{{Repository: "song.ca", Reason: "the index does not answer"}},
			},
			nil,
			200,
			`{"status":"healthy","ready":true,"reasons":["index: it does not answer","repository song.ca is paused: the index does not answer"],` +
				`"components":{"index":"down","queue":"up"},"paused":[{"repository":"song.ca","reason":"the index does not answer"}]}`,
		},
		"queue down": {
			system.Health{Components: components{"queue": "down"}, Reasons: []string{"queue: its disk is full"}},
			nil,
			503,
			`{"status":"unhealthy","ready":false,"reasons":["queue: its disk is full"],"components":{"queue":"down"},"paused":[]}`,
		},
		"store down": {
			system.Health{Components: components{"store": "down"}},
			nil,
			503,
			`{"status":"unhealthy","ready":false,"reasons":[],"components":{"store":"down"},"paused":[]}`,
		},
		"one available":  {system.Health{}, []bool{false}, 200, `{"status":"healthy","ready":true,"reasons":[],"components":{},"paused":[]}`},
		"unhealthy":      {system.Health{}, []bool{true}, 503, `{"status":"unhealthy","ready":false,"reasons":["catalogue 0 failed: The search engine does not answer."],"components":{},"paused":[]}`},
		"unhealthy, two": {system.Health{}, []bool{true, true}, 503, `{"status":"unhealthy","ready":false,"reasons":["catalogue 0 failed: The search engine does not answer.","catalogue 1 failed: The search engine does not answer."],"components":{},"paused":[]}`},
		"degraded":       {system.Health{}, []bool{true, false}, 200, `{"status":"degraded","ready":true,"reasons":["catalogue 0 failed: The search engine does not answer."],"components":{},"paused":[]}`},
		"degraded, queue down": {
			system.Health{Components: components{"queue": "down"}},
			[]bool{true, false},
			503,
			`{"status":"unhealthy","ready":false,"reasons":["catalogue 0 failed: The search engine does not answer."],"components":{"queue":"down"},"paused":[]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			p.HealthFn = func() system.Health { return tt.health }
			var all []*core.Catalogue
			for i, failed := range tt.failed {
				c := &core.Catalogue{ID: strconv.Itoa(i)}
				if failed {
					c.Problem = &core.CatalogueProblem{Code: core.CatalogueConnectionError, Message: "The search engine does not answer."}
				}
				all = append(all, c)
			}
			p.Catalogues.Put(all...)
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/ready"})
			if res.StatusCode != tt.status || string(body) != tt.body {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
			if (res.Header.Get("Retry-After") != "") != (tt.status == 503) {
				t.Errorf("retry-after: %q", res.Header.Get("Retry-After"))
			}
		})
	}
}

func TestDocumentIsValid(t *testing.T) {
	if err := apitest.Document(t).Validate(t.Context()); err != nil {
		t.Error(err)
	}
	_, body := apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{Version: "1.2.3"}), apitest.Ask{Method: "GET", Target: "/openapi.json"})
	var got struct {
		OpenAPI string
		Info    struct{ Version string }
		Servers []struct{ URL string }
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if got.OpenAPI != "3.1.0" || got.Info.Version != "1.2.3" || len(got.Servers) != 1 || got.Servers[0].URL != "/" {
		t.Errorf("got %+v", got)
	}
}

func TestDocumentAndRoutesAreEqual(t *testing.T) {
	for _, base := range []string{"", "/base"} {
		var routed []string
		for _, r := range apitest.NewHandler(t, apitest.Working(), api.Config{BasePath: base}).Routes() {
			routed = append(routed, r.Method+" "+r.Pattern)
		}
		var described []string
		for path, item := range apitest.Document(t).Paths.Map() {
			for method := range item.Operations() {
				described = append(described, method+" "+path)
			}
		}
		slices.Sort(routed)
		slices.Sort(described)
		if diff := cmp.Diff(described, routed); diff != "" {
			t.Errorf("described, routed: %s", diff)
		}
	}
}

func TestEveryOperationIsDescribedInFull(t *testing.T) {
	ids := map[string]string{}
	for path, item := range apitest.Document(t).Paths.Map() {
		for method, op := range item.Operations() {
			where := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] != "" {
				t.Errorf("%s: operationId %q is empty or also that of %s", where, op.OperationID, ids[op.OperationID])
			}
			ids[op.OperationID] = where
			if op.Summary == "" || op.Description == "" || len(op.Tags) != 1 {
				t.Errorf("%s: summary, description or tag is missing", where)
			}
			for _, p := range op.Parameters {
				if p.Value.In == "path" && (!strings.Contains(path, "{"+p.Value.Name+"}") || p.Value.Example == nil) {
					t.Errorf("%s: parameter %s is not in the path or has no example", where, p.Value.Name)
				}
			}
			if n := strings.Count(path, "{"); n != countIn(op.Parameters, "path") {
				t.Errorf("%s: %d parameters in the path", where, n)
			}
			responses := op.Responses.Map()
			for _, status := range []string{"400", "413", "500"} {
				if responses[status] == nil {
					t.Errorf("%s: %s is missing", where, status)
				}
			}
			if monitored := path == "/ping" || path == "/ready" || path == "/metrics"; (responses["421"] == nil) != monitored {
				t.Errorf("%s: 421 described: %t", where, responses["421"] != nil)
			}
			for _, status := range slices.Sorted(maps.Keys(responses)) {
				checkResponse(t, where, path, status, responses[status].Value)
			}
		}
	}
}

func TestProblemStatusesMatchTheirExamples(t *testing.T) {
	for name, r := range apitest.Document(t).Components.Responses {
		examples := apitest.ExamplesOf(r.Value.Content.Get("application/problem+json"))
		if len(examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for _, example := range examples {
			status, _ := example.(map[string]any)["status"].(float64)
			if want := name[len(name)-3:]; strconv.Itoa(int(status)) != want {
				t.Errorf("%s: the example's status is %v", name, status)
			}
		}
	}
}

func countIn(parameters openapi3.Parameters, in string) int {
	n := 0
	for _, p := range parameters {
		if p.Value.In == in {
			n++
		}
	}
	return n
}

func checkResponse(t *testing.T, where, path, status string, r *openapi3.Response) {
	t.Helper()
	if r.Description == nil || *r.Description == "" || r.Headers["X-Request-Id"] == nil {
		t.Errorf("%s %s: no description or no X-Request-Id", where, status)
	}
	for mediaType, content := range r.Content {
		if content.Schema == nil {
			t.Errorf("%s %s %s: no schema", where, status, mediaType)
		}
		if content.Example == nil && len(content.Examples) == 0 {
			t.Errorf("%s %s %s: no example", where, status, mediaType)
		}
		if mediaType == "application/problem+json" {
			want := "#/components/schemas/Problem"
			switch surface, _, _ := strings.Cut(path[1:], "/"); surface {
			case "index":
				want = "#/components/schemas/IndexProblem"
			case "schemas", "studies", "submit", "entities", "export", "v2":
				want = "#/components/schemas/MetadataProblem"
			}
			if content.Schema.Ref != want {
				t.Errorf("%s %s: schema %s", where, status, content.Schema.Ref)
			}
		}
	}
}
