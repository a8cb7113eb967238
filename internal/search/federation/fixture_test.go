package federation_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/federation"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mappings = `{"properties":{
	"studyId":{"type":"keyword"}, "sex":{"type":"keyword"}, "age":{"type":"long"}, "born":{"type":"date"}, "open":{"type":"boolean"},
	"files":{"type":"nested","properties":{"type":{"type":"keyword"},"size":{"type":"long"}}}
}}`

type source string

func (s source) Mapping(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(s), nil
}

// defined is a catalogue with a network.
func defined(network string) definition.Definition {
	return definition.Definition{
		ID: "c", DocumentType: "file", Index: "files", GraphQLIntrospection: true, MaxAliases: 15, Network: json.RawMessage(network),
	}
}

func model(t testing.TB, d definition.Definition) *catalogue.Model {
	t.Helper()
	m, problem := catalogue.Load(t.Context(), d, source(mappings))
	if problem != nil {
		t.Fatal(problem)
	}
	return m
}

// hosts routes calls by host, without a network. Unknown hosts are unreachable.
type hosts map[string]http.Handler

func (h hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	handler := h[r.URL.Host]
	if handler == nil {
		return nil, errors.New("dial tcp: " + r.URL.Host + ": connection refused")
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	res := w.Result()
	res.Request = r
	return res, nil
}

// operation is one operation for a remote.
type operation struct {
	Query     string
	Variables map[string]json.RawMessage
	Header    http.Header `json:"-"`
}

// remote is a remote node with the given fields that always returns the same response.
type remote struct {
	fields map[string]string
	answer string

	mu    sync.Mutex
	asked []operation
}

func (n *remote) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var op operation
	if err := json.NewDecoder(r.Body).Decode(&op); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if strings.Contains(op.Query, "__type") {
		io.WriteString(w, typeAnswer(n.fields))
		return
	}
	op.Header = r.Header
	n.asked = append(n.asked, op)
	io.WriteString(w, n.answer)
}

// has changes the fields of the node.
func (n *remote) has(fields map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fields = fields
}

// availableFields reports whether the node has fields.
func (n *remote) availableFields() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fields != nil
}

func typeAnswer(fields map[string]string) string {
	list := []any{map[string]any{"name": "odd", "type": map[string]any{"name": nil}}}
	for name, of := range fields {
		list = append(list, map[string]any{"name": name, "type": map[string]any{"name": of}})
	}
	raw, err := json.Marshal(map[string]any{"data": map[string]any{"__type": map[string]any{"name": "fileAggregations", "fields": list}}})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// says always returns the same response.
func says(status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
}

// hangs returns when the request is cancelled.
func hangs() http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}

// federatedQuery is a Federation with its caller.
type federatedQuery struct {
	*federation.Federation

	view *view.View
}

// begun starts the federation of a catalogue in a bubble, and waits for the discovery of all remote nodes.
func begun(t *testing.T, d definition.Definition, cfg federation.Config) federatedQuery {
	t.Helper()
	if cfg.Random == nil {
		cfg.Random = func() float64 { return 0 }
	}
	f := federation.New([]definition.Definition{d}, cfg)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, f) })
	synctest.Wait()
	return federatedQuery{f, view.New(nil, view.Config{}).View(model(t, d), core.Principal{})}
}

func stop(t testing.TB, f *federation.Federation) {
	if err := f.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// request requests parts of fields, such as "sex.buckets". The local node has all fields that are not in other's, and responds
// with local.
func request(local string, parts ...string) graphql.NetworkRequest {
	r := graphql.NetworkRequest{
		Missing: true, Document: "file", Known: func(string) bool { return false }, Own: func(name string) bool { return !strings.HasPrefix(name, "other") },
		Local: func(context.Context, core.GraphQLRequest) core.GraphQLResponse {
			return core.GraphQLResponse{Body: []byte(local)}
		},
	}
	for _, part := range parts {
		name, part, _ := strings.Cut(part, ".")
		if n := len(r.Fields); n == 0 || r.Fields[n-1].Name != name {
			r.Fields = append(r.Fields, graphql.NetworkField{Name: name, Parts: map[string]map[string]json.RawMessage{}})
		}
		if part == "" {
			continue
		}
		field := &r.Fields[len(r.Fields)-1]
		part, arguments, _ := strings.Cut(part, "(")
		field.Parts[part] = map[string]json.RawMessage{}
		if name, value, has := strings.Cut(strings.TrimSuffix(arguments, ")"), ":"); has {
			field.Parts[part][name] = json.RawMessage(value)
		}
	}
	return r
}

// ask returns the response, which must not be an error.
func (a federatedQuery) ask(t *testing.T, r graphql.NetworkRequest) graphql.NetworkAnswer {
	t.Helper()
	answer, err := a.Query(t.Context(), a.view, r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// same compares JSON.
func same(t testing.TB, want string, got any) {
	t.Helper()
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatalf("%v: %s", err, want)
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
