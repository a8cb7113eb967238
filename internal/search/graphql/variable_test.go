package graphql_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
)

// TestVariables: coercion of variables by type, observed in the response or in the request to the index.
func TestVariables(t *testing.T) {
	const page = `query($n:Int,$sort:[Sort!]){analysis{hits(first:$n,sort:$sort){edges{node{id}}}}}`
	const ratio = `query($f:Float,$b:Boolean,$t:[String]){analysis{aggregations(include_missing:$b){count{histogram(interval:$f){bucket_count}}
		studyId{buckets{top_hits(_source:$t)}}}}}`
	const id = `query($i:ID=3,$j:JSON,$q:EsRefresh){__typename @skip(if:false) x:hasValidConfig(documentType:"a",index:"b")}`
	for _, c := range []struct{ name, query, variables, why string }{
		{"a whole number", page, `{"n":5.0}`, ""},
		{"an exponent", page, `{"n":1e1}`, ""},
		{"null", page, `{"n":null,"sort":null}`, ""},
		{"one for a list", page, `{"sort":{"fieldName":"count"}}`, ""},
		{"twice", page, `{"n":"x","n":1}`, ""},
		{"more than is asked for", page, `{"x":1}`, ""},
		{"a fraction", page, `{"n":1.5}`, `the variable $n is not valid: Int cannot represent 1.5`},
		{"too large", page, `{"n":2147483648}`, `the variable $n is not valid: Int cannot represent 2147483648`},
		{"a long text", page, `{"n":"` + strings.Repeat("é", 100) + `"}`, `the variable $n is not valid: Int cannot represent "` + strings.Repeat("é", 29) + "�…"},
		{"nothing in a list", page, `{"sort":[null]}`, `the variable $sort is not valid at [0]: a value of type Sort! must not be null`},
		{"no object", page, `{"sort":["count"]}`, `the variable $sort is not valid at [0]: Sort cannot represent "count"`},
		{"a member that is missing", page, `{"sort":[{"order":"asc"}]}`, `the variable $sort is not valid at [0].fieldName: a value of type String! is missing`},
		{"an unknown member", page, `{"sort":[{"fieldName":"count","mod":"avg"}]}`, `the variable $sort is not valid at [0].mod: the type Sort has no such field`},
		{"a number for a text", page, `{"sort":[{"fieldName":1}]}`, `the variable $sort is not valid at [0].fieldName: String cannot represent 1`},
		{"a number and a flag", ratio, `{"f":2,"b":false,"t":["open",null]}`, ""},
		{"a text for a number", ratio, `{"f":"2"}`, `the variable $f is not valid: Float cannot represent "2"`},
		{"a number over all", ratio, `{"f":1e999}`, `the variable $f is not valid: Float cannot represent 1e999`},
		{"a number for a flag", ratio, `{"b":1}`, `the variable $b is not valid: Boolean cannot represent 1`},
		{"broken", page, `{"n":1`, "the variables are not a JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			got := w.ask(core.GraphQLRequest{Query: c.query, Variables: json.RawMessage(c.variables)})
			if c.why == "" {
				if got.Rejected || strings.Contains(string(got.Body), "errors") {
					t.Errorf("%s", got.Body)
				}
				return
			}
			var response struct {
				Errors []struct {
					Message    string
					Extensions struct{ Code string }
				}
			}
			if err := json.Unmarshal(got.Body, &response); err != nil || !got.Rejected || len(response.Errors) != 1 {
				t.Fatalf("%v: %s", err, got.Body)
			}
			if e := response.Errors[0]; e.Message != c.why || e.Extensions.Code != "BAD_USER_INPUT" {
				t.Errorf("%s: %s", e.Extensions.Code, e.Message)
			}
		})
	}
	w := newWorld(t)
	if got := w.ask(core.GraphQLRequest{Query: id}); !got.Rejected || !strings.Contains(string(got.Body), `Variable \"$i\" is never used.`) {
		t.Errorf("%s", got.Body)
	}
}

// TestWideObjects: objects with many members and selections with many fields.
func TestWideObjects(t *testing.T) {
	w := newWorld(t)
	w.engine.answer = gives(1, index.Hit{ID: "a1", Source: []byte(`{"unknown":1,` + document[1:])})
	w.answers(`{analysis{hits{edges{node{a:id b:studyId c:analysisId d:count e:small f:ratio g:open h:created i:tags j:odd_name k:score
		id studyId analysisId count small ratio open created tags odd_name score note info experiment{platform} experiment{lab{city}} id}}}}}`,
		`{"data":{"analysis":{"hits":{"edges":[{"node":{"a":"a1","b":"S1","c":"a1","d":9007199254740993,"e":7,"f":0.5,"g":true,"h":"1483228800000","i":["x","y"],"j":"o","k":null,
		"id":"a1","studyId":"S1","analysisId":"a1","count":9007199254740993,"small":7,"ratio":0.5,"open":true,"created":"1483228800000","tags":["x","y"],"odd_name":"o","score":null,
		"note":"né","info":{"a":[1,2]},"experiment":{"platform":"ILLUMINA","lab":{"city":"Toronto"}}}}]}}}}`)
}
