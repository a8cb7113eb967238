package federation_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/search/federation"
	"tutti/internal/search/graphql"
)

const twoNodes = `{"localNode":{"displayName":"B","nodeId":"b"},"remoteNodes":[
	{"displayName":"C","nodeId":"c","documentType":"file","graphqlUrl":"http://c.example/graphql"},
	{"displayName":"A","nodeId":"a","documentType":"donor","graphqlUrl":"http://a.example/graphql"}]}`

// TestMerge: the nodes' responses are merged.
func TestMerge(t *testing.T) {
	const terms, numeric = "Aggregations", "NumericAggregations"
	for name, c := range map[string]struct {
		parts  []string
		local  string
		a, c   string
		lacks  bool // a has no fields
		want   string
		hits   [3]int64
		errors [3]string
	}{
		"buckets": {
			parts: []string{"sex.bucket_count", "sex.buckets"},
			local: `{"data":{"file":{"hits":{"total":9},"aggregations":{"sex":{"buckets":[{"key":"f","doc_count":4},{"key":"m","doc_count":3},{"key":"__missing__","doc_count":2}]}}}}}`,
			a:     `{"data":{"donor":{"hits":{"total":5},"aggregations":{"sex":{"buckets":[{"key":"m","doc_count":3},{"key":"__missing__","doc_count":2}]}}}}}`,
			c:     `{"data":{"file":{"hits":{"total":2},"aggregations":{"sex":{"buckets":[{"key":"x","key_as_string":"ex","doc_count":2}]}}}}}`,
			want: `{"sex":{"bucket_count":4,"cardinality":3,"buckets":[{"key":"m","key_as_string":null,"doc_count":6},{"key":"__missing__","key_as_string":null,"doc_count":4},
				{"key":"f","key_as_string":null,"doc_count":4},{"key":"x","key_as_string":"ex","doc_count":2}]}}`,
			hits: [3]int64{5, 9, 2},
		},
		"a field that a node lacks": {
			parts: []string{"sex.buckets(max:1)", "other.bucket_count"}, lacks: true,
			local: `{"data":{"file":{"hits":{"total":9},"aggregations":{"sex":{"buckets":[{"key":"f","doc_count":4}]}}}}}`,
			a:     `{"data":{"donor":{"hits":{"total":5}}}}`,
			c:     `{"data":{"file":{"hits":{"total":2},"aggregations":{"sex":{"buckets":[{"key":"m","doc_count":2}]},"other":{"buckets":[{"key":1,"doc_count":2}]}}}}}`,
			want: `{"sex":{"bucket_count":2,"cardinality":2,"buckets":[{"key":"___aggregation_not_available___","key_as_string":null,"doc_count":5},{"key":"f","key_as_string":null,"doc_count":4}]},
				"other":{"bucket_count":2,"cardinality":1,"buckets":[{"key":"___aggregation_not_available___","key_as_string":null,"doc_count":14},{"key":"1","key_as_string":null,"doc_count":2}]}}`,
			hits: [3]int64{5, 9, 2},
		},
		"numbers": {
			parts: []string{"age.stats", "age.histogram(interval:10)", "age.range(ranges:[])"},
			local: `{"data":{"file":{"hits":{"total":3},"aggregations":{"age":{"stats":{"min":1,"max":9,"sum":12,"count":3},
				"histogram":{"buckets":[{"key":"0","doc_count":3}]},"range":{"buckets":[{"key":"young","doc_count":3},{"key":"x","doc_count":0}]}}}}}}`,
			a: `{"data":{"donor":{"hits":{"total":0},"aggregations":{"age":{"stats":{"min":-999,"max":999,"sum":0,"count":0},
				"histogram":{"buckets":[]},"range":{"buckets":[{"key":"young","doc_count":0},{"key":"x","doc_count":0}]}}}}}}`,
			c: `{"data":{"file":{"hits":{"total":1},"aggregations":{"age":{"stats":{"min":-25,"max":-25,"sum":-25,"count":1},
				"histogram":{"buckets":[{"key":"-30.0","doc_count":1}]},"range":{"buckets":[{"key":"young","doc_count":1},{"key":"x","doc_count":0}]}}}}}}`,
			want: `{"age":{"stats":{"min":-25,"max":9,"avg":-3.25,"sum":-13,"count":4},
				"histogram":{"bucket_count":4,"buckets":[{"key":"-30","key_as_string":null,"doc_count":1},{"key":"-20","key_as_string":null,"doc_count":0},
					{"key":"-10","key_as_string":null,"doc_count":0},{"key":"0","key_as_string":null,"doc_count":3}]},
				"range":{"bucket_count":2,"buckets":[{"key":"young","key_as_string":null,"doc_count":4},{"key":"x","key_as_string":null,"doc_count":0}]}}}`,
			hits: [3]int64{0, 3, 1},
		},
		"dates": {
			parts: []string{"age.histogram(interval:86400000)"},
			local: `{"data":{"file":{"hits":{"total":1},"aggregations":{"age":{"histogram":{"buckets":[{"key":"0","key_as_string":"1970-01-01T00:00:00.000Z","doc_count":1}]}}}}}}`,
			a:     `{"data":{"donor":{"hits":{"total":0},"aggregations":{"age":{"histogram":null}}}}}`,
			c:     `{"data":{"file":{"hits":{"total":1},"aggregations":{"age":{"histogram":{"buckets":[{"key":"172800000","key_as_string":"1970-01-03T00:00:00.000Z","doc_count":1}]}}}}}}`,
			want: `{"age":{"stats":null,"range":null,"histogram":{"bucket_count":3,"buckets":[{"key":"0","key_as_string":"1970-01-01T00:00:00.000Z","doc_count":1},
				{"key":"86400000","key_as_string":"1970-01-02T00:00:00.000Z","doc_count":0},{"key":"172800000","key_as_string":"1970-01-03T00:00:00.000Z","doc_count":1}]}}}`,
			hits: [3]int64{0, 1, 1},
		},
		"no values at all": {
			parts: []string{"age.stats", "sex."},
			local: `{"data":{"file":{"hits":{"total":3},"aggregations":{"age":{"stats":{"min":null,"max":null,"sum":0,"count":0}}}}}}`,
			a:     `{"data":{"donor":{"hits":{"total":0},"aggregations":{"age":{}}}}}`,
			c:     `{"data":{"file":{"hits":{"total":0},"aggregations":{}}}}`,
			want:  `{"age":{"stats":{"min":null,"max":null,"avg":null,"sum":0,"count":0},"histogram":null,"range":null},"sex":{}}`,
			hits:  [3]int64{0, 3, 0},
		},
		"errors beside data": {
			parts: []string{"sex.buckets"},
			local: `{"data":{"file":{"hits":{"total":3},"aggregations":null}},"errors":[{"message":"the index does not answer","extensions":{"code":"SERVICE_UNAVAILABLE"}}]}`,
			a:     `{"data":{"donor":{"hits":null,"aggregations":{"sex":{"buckets":[{"key":"m","doc_count":2}]}}}},"errors":[{"message":"es-1.internal is down","extensions":{"code":"INTERNAL_SERVER_ERROR"}}]}`,
			c:     `{"data":{"file":{"hits":{"total":4},"aggregations":{"sex":null}}},"errors":[{"message":"no\nsort"},{"message":"b","extensions":7},{"message":"c"},{"message":"d"}]}`,
			want:  `{}`,
			errors: [3]string{
				"internal error of the node: INTERNAL_SERVER_ERROR", "the index does not answer",
				"internal error of the node; internal error of the node; internal error of the node; and more",
			},
		},
		"no aggregations beside hits": {
			parts:  []string{"sex.buckets", "age.stats"},
			local:  `{"data":{"file":{"hits":{"total":3},"aggregations":{"sex":{"buckets":[{"key":"f","doc_count":3}]}}}}}`,
			a:      `{"data":{"donor":{"hits":{"total":2},"aggregations":null}}}`,
			c:      `{"data":{"file":{"hits":{"total":4}}}}`,
			want:   `{"sex":{"bucket_count":1,"cardinality":1,"buckets":[{"key":"f","key_as_string":null,"doc_count":3}]}}`,
			hits:   [3]int64{0, 3, 0},
			errors: [3]string{"responded with something other than what was requested", "", "responded with something other than what was requested"},
		},
		"more than can be": {
			parts: []string{"other.buckets", "age.stats"},
			local: `{"data":{"file":{"hits":{"total":9007199254740991},"aggregations":{"age":{"stats":{"min":0,"max":0,"sum":1e308,"count":9007199254740991}}}}}}`,
			a:     `{"data":{"donor":{"hits":{"total":9007199254740991},"aggregations":{"age":{"stats":{"min":0,"max":0,"sum":1e308,"count":9007199254740991}}}}}}`,
			c:     `{"data":{"file":{"hits":{"total":9007199254740992}}}}`,
			want: `{"other":{"bucket_count":1,"cardinality":0,"buckets":[{"key":"___aggregation_not_available___","key_as_string":null,"doc_count":9007199254740991}]},
				"age":{"histogram":null,"range":null,"stats":{"min":0,"max":0,"avg":1.9958403095347198e292,"sum":1.7976931348623157e308,"count":9007199254740991}}}`,
			hits:   [3]int64{9007199254740991, 9007199254740991, 0},
			errors: [3]string{2: "responded with something other than what was requested"},
		},
		"nobody answers": {
			parts:  []string{"sex.buckets", "age.stats"},
			local:  `{"errors":[{"message":"unknown field \"donor\"","extensions":{"code":"BAD_USER_INPUT"}}]}`,
			a:      `{"data":null,"errors":[{"message":"unknown field \"x\"","extensions":{"code":"BAD_USER_INPUT"}}]}`,
			c:      `{"data":{"file":{"hits":{"total":-1}}}}`,
			want:   `{}`,
			errors: [3]string{`unknown field "x"`, `unknown field "donor"`, "responded with something other than what was requested"},
		},
		"nothing that was asked for": {
			parts:  []string{"sex.buckets"},
			local:  `{"data":{"file":{"hits":{"total":1},"aggregations":{"sex":{"buckets":[]}}}}}`,
			a:      `{"data":{}}`,
			c:      `{"data":{"file":{"aggregations":{"sex":{"buckets":[{"key":{},"doc_count":1}]}}}}}`,
			want:   `{"sex":{"bucket_count":0,"cardinality":0,"buckets":[]}}`,
			hits:   [3]int64{0, 1, 0},
			errors: [3]string{"responded with something other than what was requested", "", "responded with something other than what was requested"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				has := map[string]string{"sex": terms, "age": numeric}
				if c.lacks {
					has = map[string]string{"sex": numeric}
				}
				f := begun(t, defined(twoNodes), federation.Config{Transport: hosts{
					"a.example": &remote{fields: has, answer: c.a},
					"c.example": &remote{fields: map[string]string{"sex": terms, "age": numeric, "other": terms}, answer: c.c},
				}})
				answer := f.ask(t, request(c.local, c.parts...))
				same(t, c.want, answer.Aggregations)
				want := []graphql.NetworkNode{{ID: "a", Name: "A"}, {ID: "b", Name: "B"}, {ID: "c", Name: "C"}}
				for i := range want {
					want[i].Hits, want[i].Errors, want[i].Status = c.hits[i], c.errors[i], "OK"
					if want[i].Errors != "" {
						want[i].Status = "ERROR"
					}
				}
				if diff := cmp.Diff(want, answer.Nodes); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}
