package federation_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"tutti/internal/base/span"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/federation"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

// engine is an index with documents.
func engine(t *testing.T, documents map[string][]string) *embedded.Index {
	t.Helper()
	x, err := embedded.Open(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	for alias, list := range documents {
		if err := x.Ensure(t.Context(), index.Spec{Alias: alias, Mapping: json.RawMessage(mappings)}); err != nil {
			t.Fatal(err)
		}
		b := core.Batch{Index: alias}
		for i, document := range list {
			w := core.Write{ID: fmt.Sprint("d", i), Version: 1, Document: []byte(document)}
			item := core.BatchItem{ID: w.ID, Version: w.Version, Start: len(b.Body)}
			b.Body, item.DocStart, item.DocEnd = x.Encode(b.Body, w)
			item.End = len(b.Body)
			b.Items = append(b.Items, item)
		}
		results, err := x.Write(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Outcome != core.OutcomeIndexed {
				t.Fatalf("%+v", r)
			}
		}
	}
	return x
}

// server serves a catalogue, as tutti does.
type server struct {
	service *graphql.Service
	model   *catalogue.Model
}

func serve(t *testing.T, x *embedded.Index, d definition.Definition, network graphql.Network) *server {
	t.Helper()
	return &server{graphql.New(view.New(x, view.Config{}), graphql.Config{Network: network}), model(t, d)}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q core.GraphQLRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := s.service.Execute(r.Context(), s.model, core.Principal{}, q)
	if answer.Rejected {
		w.WriteHeader(http.StatusBadRequest)
	}
	w.Write(answer.Body)
}

// ask returns the data of a response, and its errors.
func (s *server) ask(t *testing.T, query, filters string) (data map[string]any, errors string) {
	t.Helper()
	answer := s.service.Execute(t.Context(), s.model, core.Principal{}, core.GraphQLRequest{
		Query: query, Variables: json.RawMessage(`{"filters":` + filters + `}`),
	})
	var body struct {
		Data   map[string]any
		Errors json.RawMessage
	}
	if err := json.Unmarshal(answer.Body, &body); err != nil {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	return body.Data, string(body.Errors)
}

func named(id string) definition.Definition {
	d := defined("")
	d.ID, d.Index = id, id
	return d
}

// threeNodes are this catalogue and two others; joined serves it once the others' fields are known.
const threeNodes = `{"localNode":{"displayName":"Local","nodeId":"l"},"remoteNodes":[
	{"displayName":"One","nodeId":"1","documentType":"file","graphqlUrl":"http://one.example"},
	{"displayName":"Two","nodeId":"2","documentType":"file","graphqlUrl":"http://two.example"}]}`

func joined(t *testing.T, x *embedded.Index, d definition.Definition, one, two *server) *server {
	t.Helper()
	d.Network = json.RawMessage(threeNodes)
	changed := make(chan string, 2)
	f := federation.New([]definition.Definition{d}, federation.Config{
		Transport: hosts{"one.example": one, "two.example": two}, Changed: func(id string) { changed <- id },
	})
	s := serve(t, x, d, f)
	if _, err := s.service.Schema(s.model); err != nil { // before anything is known
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, f) })
	for range 2 {
		s.service.Forget(<-changed)
	}
	return s
}

// document generates a random document.
func document(r *rand.Rand) string {
	var members []string
	some := func(likely int, member string) {
		if r.IntN(10) < likely {
			members = append(members, member)
		}
	}
	value := func() string { return []string{"a", "b", "c", "*d", "é"}[r.IntN(5)] }
	some(8, fmt.Sprintf(`"studyId":%q`, value()))
	some(7, fmt.Sprintf(`"sex":[%q,%q]`, value(), value()))
	some(8, fmt.Sprintf(`"age":[%d,%d]`, r.IntN(100)-50, r.IntN(100)))
	some(7, fmt.Sprintf(`"born":%d`, int64(r.IntN(100))*86_400_000/4))
	some(5, fmt.Sprintf(`"open":%t`, r.IntN(2) == 0))
	some(8, fmt.Sprintf(`"files":[{"type":%q,"size":%d},{"type":%q}]`, value(), r.IntN(9000), value()))
	return "{" + strings.Join(members, ",") + "}"
}

// ordered moves the buckets of missing values to the end: one catalogue has them last, a network sorts them by count.
func ordered(of any) any {
	switch v := of.(type) {
	case map[string]any:
		for _, below := range v {
			ordered(below)
		}
	case []any:
		slices.SortStableFunc(v, func(a, b any) int {
			last := func(bucket any) int { return strings.Count(fmt.Sprint(bucket.(map[string]any)["key"]), "__missing__") }
			return last(a) - last(b)
		})
	}
	return of
}

// TestNetworkIsTheWhole: a network returns the same as one catalogue with all documents.
func TestNetworkIsTheWhole(t *testing.T) {
	const aggregations = `{
		studyId{bucket_count cardinality buckets(max:3){key doc_count}} sex{bucket_count cardinality buckets{key key_as_string doc_count}} open{buckets{key key_as_string doc_count}}
		files__type{bucket_count b:buckets{key doc_count}} files__size{stats{min max avg sum count} histogram(interval:500){bucket_count buckets{key doc_count}}}
		age{stats{min max avg sum count} histogram(interval:7){bucket_count buckets{key doc_count}} range(ranges:[{to:0},{from:0,to:20,key:"x"},{from:10}]){bucket_count buckets{key doc_count}}}
		born{stats{min max avg sum count} histogram(interval:86400000){buckets{key key_as_string doc_count}}}}`
	const arguments = `filters:$filters aggregations_filter_themselves:%t include_missing:%t`
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			documents := map[string][]string{"local": nil, "one": nil, "two": nil, "all": nil}
			for range r.IntN(60) {
				d := document(r)
				alias := []string{"local", "one", "two"}[r.IntN(3)]
				documents[alias], documents["all"] = append(documents[alias], d), append(documents["all"], d)
			}
			x := engine(t, documents)
			all := serve(t, x, named("all"), nil)
			network := joined(t, x, named("local"), serve(t, x, named("one"), nil), serve(t, x, named("two"), nil))
			for _, filters := range []string{
				`null`, `{"op":"in","content":{"fieldName":"sex","value":["a","b"]}}`,
				`{"op":"and","content":[{"op":"not-in","content":{"fieldName":"studyId","value":"a"}},{"op":">=","content":{"fieldName":"age","value":0}}]}`,
				`{"op":"and","pivot":"files","content":[{"op":"in","content":{"fieldName":"files.type","value":["a","__missing__"]}},{"op":"<","content":{"fieldName":"files.size","value":5000}}]}`,
			} {
				given := fmt.Sprintf(arguments, r.IntN(2) == 0, r.IntN(3) > 0)
				whole, faults := all.ask(t, `query($filters:JSON){file{hits(filters:$filters){total} aggregations(`+given+`)`+aggregations+`}}`, filters)
				if faults != "" {
					t.Fatal(faults)
				}
				parts, faults := network.ask(t, `query($filters:JSON){network(`+given+`){nodes{hits status errors} aggregations`+aggregations+`}}`, filters)
				if faults != "" {
					t.Fatal(faults)
				}
				file, of := whole["file"].(map[string]any), parts["network"].(map[string]any)
				hits := 0.0
				for _, n := range of["nodes"].([]any) {
					node := n.(map[string]any)
					hits += node["hits"].(float64)
					if node["status"] != "OK" || node["errors"] != "" {
						t.Errorf("node %v", node)
					}
				}
				if total := file["hits"].(map[string]any)["total"]; total != hits {
					t.Errorf("%s: %v hits, want %v", filters, hits, total)
				}
				if diff := cmp.Diff(ordered(file["aggregations"]), ordered(of["aggregations"])); diff != "" {
					t.Errorf("%s %s (-whole +network):\n%s", filters, given, diff)
				}
			}
		})
	}
}

// TestNetworkOfOthersFields: fields that only another node has are queried there, and that node validates filters on them.
func TestNetworkOfOthersFields(t *testing.T) {
	x := engine(t, map[string][]string{"local": {`{"sex":"a"}`, `{"sex":"b"}`}, "one": {`{"sex":"a"}`}})
	two := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := &remote{
			fields: map[string]string{"donor__race": "Aggregations"},
			answer: `{"data":{"file":{"hits":{"total":4},"aggregations":{"donor__race":{"buckets":[{"key":"r","doc_count":4}]}}}}}`,
		}
		n.ServeHTTP(w, r)
	})
	d := named("local")
	d.Network = json.RawMessage(threeNodes)
	changed := make(chan string, 2)
	f := federation.New([]definition.Definition{d}, federation.Config{
		Transport: hosts{"one.example": serve(t, x, named("one"), nil), "two.example": two}, Changed: func(id string) { changed <- id },
	})
	s := serve(t, x, d, f)
	const query = `query($filters:JSON){network(filters:$filters){nodes{nodeId hits status errors} aggregations{donor__race{buckets{key doc_count}}}}}`
	if _, faults := s.ask(t, query, `null`); !strings.Contains(faults, `Cannot query field \"donor__race\"`) {
		t.Errorf("before the node was asked: %s", faults)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer stop(t, f)
	for range 2 {
		s.service.Forget(<-changed)
	}
	data, faults := s.ask(t, query, `null`)
	if faults != "" {
		t.Fatal(faults)
	}
	same(t, `{"network":{"nodes":[{"nodeId":"l","hits":2,"status":"OK","errors":""},{"nodeId":"1","hits":1,"status":"OK","errors":""},{"nodeId":"2","hits":4,"status":"OK","errors":""}],
		"aggregations":{"donor__race":{"buckets":[{"key":"r","doc_count":4},{"key":"___aggregation_not_available___","doc_count":3}]}}}}`, data)

	for _, filter := range []string{
		`{"op":"in","content":{"fieldName":"donor.race","value":"r"}}`,
		`{"op":"not-in","content":{"fieldName":"donor.race","value":"r"}}`,
		`{"op":"or","content":[{"op":"not","content":[{"op":"in","content":{"fieldName":"donor.race","value":"r"}}]},{"op":"in","content":{"fieldName":"donor","value":"__missing__"}}]}`,
	} {
		data, faults = s.ask(t, query, filter)
		if faults != "" {
			t.Fatal(faults)
		}
		same(t, `{"network":{"nodes":[{"nodeId":"l","hits":0,"status":"OK","errors":""},{"nodeId":"1","hits":0,"status":"OK","errors":""},{"nodeId":"2","hits":4,"status":"OK","errors":""}],
			"aggregations":{"donor__race":{"buckets":[{"key":"r","doc_count":4}]}}}}`, data)
	}
	for filter, want := range map[string][]float64{
		`{"op":"not-in","content":{"fieldName":"sex","value":"a"}}`:                                                                                                                                                                  {1, 0, 0},
		`{"op":"not","pivot":"files","content":[{"op":"in","content":{"fieldName":"files.type","value":"a"}}]}`:                                                                                                                      {0, 0, 0},
		`{"op":"in","content":{"fieldName":"files","value":"__missing__"}}`:                                                                                                                                                          {2, 1, 0},
		`{"op":"or","content":[{"op":"in","content":{"fieldName":"sex","value":"a"}},{"op":"in","content":{"fieldName":"donor.race","value":"r"}}]}`:                                                                                 {1, 1, 4},
		`{"op":"or","content":[{"op":"not-in","content":{"fieldName":"sex","value":"a"}},{"op":"not","content":[{"op":"in","content":{"fieldName":"donor.race","value":"r"}}]}]}`:                                                    {1, 0, 4},
		`{"op":"or","content":[{"op":"in","content":{"fieldName":"donor.race","value":"r"}},{"op":"and","content":[{"op":"in","content":{"fieldName":"sex","value":"b"}},{"op":"in","content":{"fieldName":"_id","value":"d1"}}]}]}`: {1, 0, 4},
		`{"op":"and","content":[{"op":"in","content":{"fieldName":"sex","value":"a"}},{"op":"or","content":[{"op":"in","content":{"fieldName":"donor.race","value":"r"}},{"op":"in","content":{"fieldName":"sex","value":"a"}}]}]}`:  {1, 1, 0},
		`{"op":"and","content":[{"op":"in","content":{"fieldName":"sex","value":"a"}},{"op":"in","content":{"fieldName":"donor.race","value":"r"}}]}`:                                                                                {0, 0, 0},
		`{"op":"filter","content":{"fieldNames":["sex","donor.race"],"value":"a"}}`:                                                                                                                                                  {1, 1, 4},
		`{"op":"not","content":[{"op":"filter","content":{"fieldNames":["sex","donor.race"],"value":"a"}}]}`:                                                                                                                         {0, 0, 0},
		`{"op":"not","content":[{"op":"or","content":[{"op":"in","content":{"fieldName":"sex","value":"b"}},{"op":"in","content":{"fieldName":"donor.race","value":"r"}}]}]}`:                                                        {0, 0, 0},
		`{"op":"or","content":[{"op":"and","pivot":"files","content":[{"op":"in","content":{"fieldName":"files.type","value":"__missing__"}}]},{"op":"in","content":{"fieldName":"donor.race","value":"r"}}]}`:                       {0, 0, 4},
		`{"op":"and","pivot":"files","content":[]}`:                                                                               {0, 0, 0},
		`{"op":"not-in","content":{"fieldName":"_id","value":"d1"}}`:                                                              {1, 1, 4},
		`{"op":"not","content":[{"op":"and","pivot":"files","content":[{"op":"in","content":{"fieldName":"sex","value":"b"}}]}]}`: {2, 1, 0},
	} {
		data, faults := s.ask(t, query, filter)
		if faults != "" {
			t.Fatal(faults)
		}
		for i, node := range data["network"].(map[string]any)["nodes"].([]any) {
			if n := node.(map[string]any); n["status"] != "OK" || n["hits"] != want[i] {
				t.Errorf("%s: node %v, want %v hits", filter, n, want[i])
			}
		}
	}

	for filter, want := range map[string]string{
		`{"op":"in","content":{"fieldName":"nobody","value":"r"}}`: "nobody",
		`{"op":"in","content":{"fieldName":"sex"}}`:                "value",
		`{"op":"and","content":[{"op":"in","content":{"fieldName":"donor.race","value":"r"}},{"op":"in","content":{"fieldName":"nobody","value":"r"}}]}`: "BAD_USER_INPUT",
	} {
		if data, faults := s.ask(t, query, filter); data != nil || !strings.Contains(faults, want) {
			t.Errorf("%s: %v %s", filter, data, faults)
		}
	}
	for query, want := range map[string]string{
		`{network{aggregations{sex{buckets{top_hits}}}}}`:                                             "network aggregations have only document counts by value: top_hits is not available",
		`{network{aggregations{sex{buckets{filter_by_term(filter:{})}}}}}`:                            "network aggregations have only document counts by value: filter_by_term is not available",
		`{network{aggregations{age{a:histogram(interval:1){bucket_count} histogram{bucket_count}}}}}`: "a network aggregation has only one histogram per field: use the same arguments wherever age has it",
	} {
		if data, faults := s.ask(t, query, `null`); data != nil || !strings.Contains(faults, want) {
			t.Errorf("%s: %v %s", query, data, faults)
		}
	}
}

// arranger behaves like Arranger: its aggregations fail on filters that are not a group, except null; its hits do not.
func arranger(w http.ResponseWriter, r *http.Request) {
	var op operation
	if err := json.NewDecoder(r.Body).Decode(&op); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if strings.Contains(op.Query, "__type") {
		io.WriteString(w, typeAnswer(fields()))
		return
	}
	var filter struct {
		Op      string
		Content json.RawMessage
	}
	raw, given := op.Variables["filters"]
	switch {
	case given && json.Unmarshal(raw, &filter) != nil:
		http.Error(w, "filters", http.StatusBadRequest)
	case strings.HasPrefix(string(filter.Content), "[{}") || strings.HasPrefix(string(filter.Content), "[null"):
		io.WriteString(w, `{"errors":[{"message":"Must specify \"op\" in filters: [object Object]"}],"data":{"file":null}}`)
	case given && string(raw) != "null" && (filter.Op == "" || !strings.HasPrefix(string(filter.Content), "[")):
		io.WriteString(w, `{"errors":[{"message":"(normalizedSqon?.content || []).filter is not a function"}],"data":{"file":{"hits":{"total":7},"aggregations":null}}}`)
	default:
		io.WriteString(w, `{"data":{"file":{"hits":{"total":7},"aggregations":{"sex":{"buckets":[{"key":"a","doc_count":7}]}}}}}`)
	}
}

// TestArranger: Arranger accepts every filter that this server accepts.
func TestArranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := begun(t, one(hosted), federation.Config{Transport: hosts{"a.example": http.HandlerFunc(arranger)}})
		for _, filter := range []string{
			``, `{}`, `null`, ` { } `, `{"op":"in","content":{"fieldName":"sex","value":"a"}}`, `{"op":"in","pivot":"files","content":{"fieldName":"sex","value":"a"}}`,
			`{"op":"filter","content":{"fieldNames":["sex"],"value":"a"}}`, `{"op":"and","content":[]}`,
			`{"op":"and","content":[{}]}`, `{"op":"or","content":[null,{"op":"in","content":{"fieldName":"sex","value":"a"}}]}`,
		} {
			r := request("", "sex.buckets")
			r.Filters = json.RawMessage(filter)
			answer := f.ask(t, r)
			if diff := cmp.Diff([]graphql.NetworkNode{{ID: "a", Name: "A", Hits: 7, Status: "OK"}}, answer.Nodes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", filter, diff)
			}
			same(t, `{"sex":{"bucket_count":1,"cardinality":1,"buckets":[{"key":"a","key_as_string":null,"doc_count":7}]}}`, answer.Aggregations)
		}
	})
}

// TestNetworkHasTheAccessFilter: a catalogue's access rule applies to its part of a network.
func TestNetworkHasTheAccessFilter(t *testing.T) {
	x := engine(t, map[string][]string{"local": {`{"studyId":"a","sex":"m"}`, `{"studyId":"b","sex":"f"}`}, "one": {`{"sex":"x"}`}, "two": nil})
	d := named("local")
	d.Access = &definition.AccessRule{Field: "studyId", Scope: "{value}.READ"}
	s := joined(t, x, d, serve(t, x, named("one"), nil), serve(t, x, named("two"), nil))
	const query = `{network{nodes{nodeId hits} aggregations{sex{buckets{key doc_count}}}}}`
	for name, c := range map[string]struct {
		who  core.Principal
		want string
	}{
		"nobody":   {core.Principal{}, `{"data":{"network":{"nodes":[{"nodeId":"l","hits":0},{"nodeId":"1","hits":1},{"nodeId":"2","hits":0}],"aggregations":{"sex":{"buckets":[{"key":"x","doc_count":1}]}}}}}`},
		"a reader": {core.Principal{ID: "key:1", Scopes: []string{"b.READ"}}, `{"data":{"network":{"nodes":[{"nodeId":"l","hits":1},{"nodeId":"1","hits":1},{"nodeId":"2","hits":0}],"aggregations":{"sex":{"buckets":[{"key":"f","doc_count":1},{"key":"x","doc_count":1}]}}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := s.service.Execute(t.Context(), s.model, c.who, core.GraphQLRequest{Query: query})
			same(t, c.want, json.RawMessage(answer.Body))
		})
	}
}

// TestHeadersReachNodes: the configured headers of a client's request are forwarded to the node, and the trace of the request.
func TestHeadersReachNodes(t *testing.T) {
	x := engine(t, map[string][]string{"local": nil})
	got := make(chan string, 1)
	one := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := r.Header.Get("Authorization"); h != "" {
			got <- h + " " + r.Header.Get("Traceparent")
		}
		n := &remote{fields: fields(), answer: empty}
		n.ServeHTTP(w, r)
	})
	d := named("local")
	d.Network = json.RawMessage(`{"remoteRequests":{"headers":["Authorization"]},"remoteNodes":[{"displayName":"One","documentType":"file","graphqlUrl":"http://one.example"}]}`)
	changed := make(chan string, 1)
	f := federation.New([]definition.Definition{d}, federation.Config{Transport: hosts{"one.example": one}, Changed: func(id string) { changed <- id }})
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer stop(t, f)
	<-changed
	s := serve(t, x, d, f)
	ctx, traced := span.NewTracer(sdk.NewTracerProvider()).Consume(t.Context(), "request", "")
	defer traced.End(nil)
	ctx = graphql.WithHeader(ctx, http.Header{"Authorization": {"Bearer x"}})
	answer := s.service.Execute(ctx, s.model, core.Principal{}, core.GraphQLRequest{Query: `{network{nodes{nodeId name hits status}}}`})
	same(t, `{"data":{"network":{"nodes":[{"nodeId":null,"name":"One","hits":0,"status":"OK"}]}}}`, json.RawMessage(answer.Body))
	select {
	case h := <-got:
		if trace := span.TraceID(ctx); trace == "" || !strings.HasPrefix(h, "Bearer x 00-"+trace) {
			t.Errorf("the node got %q", h)
		}
	default:
		t.Error("the node got no header")
	}
}
