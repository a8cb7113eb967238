package apitest

import (
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/http/mcp"
	"tutti/http/metadata"
	"tutti/http/search"
	"tutti/http/system"
	"tutti/internal/core"
	"tutti/internal/report/recordtrace"
	"tutti/internal/tools/fakes"
)

var update = flag.Bool("update", false, "write the golden files")

// TestRequestID is the X-Request-Id of every request.
const TestRequestID = "req-1"

// Noon is the time of every Handler.
var Noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// Ports are everything that a Handler needs.
type Ports struct {
	*fakes.Ports
	Service    system.Service
	Metadata   *MetadataMock
	Catalogues *CatalogueShelf
	Searches   *Searches
	// Types replaces metadata as the analysis types, unless it is nil.
	Types metadata.AnalysisTypes
	// payloads and gatherer may be nil.
	payloads core.Memory
	gatherer prometheus.Gatherer
	Mcp      mcp.Config
}

// Bounded makes the payloads that are worked on take memory.
func (p *Ports) Bounded(payloads core.Memory) *Ports {
	p.payloads = payloads
	return p
}

// Measured makes /metrics show what g has.
func (p *Ports) Measured(g prometheus.Gatherer) *Ports {
	p.gatherer = g
	return p
}

// Assemble makes a Router of all surfaces with the ports of p.
func Assemble(p *Ports, cfg api.Config) (*api.Router, error) {
	probes, err := system.New(system.Ports{
		Readiness: p, Keys: APIKeys{p.Metadata}, Backups: p, Catalogues: p.Catalogues, Gatherer: p.gatherer, Service: p.Service,
	})
	if err != nil {
		return nil, err
	}
	types := metadata.AnalysisTypes(p.Metadata)
	if p.Types != nil {
		types = p.Types
	}
	return api.New(cfg,
		indexing.New(p.Indexing()),
		metadata.New(metadata.Ports{
			AnalysisTypes: types, Studies: p.Metadata, Analyses: p.Metadata, Submissions: p.Metadata, Files: p.Metadata, Entities: p.Metadata, Exports: p.Metadata, Payloads: p.payloads, NotIndexed: p.Metadata.NotIndexed,
		}),
		search.New(search.Ports{Catalogues: p.Catalogues, GraphQL: p.Searches, Downloads: p.Searches, Data: p.Searches}),
		mcp.New(mcp.Ports{Catalogues: p.Catalogues, GraphQL: p.Searches, Repositories: p, Data: p.Searches}, p.Mcp),
		probes)
}

// Working returns ports that all succeed.
func Working() *Ports {
	p := fakes.New()
	p.GetFn = func(id string) (core.Job, error) { return QueuedJob(id), nil }
	p.TraceFn = func(record core.RecordRef, _ bool) (recordtrace.Trace, error) { return TracedRecord(record), nil }
	return &Ports{
		Ports: p, Metadata: workingMetadata(), Catalogues: NewShelf(), Searches: WorkingSearches(), Mcp: mcp.Config{Version: "test", Auth: true},
	}
}

// QueuedJob returns a queued job of a repository.
func QueuedJob(id string) core.Job {
	return core.Job{
		ID: id, Scope: core.ScopeRepository, Repository: "song.ca", IndexName: "analyses", State: core.JobQueued,
		Cause: core.CauseREST, QueuedAt: Noon,
	}
}

// Handler is a Handler whose base path the tests know.
type Handler struct {
	*api.Router
	Base string
}

// NewHandler returns a Handler of all surfaces with the ports of p.
func NewHandler(t testing.TB, p *Ports, cfg api.Config) Handler {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return Noon }
	}
	h, err := Assemble(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return Handler{Router: h, Base: strings.TrimSuffix(cfg.BasePath, "/")}
}

// Ask is one request to a handler.
type Ask struct {
	Method, Target, Body string
	Header               http.Header
	Host                 string
}

// Do asks h, holds the answer against the OpenAPI document and returns it with its body.
func Do(t *testing.T, h Handler, a Ask) (*http.Response, []byte) {
	t.Helper()
	r, res, body := Exchange(t, h, a)
	checkAgainstDocument(t, h, r, res, body)
	return res, body
}

// Exchange asks h and returns the request beside its answer.
func Exchange(t *testing.T, h Handler, a Ask) (*http.Request, *http.Response, []byte) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), a.Method, a.Target, strings.NewReader(a.Body))
	r.Host = "localhost"
	if a.Host != "" {
		r.Host = a.Host
	}
	r.Header.Set("X-Request-Id", TestRequestID)
	maps.Copy(r.Header, a.Header)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	res := w.Result()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return r, res, body
}

// loadDocument parses the OpenAPI document once.
var loadDocument = sync.OnceValues(func() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(ReadDocument()) })

// ReadDocument returns the served document, nothing where there is none.
var ReadDocument = sync.OnceValue(func() []byte {
	h, err := Assemble(Working(), api.Config{})
	if err != nil {
		return []byte(err.Error())
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi.json", http.NoBody))
	return w.Body.Bytes()
})

// Document returns the OpenAPI document, which callers must not change.
func Document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// checkAgainstDocument fails when the answer is not one that the document describes for its operation. Where no
// operation is routed the answer must be a problem.
func checkAgainstDocument(t *testing.T, h Handler, r *http.Request, res *http.Response, body []byte) {
	t.Helper()
	doc := Document(t)
	pattern := patternOf(h, r)
	if pattern == "" {
		if res.StatusCode < 400 || res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s is not routed, got %d %s", r.Method, r.URL, res.StatusCode, res.Header.Get("Content-Type"))
		}
		return
	}
	item := doc.Paths.Value(pattern)
	if item == nil || item.GetOperation(r.Method) == nil {
		t.Errorf("%s %s is not in the document", r.Method, pattern)
		return
	}
	operation := item.GetOperation(r.Method)
	if operation.Responses.Status(res.StatusCode) == nil {
		t.Errorf("%s %s: status %d is not in the document", r.Method, pattern, res.StatusCode)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: r,
			Route:   &routers.Route{Spec: doc, PathItem: item, Operation: operation, Method: r.Method, Path: pattern},
		},
		Status:  res.StatusCode,
		Header:  res.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	input.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(t.Context(), input); err != nil {
		t.Errorf("%s %s: the answer is not the document's: %v\n%s", r.Method, pattern, err, body)
	}
	if media := mediaOf(operation, res); media != nil && media.Schema != nil {
		var answer any
		if json.Unmarshal(body, &answer) == nil {
			for _, missing := range unlisted(answer, []*openapi3.Schema{media.Schema.Value}, "#") {
				t.Errorf("%s %s: %s is not described", r.Method, pattern, missing)
			}
		}
	}
}

// mediaOf returns what the document says of an answer, nil for none.
func mediaOf(operation *openapi3.Operation, res *http.Response) *openapi3.MediaType {
	described := operation.Responses.Status(res.StatusCode)
	if described == nil || described.Value == nil {
		return nil
	}
	return described.Value.Content.Get(res.Header.Get("Content-Type"))
}

// unlisted returns the members of a JSON value that no schema lists, by path: a schema allows others, which generated clients lose. A schema without
// properties, or with additional ones, is that of a free-form object.
func unlisted(value any, schemas []*openapi3.Schema, path string) (missing []string) {
	for i := 0; i < len(schemas); i++ { // grows
		for _, parts := range []openapi3.SchemaRefs{schemas[i].AllOf, schemas[i].AnyOf, schemas[i].OneOf} {
			for _, part := range parts {
				schemas = append(schemas, part.Value)
			}
		}
	}
	switch value := value.(type) {
	case []any:
		var items []*openapi3.Schema
		for _, s := range schemas {
			if s.Items != nil {
				items = append(items, s.Items.Value)
			}
		}
		for _, item := range value {
			missing = append(missing, unlisted(item, items, path+"[]")...)
		}
	case map[string]any:
		properties, open := map[string][]*openapi3.Schema{}, true
		for _, s := range schemas {
			for name, property := range s.Properties {
				properties[name], open = append(properties[name], property.Value), false
			}
		}
		for _, s := range schemas {
			additional := s.AdditionalProperties
			open = open || additional.Schema != nil || additional.Has != nil && *additional.Has
		}
		for name, member := range value {
			if listed := properties[name]; listed != nil {
				missing = append(missing, unlisted(member, listed, path+"."+name)...)
			} else if !open && name != "$schema" { // some generators of clients name it like schema
				missing = append(missing, path+"."+name)
			}
		}
	}
	return missing
}

// patternOf finds the pattern whose segments fit the raw path of r, of several the one with the fewest parameters, without
// chi. What begins as another route is none of a catalogue's.
func patternOf(h Handler, r *http.Request) string {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), h.Base)
	if !ok {
		return ""
	}
	got, found, routes := strings.Split(path, "/"), "", h.Routes()
	first := isFirstSegment(routes, got)
	for _, route := range routes {
		want := strings.Split(route.Pattern, "/")
		if want[1] == "{catalogueId}" && first {
			continue
		}
		if route.Method == r.Method && len(want) == len(got) && Fits(want, got) &&
			(found == "" || strings.Count(route.Pattern, "{") < strings.Count(found, "{")) {
			found = route.Pattern
		}
	}
	return found
}

// isFirstSegment reports whether a path, in its segments, begins as a route that is no catalogue's, or with nothing.
func isFirstSegment(routes []api.Route, path []string) bool {
	return len(path) < 2 || path[1] == "" || slices.ContainsFunc(routes, func(r api.Route) bool {
		return strings.HasPrefix(r.Pattern+"/", "/"+path[1]+"/") && (r.Pattern != api.PathServiceInfo || len(path) == 2)
	})
}

// Fits reports whether the segments of a path are those of a pattern.
func Fits(want, got []string) bool {
	for i := range want {
		if !strings.HasPrefix(want[i], "{") && want[i] != got[i] || i == len(want)-1 && got[i] == "" && want[i] != "" {
			return false
		}
	}
	return true
}

// Golden compares indented JSON with a file of testdata.
func Golden(t *testing.T, name string, body []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, body)
	}
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	file := filepath.Join("testdata", name+".golden.json")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s:\n%s", file, diff)
	}
}

// Problem is what the tests read of one.
type Problem struct {
	Status     int
	Detail     string
	Code       string
	Hint       string
	Instance   string
	RequestID  string
	Successful *bool
	Message    *string
	Details    *string

	ErrorID        string
	HTTPStatusCode int
	HTTPStatusName string
	RequestURL     string
	Timestamp      int64
	Violations     json.RawMessage
}

// WantProblem fails the test unless an answer is a problem with a status, a code and a text in it, and returns it.
func WantProblem(t *testing.T, res *http.Response, body []byte, status int, code, text string) Problem {
	t.Helper()
	if res.StatusCode != status {
		t.Errorf("status: got %d, want %d\n%s", res.StatusCode, status, body)
	}
	if ct := res.Header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("content type: got %q", ct)
	}
	var p Problem
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("not a problem: %v\n%s", err, body)
	}
	if p.Code != code || p.Status != status {
		t.Errorf("problem: got %s %d, want %s %d", p.Code, p.Status, code, status)
	}
	if !strings.Contains(p.Detail, text) {
		t.Errorf("detail: got %q, want it to hold %q", p.Detail, text)
	}
	if p.RequestID == "" || p.RequestID != res.Header.Get("X-Request-Id") {
		t.Errorf("requestId %q, header %q", p.RequestID, res.Header.Get("X-Request-Id"))
	}
	return p
}

// ExamplesOf returns the values of all examples of a content.
func ExamplesOf(content *openapi3.MediaType) []any {
	var values []any
	if content.Example != nil {
		values = append(values, content.Example)
	}
	for _, name := range slices.Sorted(maps.Keys(content.Examples)) {
		values = append(values, content.Examples[name].Value.Value)
	}
	return values
}

// Portal is the origin of a portal.
const Portal = "https://portal.example.org"
