package request_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	"tutti/internal/core"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
)

const types = `
schema { query: Root mutation: Mutation }
enum Order { asc desc }
input Sort { fieldName: String! order: Order }
type Mutation { save: ID }
type Root { hits(first: Int, sort: [Sort!], ratio: Float, open: Boolean, texts: [String]): Hits }
type Hits { total: Int node: Node }
type Node { id: ID files: Node }
`

// parse parses a request with the limits of a catalogue by default, and 15 aliases.
func parse(t *testing.T, r core.GraphQLRequest) (*request.Operation, []*output.Error) {
	t.Helper()
	schema, err := validator.LoadSchema(validator.Prelude, &ast.Source{Input: types})
	if err != nil {
		t.Fatal(err)
	}
	return request.NewParser(schema, request.Limits{Aliases: 15, Introspection: true}).Parse(r)
}

// TestRejections: a request that is not valid is rejected with one error, which says where.
func TestRejections(t *testing.T) {
	for _, c := range []struct {
		name    string
		request core.GraphQLRequest
		want    string
	}{
		{"nothing", core.GraphQLRequest{}, `GRAPHQL_PARSE_FAILED 0:0 the query has no operation`},
		{"no GraphQL", core.GraphQLRequest{Query: `{hits`}, `GRAPHQL_PARSE_FAILED 1:6 Expected Name, found <EOF>`},
		{"an unknown field", core.GraphQLRequest{Query: `{hits{totel}}`}, `GRAPHQL_VALIDATION_FAILED 1:7 Cannot query field "totel" on type "Hits". Did you mean "total"?`},
		{"an unknown argument", core.GraphQLRequest{Query: `{hits(firts:1){total}}`}, `GRAPHQL_VALIDATION_FAILED 1:2 Unknown argument "firts" on field "Root.hits".`},
		{"an argument of another type", core.GraphQLRequest{Query: `{hits(first:"1"){total}}`}, `GRAPHQL_VALIDATION_FAILED 1:14 Int cannot represent non-integer value: "1"`},
		{"a fraction", core.GraphQLRequest{Query: `{hits(first:1.5){total}}`}, `GRAPHQL_VALIDATION_FAILED 1:13 Int cannot represent non-integer value: 1.5`},
		{"a subscription", core.GraphQLRequest{Query: `subscription{hits{total}}`}, `GRAPHQL_VALIDATION_FAILED 1:1 Schema does not support operation type "subscription"`},
		{"a mutation where none may be", core.GraphQLRequest{Query: `mutation{save}`, ReadOnly: true}, `BAD_REQUEST 1:1 a mutation must be sent by POST`},
		{"a mutation that is not valid", core.GraphQLRequest{Query: `mutation{nothing}`, ReadOnly: true}, `BAD_REQUEST 1:1 a mutation must be sent by POST`},
		{"a mutation of several", core.GraphQLRequest{Query: `query a{__typename} mutation b{__typename}`, OperationName: "b", ReadOnly: true}, `BAD_REQUEST 1:21 a mutation must be sent by POST`},
		{"no name of several", core.GraphQLRequest{Query: `query a{__typename} query b{__typename}`}, `OPERATION_RESOLUTION_FAILURE 0:0 the query has several operations: set operationName`},
		{"an unknown name", core.GraphQLRequest{Query: `query a{__typename}`, OperationName: "b"}, `OPERATION_RESOLUTION_FAILURE 0:0 the query has no operation named "b"`},
		{"fields that are not one", core.GraphQLRequest{Query: `{hits(first:1){total} hits(first:2){total}}`}, `GRAPHQL_VALIDATION_FAILED 1:23 the fields called "hits" cannot be merged because they have different arguments; use an alias for one of them`},
		{"a fragment in itself", core.GraphQLRequest{Query: `{...a} fragment a on Root{...a}`}, `GRAPHQL_VALIDATION_FAILED 1:30 Cannot spread fragment "a" within itself.`},
		{"a variable that is not used", core.GraphQLRequest{Query: `query($i:ID=3){__typename}`}, `GRAPHQL_VALIDATION_FAILED 1:7 Variable "$i" is never used.`},
		{"variables that are none", core.GraphQLRequest{Query: `{__typename}`, Variables: json.RawMessage(`[1]`)}, `BAD_USER_INPUT 0:0 the variables are not a JSON object`},
		{"a missing variable", core.GraphQLRequest{Query: `query($n:Int!){hits(first:$n){total}}`}, `BAD_USER_INPUT 1:7 the variable $n of type Int! is missing`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errs := parse(t, c.request)
			if got := shown(errs); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// shown writes errors one a line.
func shown(errs []*output.Error) string {
	var all []string
	for _, e := range errs {
		all = append(all, fmt.Sprintf("%s %d:%d %s", e.Code, e.Line, e.Column, e.Message))
	}
	return strings.Join(all, "\n")
}

// TestVariables: variables are coerced by type, or rejected.
func TestVariables(t *testing.T) {
	const all = `query($n:Int=3,$sort:[Sort!],$f:Float,$b:Boolean,$t:[String]){hits(first:$n,sort:$sort,ratio:$f,open:$b,texts:$t){total}}`
	for _, c := range []struct{ name, variables, argument, want, why string }{
		{"a whole number", `{"n":5.0}`, "first", "5", ""},
		{"an exponent", `{"n":1e1}`, "first", "10", ""},
		{"null", `{"n":null,"sort":null}`, "sort", "", ""},
		{"one for a list", `{"sort":{"fieldName":"count"}}`, "sort", `[{"fieldName":"count"}]`, ""},
		{"twice", `{"n":"x","n":1}`, "first", "1", ""},
		{"a default, and more than is asked for", `{"x":1}`, "first", "3", ""},
		{"a number", `{"f":2,"b":false}`, "ratio", "2", ""},
		{"a flag", `{"f":2,"b":false}`, "open", "false", ""},
		{"texts", `{"t":["open",null]}`, "texts", `["open",null]`, ""},
		{"a text for a whole number", `{"n":"5"}`, "", "", ` is not valid: Int cannot represent "5"`},
		{"a fraction", `{"n":1.5}`, "", "", ` is not valid: Int cannot represent 1.5`},
		{"too large", `{"n":2147483648}`, "", "", ` is not valid: Int cannot represent 2147483648`},
		{"a long text", `{"n":"` + strings.Repeat("é", 100) + `"}`, "", "", ` is not valid: Int cannot represent "` + strings.Repeat("é", 29) + "…"},
		{"nothing in a list", `{"sort":[null]}`, "", "", ` is not valid at [0]: a value of type Sort! must not be null`},
		{"no object", `{"sort":["count"]}`, "", "", ` is not valid at [0]: Sort cannot represent "count"`},
		{"a member that is missing", `{"sort":[{"order":"asc"}]}`, "", "", ` is not valid at [0].fieldName: a value of type String! is missing`},
		{"an unknown member", `{"sort":[{"fieldName":"count","mod":"avg"}]}`, "", "", ` is not valid at [0].mod: the type Sort has no such field`},
		{"a number for a text", `{"sort":[{"fieldName":1}]}`, "", "", ` is not valid at [0].fieldName: String cannot represent 1`},
		{"a value that is none of an enum", `{"sort":[{"fieldName":"a"},{"fieldName":"a","order":"up"}]}`, "", "", ` is not valid at [1].order: Order cannot represent "up"`},
		{"a text for a number", `{"f":"2"}`, "", "", ` is not valid: Float cannot represent "2"`},
		{"a number over all", `{"f":1e999}`, "", "", ` is not valid: Float cannot represent 1e999`},
		{"a number for a flag", `{"b":1}`, "", "", ` is not valid: Boolean cannot represent 1`},
		{"broken", `{"n":1`, "", "", "the variables are not a JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			op, errs := parse(t, core.GraphQLRequest{Query: all, Variables: json.RawMessage(c.variables)})
			if c.why != "" {
				if len(errs) != 1 || errs[0].Code != output.CodeInput || !strings.HasSuffix(errs[0].Message, c.why) {
					t.Errorf("got %s, want %s", shown(errs), c.why)
				}
				return
			}
			if len(errs) > 0 {
				t.Fatal(shown(errs))
			}
			if got := string(op.Arguments(op.Root()[0]).Given(c.argument)); got != c.want {
				t.Errorf("%s is %q, want %q", c.argument, got, c.want)
			}
		})
	}
}

// TestExponentialQueries: queries that expand exponentially are rejected quickly.
func TestExponentialQueries(t *testing.T) {
	doubling := func(n int) string {
		var b strings.Builder
		b.WriteString(`{__type(name:"Root"){...f0}}`)
		for i := range n {
			fmt.Fprintf(&b, " fragment f%d on __Type{a%[1]d:ofType{...f%[2]d} b%[1]d:ofType{...f%[2]d}}", i, i+1)
		}
		fmt.Fprintf(&b, " fragment f%d on __Type{name}", n)
		return b.String()
	}
	nested := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " fragment f%d on __Type{ofType{...f%[2]d} ofType{...f%[2]d}}", i, i+1)
		}
		fmt.Fprintf(&b, " fragment f%d on __Type{name}", n)
		return b.String()
	}
	wide := func(n int, each string) string {
		return `{hits{node{` + strings.Repeat(each, n) + `}}}`
	}
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, c := range []struct{ name, query, message string }{
		{"aliases", `{` + numbered(16, "a%d:__typename ") + `}`, "the operation has 16 aliases, at most 15 are allowed"},
		{"aliases in fragments", `{...f ...f ...f} fragment f on Root{` + numbered(6, "a%d:__typename ") + `}`, "the operation has 18 aliases, at most 15 are allowed"},
		{"a field over and over", wide(30_000, "id "), "the operation requests 30002 fields, at most 20000 are allowed"},
		{"fragments that double", doubling(100), "the operation has billions of aliases, at most 15 are allowed"},
		{"fragments that double without aliases", `{__type(name:"Root"){...f0}}` + nested(100), "the operation requests billions of fields, at most 20000 are allowed"},
		{"depth", `{hits{node` + strings.Repeat("{files", 99) + strings.Repeat("}", 99) + `}}`, "the operation is 101 fields deep, at most 100 are allowed"},
		{"depth that is no query", strings.Repeat("{a", 2000), "exceeded maximum nesting depth of 1000"},
		{"too many words", `{` + strings.Repeat("a ", 100_001) + `}`, "exceeded token limit of 100000"},
		{"too long", `{__typename #` + strings.Repeat("x", 1<<20) + "\n}", "the query has 1048591 bytes, at most 1048576 are allowed"},
		{"fragments", `{__typename}` + numbered(201, " fragment f%d on Root{__typename}"), "the query has 201 fragments, at most 200 are allowed"},
		{"operations", numbered(51, " query q%d{__typename}"), "the query has 51 operations, at most 50 are allowed"},
		{"variables", `query(` + numbered(501, "$v%d:Int ") + `){__typename}`, "the operation has 501 variables, at most 500 are allowed"},
		{"a chain of wide fragments", `{...f0} ` + numbered(150, "fragment f%d on Root{"+strings.Repeat("__typename ", 100)+"...g} ") + `fragment g on Root{` + strings.Repeat("__typename ", 1000) + `}`, "are too large in total"},
		{"unknown names", `{hits{node{` + numbered(15_000, "id%d ") + `}}}`, `Did you mean`},
		{"lists of introspection", `{__schema{types{fields{type{fields{type{fields{name}}}}}}}}`, "Maximum introspection depth exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errs := parse(t, core.GraphQLRequest{Query: c.query})
			if got := shown(errs); !strings.Contains(got, c.message) {
				t.Errorf("%.300s", got)
			}
		})
	}
	t.Run("what is large and right", func(t *testing.T) {
		if _, errs := parse(t, core.GraphQLRequest{Query: wide(19_000, "id ")}); len(errs) > 0 {
			t.Errorf("%.300s", shown(errs))
		}
	})
}
