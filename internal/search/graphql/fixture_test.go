package graphql_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mappings = `{"properties":{
	"analysisId":{"type":"keyword"}, "studyId":{"type":"keyword"}, "note":{"type":"text"}, "count":{"type":"long"},
	"small":{"type":"byte"}, "ratio":{"type":"double"}, "open":{"type":"boolean"}, "created":{"type":"date"}, "info":{"type":"flattened"},
	"tags":{"type":"keyword"}, "odd-name":{"type":"keyword"}, "uncounted":{"type":"keyword","doc_values":false},
	"experiment":{"properties":{"platform":{"type":"keyword"},"lab":{"properties":{"city":{"type":"keyword"}}}}},
	"files":{"type":"nested","properties":{
		"name":{"type":"keyword"},"size":{"type":"long"},
		"parts":{"type":"nested","properties":{"n":{"type":"integer"}}}}}
}}`

type source string

func (s source) Mapping(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(s), nil
}

func yes() *bool {
	is := true
	return &is
}

// plain is a definition with a field that is a list.
func plain() definition.Definition {
	return definition.Definition{
		ID: "c", DocumentType: "analysis", Index: "analyses", GraphQLIntrospection: true, MaxAliases: 15,
		Extended: []definition.ExtendedField{{FieldName: "tags", IsArray: yes(), DisplayName: "Labels"}},
	}
}

func model(t testing.TB, d definition.Definition, mapping string) *catalogue.Model {
	t.Helper()
	m, problem := catalogue.Load(t.Context(), d, source(mapping))
	if problem != nil {
		t.Fatal(problem)
	}
	return m
}

// engine returns configured results and records requests.
type engine struct {
	mu     sync.Mutex
	calls  int
	reqs   []index.SearchRequest
	answer func(ctx context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error)
	// reads lets requests read the documents in place, as an engine does with its response.
	reads bool
	// taken, if not nil, receives the number of bytes kept of each document.
	taken func(bytes int)
}

var _ view.Engine = (*engine)(nil)

func (e *engine) Search(ctx context.Context, _ string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	e.mu.Lock()
	e.calls++
	e.reqs = reqs
	e.mu.Unlock()
	if e.answer == nil {
		return empty(reqs), nil
	}
	results, err := e.answer(ctx, reqs)
	if e.reads && err == nil {
		read(reqs, results)
		for _, result := range results {
			for _, hit := range result.Hits {
				if e.taken != nil && hit.Read {
					e.taken(len(hit.Source))
				}
			}
		}
	}
	return results, err
}

// read passes each document to the reader of the request.
func read(reqs []index.SearchRequest, results []index.SearchResult) {
	for i, req := range reqs {
		if req.Hits == nil || req.Hits.Read == nil {
			continue
		}
		results[i].Hits = slices.Clone(results[i].Hits)
		for j := range results[i].Hits {
			hit := &results[i].Hits[j]
			if len(hit.Source) == 0 || hit.Source[0] != '{' {
				continue
			}
			data := slices.Concat([]byte(`{"hits":[`), hit.Source, []byte(`,{"studyId":"another"}]}`))
			if kept, end := req.Hits.Read(hit.ID, data, len(`{"hits":[`)); kept != nil && end > len(`{"hits":[`) {
				if rest := string(data[end:]); !strings.HasPrefix(strings.TrimSpace(rest), `,{"studyId":"another"}`) {
					panic("a document was read up to " + rest)
				}
				hit.Source, hit.Read = kept, true
			}
			clear(data)
		}
	}
}

func (e *engine) Stream(context.Context, string, index.StreamRequest, func([]index.Hit) error) error {
	return core.NewError(core.CodeInternal, "nobody streams here")
}

// empty returns the results of an index without documents.
func empty(reqs []index.SearchRequest) []index.SearchResult {
	results := make([]index.SearchResult, len(reqs))
	for i, req := range reqs {
		results[i].Facets = make([]index.FacetResult, len(req.Facets))
		for k, f := range req.Facets {
			results[i].Facets[k].Ranges = make([]int64, len(f.Ranges))
		}
	}
	return results
}

// gives answers every request with the same documents and the configured facets.
func gives(total int64, hits ...index.Hit) func(context.Context, []index.SearchRequest) ([]index.SearchResult, error) {
	return func(_ context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		results := empty(reqs)
		for i, req := range reqs {
			if req.Total {
				results[i].Total = total
			}
			if req.Hits != nil {
				results[i].Hits = hits
			}
		}
		return results, nil
	}
}

// world is a Service with one catalogue.
type world struct {
	*testing.T
	engine  *engine
	service *graphql.Service
	model   *catalogue.Model
}

func newWorld(t *testing.T, change ...func(*definition.Definition)) *world {
	t.Helper()
	d := plain()
	for _, f := range change {
		f(&d)
	}
	e := &engine{}
	w := &world{T: t, engine: e, service: graphql.New(view.New(e, view.Config{}), graphql.Config{}), model: model(t, d, mappings)}
	if _, err := w.service.Accept(w.model); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) ask(r core.GraphQLRequest) core.GraphQLResponse {
	w.Helper()
	return w.service.Execute(w.Context(), w.model, core.Principal{}, r)
}

// answers fails unless a query has this response.
func (w *world) answers(query, want string) {
	w.Helper()
	got := w.ask(core.GraphQLRequest{Query: query})
	if got.Rejected {
		w.Fatalf("refused: %s", got.Body)
	}
	same(w, want, got.Body)
	calls := w.engine.calls
	w.engine.reads = true
	same(w, want, w.ask(core.GraphQLRequest{Query: query}).Body)
	w.engine.reads, w.engine.calls = false, calls
}

// refuses fails unless a request is rejected with this response.
func (w *world) refuses(r core.GraphQLRequest, want string) {
	w.Helper()
	got := w.ask(r)
	if !got.Rejected {
		w.Fatalf("not refused: %s", got.Body)
	}
	same(w, want, got.Body)
}

// same compares JSON exactly, except for white space in the expected value.
func same(t testing.TB, want string, got []byte) {
	t.Helper()
	if !json.Valid(got) {
		t.Fatalf("not JSON: %s", got)
	}
	var compact, indented any
	if err := json.Unmarshal([]byte(want), &compact); err != nil {
		t.Fatalf("%v: %s", err, want)
	}
	if err := json.Unmarshal(got, &indented); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(compact, indented); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, got)
	}
}

// anonymous is the anonymous caller.
var anonymous core.Principal

func ask(query string) core.GraphQLRequest { return core.GraphQLRequest{Query: query} }

// over returns the service of a catalogue.
func (w *world) over(d definition.Definition, mapping string) {
	w.Helper()
	w.service, w.model = graphql.New(view.New(w.engine, view.Config{}), graphql.Config{}), model(w.T, d, mapping)
	if _, err := w.service.Accept(w.model); err != nil {
		w.Fatal(err)
	}
}
