package search_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// TestGraphQLOperationIsThatOfTheBody as it was sent.
func TestGraphQLOperationIsThatOfTheBody(t *testing.T) {
	for name, tt := range map[string]struct {
		contentType, body string
		want              core.GraphQLRequest
	}{
		"query":          {"application/json", apitest.Typename, core.GraphQLRequest{Query: "{ __typename }"}},
		"charset":        {"application/json; charset=UTF-8", apitest.Typename, core.GraphQLRequest{Query: "{ __typename }"}},
		"all":            {"application/json", `{"query":"query A{a}","operationName":"A","variables":{"n":12345678901234567890.10},"extensions":{"x":1}}`, core.GraphQLRequest{Query: "query A{a}", OperationName: "A", Variables: []byte(`{"n":12345678901234567890.10}`)}},
		"nulls":          {"application/json", `{"query":"{a}","operationName":null,"variables":null,"extensions":null}`, core.GraphQLRequest{Query: "{a}"}},
		"others ignored": {"application/json", `{"endpointTag":"Arranger-Table","query":"{a}","variables":{},"id":7}`, core.GraphQLRequest{Query: "{a}", Variables: []byte(`{}`)}},
		"mutation":       {"application/json", `{"query":"mutation{saveSet}"}`, core.GraphQLRequest{Query: "mutation{saveSet}"}},
		"unicode":        {"application/json", ` {"query":"{a(x:\"\u00e4é\")}"} ` + "\n", core.GraphQLRequest{Query: `{a(x:"äé")}`}},
		"no GraphQL":     {"application/json", `{"query":"}{"}`, core.GraphQLRequest{Query: "}{"}},
		"own case":       {"application/json", `{"query":"{a}","Query":"{b}","Variables":7}`, core.GraphQLRequest{Query: "{a}"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, _, last := apitest.Searched(t, api.Config{}, apitest.Participants())
			res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/graphql?operation=A&query=", Body: tt.body, Header: http.Header{"Content-Type": {tt.contentType}}})
			if res.StatusCode != 200 || string(body) != apitest.Answered {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
			if got := last.Operation.Header.Get("Content-Type"); got != tt.contentType {
				t.Errorf("the operation has the header %q", got)
			}
			if last.Operation.Caller.ID == "" {
				t.Error("the response counts towards no caller")
			}
			last.Operation.Header, last.Operation.Caller = nil, core.Caller{}
			if diff := cmp.Diff(tt.want, last.Operation); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// graphQLErrors are what a GraphQL client reads of a problem.
func graphQLErrors(t *testing.T, body []byte) string {
	t.Helper()
	var b struct {
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatal(err)
	}
	if len(b.Errors) != 1 {
		return fmt.Sprint(len(b.Errors), " errors")
	}
	return b.Errors[0].Extensions.Code + ": " + b.Errors[0].Message
}

func TestGraphQLBodiesThatHoldNoOperation(t *testing.T) {
	const object = `send a JSON object such as {"query":"{ __typename }"}`
	const json, media = "application/json", "send Content-Type: application/json, in UTF-8, and no Content-Encoding"
	for name, tt := range map[string]struct {
		contentType, body string
		status            int
		code              string
		detail, hint      string
	}{
		"empty":                  {json, "", 400, "invalid", "the body is empty", object},
		"spaces":                 {json, " \n", 400, "invalid", "the body is empty", object},
		"broken":                 {json, `{"query":`, 400, "invalid", "the body is not valid JSON", ""},
		"text":                   {json, `"{a}"`, 400, "invalid", "the body is not a JSON object", ""},
		"null":                   {json, `null`, 400, "invalid", "the body is not a JSON object", ""},
		"batch":                  {json, ` [{"query":"{a}"},{"query":"{b}"}]`, 400, "invalid", "the body is an array; batched operations are not supported", "send each operation in its own request; one operation may select many fields"},
		"two":                    {json, apitest.Typename + apitest.Typename, 400, "invalid", "the body is not valid JSON", ""},
		"no UTF-8":               {json, "{\"query\":\"\xff\"}", 400, "invalid", "the body is not UTF-8", ""},
		"twice":                  {json, `{"query":"{a}","query":"mutation{b}"}`, 400, "invalid", `member "query" of the body appears twice`, ""},
		"no query":               {json, `{}`, 400, "invalid", "member query of the body is missing", object},
		"null query":             {json, `{"query":null}`, 400, "invalid", "member query of the body is missing", object},
		"empty query":            {json, `{"query":""}`, 400, "invalid", "member query of the body is missing", object},
		"persisted query":        {json, `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"00"}}}`, 400, "invalid", "member query of the body is missing", object},
		"query object":           {json, `{"query":{}}`, 400, "invalid", "member query of the body must be a string", ""},
		"query number":           {json, `{"query":7}`, 400, "invalid", "member query of the body must be a string", ""},
		"query with NUL":         {json, `{"query":"{a}\u0000"}`, 400, "invalid", "member query of the body contains a NUL character", ""},
		"name number":            {json, `{"query":"{a}","operationName":7}`, 400, "invalid", "member operationName of the body must be a string", ""},
		"variables text":         {json, `{"query":"{a}","variables":"{}"}`, 400, "invalid", "member variables of the body must be an object", ""},
		"variables array":        {json, `{"query":"{a}","variables":[]}`, 400, "invalid", "member variables of the body must be an object", ""},
		"variables false":        {json, `{"query":"{a}","variables":false}`, 400, "invalid", "member variables of the body must be an object", ""},
		"extensions text":        {json, `{"query":"{a}","extensions":"x"}`, 400, "invalid", "member extensions of the body must be an object", ""},
		"no content type":        {"", apitest.Typename, 415, "unsupported_media_type", "the body is not declared as JSON", media},
		"text/plain":             {"text/plain", apitest.Typename, 415, "unsupported_media_type", "the body is not declared as JSON", media},
		"application/graphql":    {"application/graphql", "{a}", 415, "unsupported_media_type", "the body is not declared as JSON", media},
		"a form":                 {"application/x-www-form-urlencoded", "query=%7Ba%7D", 415, "unsupported_media_type", "the body is not declared as JSON", media},
		"multipart":              {"multipart/form-data; boundary=x", apitest.Typename, 415, "unsupported_media_type", "the body is not declared as JSON", media},
		"another charset":        {"application/json; charset=iso-8859-1", apitest.Typename, 415, "unsupported_media_type", "the body is not declared as JSON", media},
		"a type of its own kind": {"application/graphql-response+json", apitest.Typename, 415, "unsupported_media_type", "the body is not declared as JSON", media},
	} {
		t.Run(name, func(t *testing.T) {
			h, _, last := apitest.Searched(t, api.Config{}, apitest.Participants())
			for _, accept := range []string{"", "application/json", "application/graphql-response+json"} {
				header := http.Header{"Content-Type": {tt.contentType}, "Accept": {accept}}
				res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/participants/graphql", Body: tt.body, Header: header})
				p := apitest.WantProblem(t, res, body, tt.status, tt.code, tt.detail)
				if p.Detail != tt.detail || p.Hint != tt.hint || last.Catalogue != "" {
					t.Errorf("got %q, %q, asked of %q", p.Detail, p.Hint, last.Catalogue)
				}
				want := map[int]string{400: "BAD_REQUEST: ", 415: "UNSUPPORTED_MEDIA_TYPE: "}[tt.status] + tt.detail
				if name == "persisted query" { // which Apollo's clients then send whole
					want = "PERSISTED_QUERY_NOT_SUPPORTED: PersistedQueryNotSupported"
				}
				if got := graphQLErrors(t, body); got != want {
					t.Errorf("errors: got %s, want %s", got, want)
				}
			}
		})
	}
}

func TestGraphQLByGet(t *testing.T) {
	missing := "send the GraphQL document as query, or POST a JSON object that has it; see /api-docs"
	for name, tt := range map[string]struct {
		query        string
		want         core.GraphQLRequest
		detail, hint string
	}{
		"query":              {"query=%7Ba%7D", core.GraphQLRequest{Query: "{a}"}, "", ""},
		"plus is a space":    {"query=query+A+%7Ba%7D&operationName=A", core.GraphQLRequest{Query: "query A {a}", OperationName: "A"}, "", ""},
		"variables":          {`query=q&variables=%7B%22n%22:1.0%7D`, core.GraphQLRequest{Query: "q", Variables: []byte(`{"n":1.0}`)}, "", ""},
		"variables null":     {`query=q&variables=null&extensions=null`, core.GraphQLRequest{Query: "q"}, "", ""},
		"empty ones":         {`query=q&variables=&extensions=&operationName=`, core.GraphQLRequest{Query: "q"}, "", ""},
		"extensions":         {`query=q&extensions=%7B%7D`, core.GraphQLRequest{Query: "q"}, "", ""},
		"no query":           {"", core.GraphQLRequest{}, "query parameter query is missing", missing},
		"persisted query":    {"extensions=%7B%22persistedQuery%22:%7B%22version%22:1,%22sha256Hash%22:%22ab%22%7D%7D", core.GraphQLRequest{}, "query parameter query is missing", missing},
		"empty query":        {"query=", core.GraphQLRequest{}, "query parameter query is missing", missing},
		"query twice":        {"query=q&query=r", core.GraphQLRequest{}, "query parameter query is given 2 times", ""},
		"no UTF-8":           {"query=%FF", core.GraphQLRequest{}, "query parameter query is not UTF-8", ""},
		"name, no UTF-8":     {"query=q&operationName=%FF", core.GraphQLRequest{}, "query parameter operationName is not UTF-8", ""},
		"variables broken":   {"query=q&variables=%7B", core.GraphQLRequest{}, "query parameter variables is not valid JSON", ""},
		"variables array":    {"query=q&variables=[]", core.GraphQLRequest{}, "query parameter variables is not a JSON object", ""},
		"extensions text":    {"query=q&extensions=x", core.GraphQLRequest{}, "query parameter extensions is not valid JSON", ""},
		"unknown":            {"query=q&Variables=x", core.GraphQLRequest{}, `unknown query parameter "Variables"`, "the nearest query parameter of this path is variables"},
		"a malformed escape": {"query=%zz", core.GraphQLRequest{}, "the query string is malformed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, _, last := apitest.Searched(t, api.Config{}, apitest.Participants())
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/participants/graphql?" + tt.query})
			if tt.detail != "" {
				if p := apitest.WantProblem(t, res, body, 400, "invalid", tt.detail); p.Hint != tt.hint || last.Catalogue != "" {
					t.Errorf("hint %q, asked of %q", p.Hint, last.Catalogue)
				}
				want := "BAD_REQUEST: " + tt.detail
				if name == "persisted query" {
					want = "PERSISTED_QUERY_NOT_SUPPORTED: PersistedQueryNotSupported"
				}
				if got := graphQLErrors(t, body); got != want {
					t.Errorf("errors: got %s, want %s", got, want)
				}
				return
			}
			tt.want.ReadOnly, last.Operation.Header, last.Operation.Caller = true, nil, core.Caller{}
			if diff := cmp.Diff(tt.want, last.Operation); diff != "" || res.StatusCode != 200 || string(body) != apitest.Answered {
				t.Errorf("got %d %s\n%s", res.StatusCode, body, diff)
			}
		})
	}
}

// TestGraphQLMutationByGet: a mutation that was rejected because the request is a GET is answered as HTTP has it.
func TestGraphQLMutationByGet(t *testing.T) {
	h, p, last := apitest.Searched(t, api.Config{}, apitest.Participants())
	execute := p.Searches.ExecuteFn
	p.Searches.ExecuteFn = func(ctx context.Context, id string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error) {
		response, err := execute(ctx, id, who, r)
		response.Rejected, response.RejectedMutation = r.ReadOnly, r.ReadOnly
		return response, err
	}
	res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/graphql?query=mutation%7Ba%7D"})
	problem := apitest.WantProblem(t, res, body, 405, "method_not_allowed", "mutations are not allowed with GET")
	if problem.Hint != "use POST" || res.Header.Get("Allow") != "POST" || !last.Operation.ReadOnly {
		t.Errorf("hint %q, allow %q, executed %+v", problem.Hint, res.Header.Get("Allow"), last.Operation)
	}
	if res, _ := apitest.Post(t, h, "/graphql", `{"query":"mutation{a}"}`); res.StatusCode != 200 || last.Operation.ReadOnly {
		t.Errorf("by POST: got %d, %+v", res.StatusCode, last.Operation)
	}
}

// TestGraphQLMediaTypes: which is answered, with which status.
func TestGraphQLMediaTypes(t *testing.T) {
	const plainJSON, graphQL = "application/json; charset=utf-8", "application/graphql-response+json; charset=utf-8"
	for accept, want := range map[string]string{
		"":                                  plainJSON,
		"*/*":                               plainJSON,
		"application/*":                     plainJSON,
		"application/json":                  plainJSON,
		"application/problem+json":          plainJSON,
		"application/json, text/plain, */*": plainJSON,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8":   plainJSON,
		"application/graphql-response+json":                                 graphQL,
		"APPLICATION/GraphQL-Response+JSON; charset=utf-8":                  graphQL,
		"application/graphql-response+json, application/json":               graphQL,
		"application/json, application/graphql-response+json":               graphQL,
		"application/graphql-response+json, application/json;q=0.9":         graphQL,
		"application/graphql-response+json;q=0.5, application/json":         plainJSON,
		"application/graphql-response+json;q=0.5, */*":                      plainJSON,
		"application/graphql-response+json, */*;q=0.1":                      graphQL,
		"application/graphql-response+json;q=0, */*":                        plainJSON,
		"application/json;q=0, */*":                                         graphQL,
		"text/html":                                                         "",
		"application/graphql+json":                                          "",
		"text/event-stream, multipart/mixed":                                "",
		"application/json;q=0, application/graphql-response+json;q=0, */*":  "",
		"application/graphql-response+json;q=0":                             "",
		"application/json;q=0, application/graphql-response+json;q=0.0,b/c": "",
	} {
		t.Run(accept, func(t *testing.T) {
			h, p, last := apitest.Searched(t, api.Config{}, apitest.Participants())
			for _, a := range []apitest.Ask{
				{Method: "POST", Target: "/graphql", Body: apitest.Typename, Header: http.Header{"Content-Type": {"application/json"}, "Accept": {accept}}},
				{Method: "GET", Target: "/participants/graphql?query=q", Header: http.Header{"Accept": {accept}}},
			} {
				p.Searches.ExecuteFn = apitest.WorkingSearches().ExecuteFn
				*last = apitest.Seen{}
				res, body := apitest.Do(t, h, a)
				if want == "" {
					problem := apitest.WantProblem(t, res, body, 406, "not_acceptable", "this path answers application/json or application/graphql-response+json only")
					if problem.Hint != "accept application/json or application/graphql-response+json" {
						t.Errorf("hint %q", problem.Hint)
					}
					continue
				}
				if res.StatusCode != 200 || res.Header.Get("Content-Type") != want || string(body) != apitest.Answered {
					t.Errorf("got %d %s %s", res.StatusCode, res.Header.Get("Content-Type"), body)
				}
				const failed = `{"data":{"a":null},"errors":[{"message":"gone","path":["a"]}]}`
				p.Searches.ExecuteFn = answering(failed, false)
				if res, body := apitest.Do(t, h, a); res.StatusCode != 200 || res.Header.Get("Content-Type") != want || string(body) != failed {
					t.Errorf("with errors: got %d %s %s", res.StatusCode, res.Header.Get("Content-Type"), body)
				}
				const refused = `{"errors":[{"message":"no such field","extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`
				p.Searches.ExecuteFn = answering(refused, true)
				if res, body := apitest.Do(t, h, a); res.StatusCode != 400 || res.Header.Get("Content-Type") != want || string(body) != refused {
					t.Errorf("refused: got %d %s %s", res.StatusCode, res.Header.Get("Content-Type"), body)
				}
			}
		})
	}
}

// answering executes everything to one answer.
func answering(body string, refused bool) func(context.Context, string, core.Principal, core.GraphQLRequest) (core.GraphQLResponse, error) {
	return func(context.Context, string, core.Principal, core.GraphQLRequest) (core.GraphQLResponse, error) {
		return core.GraphQLResponse{Body: []byte(body), Rejected: refused}, nil
	}
}

// TestGraphQLAnswersAreNotKept, and tell what they depend on.
func TestGraphQLAnswersAreNotKept(t *testing.T) {
	var log bytes.Buffer
	h, p, _ := apitest.Searched(t, api.Config{CORSOrigins: []string{apitest.Portal}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, apitest.Participants())
	for name, a := range map[string]apitest.Ask{
		"post":    {Method: "POST", Target: "/graphql", Body: apitest.Typename, Header: http.Header{"Content-Type": {"application/json"}}},
		"get":     {Method: "GET", Target: "/graphql?query=q", Header: http.Header{"If-None-Match": {"*"}}},
		"problem": {Method: "GET", Target: "/graphql"},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := apitest.Do(t, h, a)
			if got := res.Header.Get("Cache-Control"); got != "no-store" || res.Header.Get("ETag") != "" || res.Header.Get("Last-Modified") != "" {
				t.Errorf("kept: %v", res.Header)
			}
			if got := strings.Join(res.Header.Values("Vary"), ", "); got != "Origin, Accept, Authorization" {
				t.Errorf("vary: %s", got)
			}
			if res.Header.Get("X-Request-Id") != apitest.TestRequestID || res.Header.Get("Content-Length") != fmt.Sprint(len(body)) {
				t.Errorf("got %v", res.Header)
			}
		})
	}
	t.Run("refused, in the log", func(t *testing.T) {
		log.Reset()
		p.Searches.ExecuteFn = answering(`{"errors":[{"message":"secret text of the query"}]}`, true)
		apitest.Post(t, h, "/graphql", apitest.Typename)
		if line := log.String(); !strings.Contains(line, `err="the GraphQL operation was rejected"`) || strings.Contains(line, "secret") ||
			!strings.Contains(line, "status=400") || !strings.Contains(line, "route=/graphql ") {
			t.Errorf("logged: %s", line)
		}
	})
}

// TestGraphQLThatCannotBeExecuted: what the port answers instead.
func TestGraphQLThatCannotBeExecuted(t *testing.T) {
	for name, tt := range map[string]struct {
		err          error
		status       int
		code, detail string
		known        string
	}{
		"not there any more": {core.NewError(core.CodeNotFound, "the catalogue is not available"), 404, "not_found", "the catalogue is not available", "NOT_FOUND"},
		"not now":            {core.NewError(core.CodeUnavailable, "the engine does not answer"), 503, "unavailable", "the engine does not answer", "SERVICE_UNAVAILABLE"},
		"too much":           {core.NewError(core.CodeOverloaded, "too many searches"), 503, "overloaded", "too many searches", "SERVICE_UNAVAILABLE"},
		"forbidden":          {core.WrapError(core.CodeUnsupported, "no such feature", errors.New("secret")), 400, "not_supported", "no such feature", "BAD_REQUEST"},
		"a fault":            {errors.New("secret"), 500, "internal", "an internal error occurred", "INTERNAL_SERVER_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			h, p, _ := apitest.Searched(t, api.Config{}, apitest.Participants())
			p.Searches.ExecuteFn = func(context.Context, string, core.Principal, core.GraphQLRequest) (core.GraphQLResponse, error) {
				return core.GraphQLResponse{}, tt.err
			}
			res, body := apitest.Post(t, h, "/participants/graphql", apitest.Typename)
			apitest.WantProblem(t, res, body, tt.status, tt.code, tt.detail)
			if got := graphQLErrors(t, body); got != tt.known+": "+tt.detail || bytes.Contains(body, []byte("secret")) {
				t.Errorf("got %s in %s", got, body)
			}
			if (res.Header.Get("Retry-After") != "") != (tt.status == 503) {
				t.Errorf("retry after %q", res.Header.Get("Retry-After"))
			}
		})
	}
	t.Run("failed meanwhile", func(t *testing.T) {
		h, p, _ := apitest.Searched(t, api.Config{}, apitest.Plain("biosamples"))
		p.Searches.ExecuteFn = func(context.Context, string, core.Principal, core.GraphQLRequest) (core.GraphQLResponse, error) {
			p.Catalogues.Put(apitest.Biosamples())
			return core.GraphQLResponse{}, core.NewError(core.CodeNotFound, "the catalogue is not available")
		}
		header := http.Header{"Content-Type": {"application/json"}}
		for _, target := range []string{"/biosamples/graphql", "/graphql", "/record/graphql"} {
			p.Catalogues.Put(apitest.Plain("biosamples"))
			a := apitest.Ask{Method: "POST", Target: target, Body: apitest.Typename, Header: header}
			if target == "/record/graphql" { // the type went with the failure
				res, body := apitest.Do(t, h, a)
				apitest.WantProblem(t, res, body, 404, "not_found", "the catalogue is not available")
				continue
			}
			apitest.WantFailure(t, h, a, apitest.BiosamplesFailure)
		}
	})
}

// TestGraphQLEndsWithItsClient: the context of an operation ends when its client disconnects.
func TestGraphQLEndsWithItsClient(t *testing.T) {
	h, p, _ := apitest.Searched(t, api.Config{}, apitest.Participants())
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client has gone")
	p.Searches.ExecuteFn = func(ctx context.Context, _ string, _ core.Principal, _ core.GraphQLRequest) (core.GraphQLResponse, error) {
		cancel(gone)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), gone) {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		return core.GraphQLResponse{}, ctx.Err()
	}
	r := httptest.NewRequestWithContext(ctx, "GET", "/graphql?query=q", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	apitest.WantProblem(t, w.Result(), w.Body.Bytes(), 503, "unavailable", "the request was cancelled before the response")
}

// TestGraphQLCaller: the caller of an operation is the token's subject, and none without a token.
func TestGraphQLCaller(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	_, p, last := apitest.Searched(t, api.Config{}, apitest.Participants())
	h := apitest.GuardedHandler(t, p, d, api.Config{})
	for who, want := range map[string]core.Principal{
		apitest.Anonymous: {}, apitest.WriteRight: {Name: apitest.WriteRight, Scopes: []string{"S1.WRITE"}}, apitest.SystemRight: {Name: apitest.SystemRight, Scopes: []string{"tutti.WRITE"}, System: true},
	} {
		for _, method := range []string{"GET", "POST"} {
			for _, target := range []string{"/graphql?query=q", "/participants/graphql?query=q", "/participants/download"} {
				if method == "GET" && strings.HasSuffix(target, "download") {
					continue
				}
				*last = apitest.Seen{}
				header := http.Header{"Content-Type": {"application/json"}, "Authorization": d.Header(who)}
				res, body := apitest.Do(t, h, apitest.Ask{Method: method, Target: target, Body: apitest.Typename, Header: header})
				got := core.Principal{Name: last.Who.Name, Scopes: last.Who.Scopes, System: last.Who.System}
				if diff := cmp.Diff(want, got); diff != "" || res.StatusCode != 200 || last.Catalogue != "participants" {
					t.Errorf("%s %s as %s: %d %s\n%s", method, target, who, res.StatusCode, body, diff)
				}
			}
		}
	}
	t.Run("no one is asked", func(t *testing.T) {
		h, _, last := apitest.Searched(t, api.Config{}, apitest.Participants())
		header := http.Header{"Content-Type": {"application/json"}, "Authorization": d.Header(apitest.SystemRight)}
		apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/graphql", Body: apitest.Typename, Header: header})
		if diff := cmp.Diff(core.Principal{}, last.Who); diff != "" || last.Catalogue == "" {
			t.Errorf("asked of %q\n%s", last.Catalogue, diff)
		}
	})
}

// TestGraphQLOfOtherPages: a page of another origin cannot ask as its visitor.
func TestGraphQLOfOtherPages(t *testing.T) {
	h, _, last := apitest.Searched(t, api.Config{}, apitest.Participants())
	for name, contentType := range map[string]string{"simple": "text/plain", "preflighted": "application/json"} {
		header := http.Header{"Content-Type": {contentType}, "Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}}
		res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/graphql", Body: apitest.Typename, Header: header})
		apitest.WantProblem(t, res, body, 403, "forbidden", "a page of another origin")
		if got := graphQLErrors(t, body); last.Catalogue != "" || got != "FORBIDDEN: a page of another origin may not do this" {
			t.Errorf("%s: %s, asked of %q", name, got, last.Catalogue)
		}
	}
}

// TestGraphQLBodiesAreBounded also where their length is not said.
func TestGraphQLBodiesAreBounded(t *testing.T) {
	h, _, last := apitest.Searched(t, api.Config{MaxBodyBytes: 64}, apitest.Participants())
	long := `{"query":"` + strings.Repeat(" ", 64) + `{a}"}`
	for name, length := range map[string]int64{"said": int64(len(long)), "not said": -1} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/graphql", strings.NewReader(long))
		r.ContentLength = length
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		apitest.WantProblem(t, w.Result(), w.Body.Bytes(), 413, "too_large", "64 bytes")
		if got := graphQLErrors(t, w.Body.Bytes()); last.Catalogue != "" || !strings.HasPrefix(got, "REQUEST_ENTITY_TOO_LARGE: ") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSearchMetricsAreBounded: however many catalogues and tags are asked for.
func TestSearchMetricsAreBounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	var all []*core.Catalogue
	for i := range 5 {
		all = append(all, apitest.Plain(fmt.Sprintf("c%d", i)))
	}
	_, p, _ := apitest.Searched(t, api.Config{}, append(all, apitest.Biosamples())...)
	h := apitest.NewHandler(t, p.Measured(reg), api.Config{Metrics: api.NewMetrics(reg)})
	for i := range 5 {
		for _, below := range []string{"/graphql", fmt.Sprintf("/graphql/tag-%d", i), "/download"} {
			apitest.Post(t, h, fmt.Sprintf("/c%d%s", i, below), apitest.Typename)
			apitest.WantFailure(t, h, apitest.Ask{Method: "POST", Target: "/biosamples" + below}, apitest.BiosamplesFailure)
		}
	}
	if n, err := testutil.GatherAndCount(reg, "tutti_http_request_duration_seconds"); err != nil || n != 6 {
		t.Errorf("%d series, %v, want 6", n, err)
	}
	for _, route := range []string{"/{catalogueId}/graphql", "/{catalogueId}/graphql/{tag}", "/{catalogueId}/download"} {
		_, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/metrics"})
		for _, code := range []string{"200", "404"} {
			if want := fmt.Sprintf(`{code="%s",method="POST",route="%s"} 5`, code, route); !strings.Contains(string(body), "_count"+want) {
				t.Errorf("missing %s", want)
			}
		}
	}
}
