package graphql_test

import (
	"encoding/json"
	"testing"

	"tutti/internal/core"
	"tutti/internal/search/view"
)

// TestQueriesOfArrangersClients replays the forms of the queries of Arranger's components, charts and MCP server: what they declare,
// name and list, with the fields of these tests.
func TestQueriesOfArrangersClients(t *testing.T) {
	t.Parallel()
	l := newLive(t, view.Config{},
		`{"analysisId":"a1","studyId":"S1","count":3,"tags":["x","y"],"created":"2024-05-01","experiment":{"platform":"P"},"files":[{"name":"f1","size":1}]}`,
		`{"analysisId":"a2","studyId":"S2","count":8,"open":true,"created":"2024-06-01","files":[{"name":"f2","size":2},{"name":"f3","size":3}]}`,
		`{"analysisId":"a3","studyId":"S2","count":20}`,
	)
	for name, tt := range map[string]struct{ query, variables, want string }{
		"table of the components": {
			`query ($sort: [Sort], $first: Int, $offset: Int, $score: String, $sqon: JSON) {
				analysis {
					hits(first: $first, offset: $offset, sort: $sort, score: $score, filters: $sqon) {
						edges { node {
							studyId
							files { hits { edges { node {
								name
							} } } }
							experiment { platform }
							analysisId
						} }
						total
					}
				}
			}`,
			`{"sqon":{"op":"and","content":[{"op":"in","content":{"fieldName":"studyId","value":["S1"]}}]},
				"sort":[{"fieldName":"studyId","order":"desc"}],"score":"","offset":0,"first":20}`,
			`{"data":{"analysis":{"hits":{"edges":[{"node":{"studyId":"S1","files":{"hits":{"edges":[{"node":{"name":"f1"}}]}},
				"experiment":{"platform":"P"},"analysisId":"a1"}}],"total":1}}}}`,
		},
		"facets of the components": {
			`query AnalysisAggregationsQuery($sqon: JSON) {
				analysis {
					aggregations (
						aggregations_filter_themselves: false
						filters: $sqon
					){
						studyId { buckets { doc_count key_as_string key } },
						count { stats { max min count avg sum } }, created { stats { max min count avg sum } }
					}
				}
			}`,
			`{"sqon":{"op":"and","content":[{"op":"in","content":{"fieldName":"studyId","value":["S2"]}}]}}`,
			`{"data":{"analysis":{"aggregations":{
				"studyId":{"buckets":[{"doc_count":2,"key_as_string":null,"key":"S2"},{"doc_count":1,"key_as_string":null,"key":"S1"}]},
				"count":{"stats":{"max":20,"min":8,"count":2,"avg":14,"sum":28}},
				"created":{"stats":{"max":1717200000000,"min":1717200000000,"count":1,"avg":1717200000000,"sum":1717200000000}}}}}}`,
		},
		"charts": {
			`query ChartsQuery($filters: JSON) {
				analysis {
					aggregations(
						filters: $filters
						include_missing: true
						aggregations_filter_themselves: true
					) {
						tags { __typename bucket_count buckets { doc_count key } }
						count {
							__typename
							range(ranges: [{key: "few",to: 5},{key: "some",from: 5,to: 10},{key: "many",from: 10}])
							{ __typename bucket_count buckets { doc_count key } }
						}
					}
				}
			}`,
			`{"filters":null}`,
			`{"data":{"analysis":{"aggregations":{
				"tags":{"__typename":"Aggregations","bucket_count":3,"buckets":[{"doc_count":1,"key":"x"},{"doc_count":1,"key":"y"},{"doc_count":2,"key":"__missing__"}]},
				"count":{"__typename":"NumericAggregations","range":{"__typename":"Aggregations","bucket_count":3,
					"buckets":[{"doc_count":1,"key":"few"},{"doc_count":1,"key":"some"},{"doc_count":1,"key":"many"}]}}}}}}`,
		},
		"MCP server": {
			`query ArrangerMcpQuery($filters: JSON, $first: Int, $offset: Int, $sort: [Sort], $includeMissing: Boolean, $aggregationsFilterThemselves: Boolean) {
				analysis {
					hits(filters: $filters, first: $first, offset: $offset, sort: $sort) {
						total
						edges { node { analysisId files { hits { edges { node { size } } } } } }
					}
					aggregations(filters: $filters, include_missing: $includeMissing, aggregations_filter_themselves: $aggregationsFilterThemselves) {
						files__size { stats { min max avg sum count } }
						experiment__platform { bucket_count buckets { key key_as_string doc_count } }
					}
				}
			}`,
			`{"filters":{"op":"and","content":[]},"first":1,"offset":1,"sort":[{"fieldName":"count","order":"desc","mode":"max","missing":"last"}],
				"includeMissing":false,"aggregationsFilterThemselves":false}`,
			`{"data":{"analysis":{"hits":{"total":3,"edges":[{"node":{"analysisId":"a2","files":{"hits":{"edges":[{"node":{"size":2}},{"node":{"size":3}}]}}}}]},
				"aggregations":{"files__size":{"stats":{"min":1,"max":3,"avg":2,"sum":6,"count":3}},
					"experiment__platform":{"bucket_count":1,"buckets":[{"key":"P","key_as_string":null,"doc_count":1}]}}}}}`,
		},
		"quick search of the components": {
			`query AnalysisQuickSearchResults($sqon: JSON, $size: Int) {
				analysis {
					hits(filters: $sqon, first: $size) { total edges { node {
						primaryKey: analysisId
						studyId: studyId
					} } }
				}
			}`,
			`{"size":5,"sqon":{"op":"or","content":[{"op":"wildcard","content":{"fieldNames":["studyId","analysisId"],"value":"*1*"}}]}}`,
			`{"data":{"analysis":{"hits":{"total":1,"edges":[{"node":{"primaryKey":"a1","studyId":"S1"}}]}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := l.service.Execute(t.Context(), l.model, core.Principal{}, core.GraphQLRequest{Query: tt.query, Variables: json.RawMessage(tt.variables)})
			if got.Rejected {
				t.Fatalf("rejected: %s", got.Body)
			}
			same(t, tt.want, got.Body)
		})
	}
}
