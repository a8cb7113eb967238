package federation_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/internal/core"
	"tutti/internal/search/federation"
	"tutti/internal/search/graphql"
)

const (
	empty  = `{"data":{"file":{"hits":{"total":0}}}}`
	hosted = `"documentType":"file","graphqlUrl":"http://a.example/graphql"`
)

func fields() map[string]string {
	return map[string]string{"sex": "Aggregations", "age": "NumericAggregations"}
}

// TestQueries: each node is queried for the fields that it has, by its own document type, and the query text has no client
// input.
func TestQueries(t *testing.T) {
	const declared, arguments = `$missing: Boolean, $themselves: Boolean`, `aggregations_filter_themselves: $themselves include_missing: $missing`
	for name, c := range map[string]struct {
		filters       string
		parts         []string
		query, values string
	}{
		"hits alone": {"", []string{"other.buckets", "sex."}, `query node { file { hits { total } } }`, `null`},
		"a filter": {
			`{"op":"and","content":[]}`, nil, `query node($filters: JSON) { file { hits(filters: $filters) { total } } }`, `{"filters":{"op":"and","content":[]}}`,
		},
		"a clause": {
			`{"op":"in","content":{"fieldName":"sex","value":"a"}}`, nil, `query node($filters: JSON) { file { hits(filters: $filters) { total } } }`,
			`{"filters":{"op":"and","content":[{"op":"in","content":{"fieldName":"sex","value":"a"}}]}}`,
		},
		"everything that there is": {` {} `, nil, `query node { file { hits { total } } }`, `null`},
		"values": {
			"",
			[]string{"sex.bucket_count", "other.buckets", "age.buckets"},
			`query node(` + declared + `) { file { hits { total } aggregations( ` + arguments + `) { sex { buckets { key key_as_string doc_count } } } } }`,
			`{"themselves":false,"missing":true}`,
		},
		"everything": {
			`{"op":"or","content":[]}`,
			[]string{"sex.buckets(max:3)", "sex.cardinality(precision_threshold:9)", "age.stats", "age.histogram(interval:5)", `age.range(ranges:[{"from":1}])`},
			`query node($a0: Float, $a1: [RangesArg], $filters: JSON, ` + declared + `) { file { hits(filters: $filters) { total } aggregations(filters: $filters ` + arguments +
				`) { sex { buckets { key key_as_string doc_count } } age { stats { min max sum count } histogram(interval: $a0) { buckets { key key_as_string doc_count } } range(ranges: $a1) { buckets { key key_as_string doc_count } } } } } }`,
			`{"a0":5,"a1":[{"from":1}],"filters":{"op":"or","content":[]},"themselves":false,"missing":true}`,
		},
		"defaults": {
			"",
			[]string{"age.histogram(interval:null)", "age.range"},
			`query node(` + declared + `) { file { hits { total } aggregations( ` + arguments + `) { age { histogram { buckets { key key_as_string doc_count } } range { buckets { key key_as_string doc_count } } } } } }`,
			`{"themselves":false,"missing":true}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &remote{fields: fields(), answer: empty}
				f := begun(t, one(hosted), federation.Config{Transport: hosts{"a.example": a}})
				r := request("", c.parts...)
				r.Filters = json.RawMessage(c.filters)
				f.ask(t, r)
				if len(a.asked) != 1 || a.asked[0].Query != c.query {
					t.Fatalf("asked %+v, want %s", a.asked, c.query)
				}
				same(t, c.values, a.asked[0].Variables)
			})
		})
	}
}

// TestFilterOfNode: a node receives the filter without the alternatives with a field that it lacks, otherwise as it was sent.
func TestFilterOfNode(t *testing.T) {
	const sex = `{"op":"filter","content":{"fieldNames":["sex"],"value":"a"}}`
	const race = `{"op":"in","content":{"fieldName":"donor.race","value":["r"]}}`
	for name, c := range map[string]struct{ filter, want string }{
		"all of it":      {`{"op":"and","content":[` + sex + `]}`, `{"op":"and","content":[` + sex + `]}`},
		"an alternative": {`{"op":"or","content":[` + race + `,{"op":"in","content":{"fieldName":"sex","value":["a"]}}]}`, `{"op":"or","content":[{"op":"in","content":{"fieldName":"sex","value":["a"]}}]}`},
		"a name": {
			`{"op":"filter","content":{"fieldNames":["donor.race","sex"],"value":"a"}}`,
			`{"op":"and","content":[{"op":"wildcard","content":{"fieldNames":["sex"],"value":"a"}}]}`,
		},
		"a name that no node aggregates": {`{"op":"not","content":[{"op":"in","content":{"fieldName":"note","value":1}}]}`, `{"op":"not","content":[{"op":"in","content":{"fieldName":"note","value":1}}]}`},
		"{} in a group":                  {`{"op":"not","content":[{}]}`, `{"op":"not","content":[{"op":"and","content":[]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &remote{fields: fields(), answer: empty}
				f := begun(t, one(hosted), federation.Config{Transport: hosts{"a.example": a}})
				r := request("")
				r.Filters = json.RawMessage(c.filter)
				r.Known = func(name string) bool { return name == "sex" || name == "donor.race" }
				f.ask(t, r)
				same(t, c.want, a.asked[0].Variables["filters"])
			})
		})
	}
}

// TestHeaders: only the configured headers are forwarded.
func TestHeaders(t *testing.T) {
	sent := http.Header{
		"Authorization": {"Bearer secret"}, "Cookie": {"session=1"}, "X-Api-Key": {"k1", "k2"}, "X-Hop": {"h"}, "Connection": {"close, x-hop"},
		"Host": {"evil.example"}, "Accept-Encoding": {"br"}, "Content-Length": {"5"}, "Upgrade": {"h2c"},
	}
	const all = `["authorization"," X-Api-Key ","x-hop","Host","accept-encoding","Content-Length","Upgrade","X-None","bad name"]`
	for name, c := range map[string]struct {
		network string
		want    http.Header
	}{
		"none":             {`{"remoteNodes":[{"displayName":"A",` + hosted + `}]}`, http.Header{}},
		"those of a node":  {`{"remoteRequests":{"headers":["Cookie"]},"remoteNodes":[{"displayName":"A",` + hosted + `,"requests":{"headers":` + all + `}}]}`, http.Header{"Authorization": {"Bearer secret"}, "X-Api-Key": {"k1", "k2"}}},
		"those of all":     {`{"remoteRequests":{"headers":["Cookie"]},"remoteNodes":[{"displayName":"A",` + hosted + `}]}`, http.Header{"Cookie": {"session=1"}}},
		"none of one node": {`{"remoteRequests":{"headers":["Cookie"]},"remoteNodes":[{"displayName":"A",` + hosted + `,"requests":{"headers":[]}}]}`, http.Header{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &remote{fields: fields(), answer: `{"errors":[{"message":"who is Bearer secret?","extensions":{"code":"FORBIDDEN"}},{"message":"secret is no token","extensions":{"code":"FORBIDDEN"}}]}`}
				f := begun(t, defined(c.network), federation.Config{Transport: hosts{"a.example": a}})
				r := request("")
				r.Header = sent.Clone()
				answer := f.ask(t, r)
				c.want.Set("Accept", "application/json")
				c.want.Set("Content-Type", "application/json")
				c.want.Set("User-Agent", "tutti")
				if diff := cmp.Diff(c.want, a.asked[0].Header); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(sent, r.Header); diff != "" {
					t.Errorf("the client's own headers were changed:\n%s", diff)
				}
				if passed := c.want.Get("Authorization") != ""; passed && strings.Contains(answer.Nodes[0].Errors, "secret") {
					t.Errorf("the answer tells %q", answer.Nodes[0].Errors)
				}
			})
		})
	}
}

// TestNodesFilter: nodes are selected by ID, or by name if they have none; the others are still listed.
func TestNodesFilter(t *testing.T) {
	const network = `{"localNode":{"displayName":"B","nodeId":"b"},"remoteNodes":[
		{"displayName":"A","documentType":"file","graphqlUrl":"http://a.example"},
		{"displayName":"C","nodeId":"c","documentType":"file","graphqlUrl":"http://c.example"},
		{"displayName":"D","nodeId":"d","documentType":"file","graphqlUrl":"http://d.example"}]}`
	const five = `{"data":{"file":{"hits":{"total":5}}}}`
	for name, c := range map[string]struct {
		filter []string
		hits   []int64
	}{
		"none":         {nil, []int64{5, 5, 5, 0}},
		"empty":        {[]string{}, []int64{5, 5, 5, 0}},
		"by id":        {[]string{"c", "d"}, []int64{0, 0, 5, 0}},
		"the local":    {[]string{"b"}, []int64{0, 5, 0, 0}},
		"by name":      {[]string{"A", "C"}, []int64{5, 0, 0, 0}},
		"unknown ones": {[]string{"x"}, []int64{0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good := func() http.Handler { return &remote{fields: fields(), answer: five} }
				f := begun(t, defined(network), federation.Config{Transport: hosts{"a.example": good(), "c.example": good()}})
				r := request(five)
				r.Nodes = c.filter
				answer := f.ask(t, r)
				want := []graphql.NetworkNode{
					{Name: "A", Hits: c.hits[0], Status: "OK"},
					{ID: "b", Name: "B", Hits: c.hits[1], Status: "OK"},
					{ID: "c", Name: "C", Hits: c.hits[2], Status: "OK"},
					{ID: "d", Name: "D", Status: "ERROR", Errors: "could not be reached"},
				}
				if diff := cmp.Diff(want, answer.Nodes); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// slow responds after a delay, or when the request is cancelled.
func slow(n *remote, after time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !n.availableFields() { // after the first question
			timer := time.NewTimer(after)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-r.Context().Done():
			}
		}
		n.ServeHTTP(w, r)
	})
}

// TestSlowNode: a slow node times out; the others are not affected.
func TestSlowNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &remote{fields: fields(), answer: empty}
		c := &remote{fields: fields(), answer: `{"data":{"file":{"hits":{"total":7}}}}`}
		registry := prometheus.NewRegistry()
		f := begun(t, defined(strings.Replace(twoNodes, `"donor"`, `"file"`, 1)), federation.Config{
			Transport: hosts{"a.example": slow(a, 11*time.Second), "c.example": slow(c, 9*time.Second)}, Metrics: federation.NewMetrics(registry),
			MaxInFlight: 1,
		})
		a.has(nil)
		c.has(nil)
		start := time.Now()
		answer := f.ask(t, request(`{"data":{"file":{"hits":{"total":3}}}}`))
		want := []graphql.NetworkNode{
			{ID: "a", Name: "A", Status: "ERROR", Errors: "timed out after 10s"}, {ID: "b", Name: "B", Hits: 3, Status: "OK"}, {ID: "c", Name: "C", Hits: 7, Status: "OK"},
		}
		if diff := cmp.Diff(want, answer.Nodes); diff != "" || time.Since(start) != 10*time.Second {
			t.Errorf("after %s (-want +got):\n%s", time.Since(start), diff)
		}
		const up = `# HELP tutti_federation_node_up Whether the last request to a remote node of a federation succeeded: 1 if it did.
# TYPE tutti_federation_node_up gauge
tutti_federation_node_up{catalogue="c",node="a"} 0
tutti_federation_node_up{catalogue="c",node="c"} 1
`
		if err := testutil.GatherAndCompare(registry, strings.NewReader(up), "tutti_federation_node_up"); err != nil {
			t.Error(err)
		}
		if n, err := testutil.GatherAndCount(registry, "tutti_federation_request_duration_seconds"); err != nil || n != 2 {
			t.Errorf("%d series of durations, %v", n, err)
		}
		if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}

		// A second client waits for a slot behind the first, within the same timeout.
		second := make(chan graphql.NetworkAnswer)
		go func() {
			answer, err := f.Query(t.Context(), f.view, request(empty))
			if err != nil {
				t.Error(err)
			}
			second <- answer
		}()
		synctest.Wait()
		if late := f.ask(t, request(empty)).Nodes[2]; late.Errors != "timed out after 10s" {
			t.Errorf("the second is told %+v", late)
		}
		if got := (<-second).Nodes[2]; got.Hits != 7 {
			t.Errorf("the first is told %+v", got)
		}
	})
}

// TestCancelledQuery: calls are cancelled when the client disconnects.
func TestCancelledQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &remote{fields: fields(), answer: empty}
		f := begun(t, one(hosted), federation.Config{Transport: hosts{"a.example": slow(a, time.Hour)}, Timeout: 2 * time.Hour})
		a.has(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		answer, err := f.Query(ctx, f.view, request(empty, "sex.buckets"))
		if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "request timed out before all nodes responded" {
			t.Errorf("got %+v, %v", answer, err)
		}
		if time.Since(start) != time.Second {
			t.Errorf("took %s", time.Since(start))
		}
	})
}
