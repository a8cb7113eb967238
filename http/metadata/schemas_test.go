package metadata_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/tools/apitest"
)

func TestRegisterAnalysisType(t *testing.T) {
	const sent = `{"name":"variant_call","schema":{"type":"object"}}`
	for name, header := range map[string]http.Header{
		"JSON":                {"Content-Type": {"application/json; charset=utf-8"}},
		"no content type":     nil,
		"JSON of a kind":      {"Content-Type": {"application/schema+json"}},
		"explicitly as it is": {"Content-Type": {"application/json"}, "Content-Encoding": {"identity"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
				m.RegisterFn = func(body []byte) ([]byte, error) {
					got = string(body)
					return []byte(apitest.TypeBody), nil
				}
			})
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "POST", Target: "/schemas", Body: sent, Header: header})
			if res.StatusCode != 200 || string(body) != apitest.TypeBody || got != sent {
				t.Errorf("got %d %s for %s", res.StatusCode, body, got)
			}
		})
	}
}

func TestRegisterRefusesABadBody(t *testing.T) {
	h := apitest.NewHandler(t, apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.RegisterFn = func([]byte) ([]byte, error) {
			return nil, fmt.Errorf("registering: %w", &core.Error{
				Code: core.CodeInvalid, ErrorID: "malformed.json.schema", Message: "the schema is not one of an analysis type",
				Violations: []core.Violation{{Pointer: "/schema/required", Message: "experiment is not required", Keyword: "contains"}},
			})
		}
	}), api.Config{MaxBodyBytes: 10 << 20})
	for name, tt := range map[string]struct {
		ask           apitest.Ask
		status        int
		code, errorID string
		text          string
	}{
		"nothing":      {apitest.Ask{}, 400, "invalid", "malformed.parameter", "the body is empty"},
		"white space":  {apitest.Ask{Body: " \r\n\t"}, 400, "invalid", "malformed.parameter", "the body is empty"},
		"by the port":  {apitest.Ask{Body: "{}"}, 400, "invalid", "malformed.json.schema", "the schema is not one of an analysis type"},
		"form":         {apitest.Ask{Body: "a=b", Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}, 415, "unsupported_media_type", "unsupported.media.type", "not declared as JSON"},
		"eleven MB":    {apitest.Ask{Body: strings.Repeat(" ", 11<<20)}, 413, "too_large", "payload.too.large", "10485760 bytes"},
		"not accepted": {apitest.Ask{Body: "{}", Header: http.Header{"Accept": {"text/html"}}}, 406, "not_acceptable", "not.acceptable", "JSON only"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.ask.Method, tt.ask.Target = "POST", "/schemas"
			res, body := apitest.Do(t, h, tt.ask)
			p := apitest.WantProblem(t, res, body, tt.status, tt.code, tt.text)
			if p.ErrorID != tt.errorID {
				t.Errorf("errorId: got %q, want %q", p.ErrorID, tt.errorID)
			}
			if name == "by the port" {
				apitest.Golden(t, "problem_violations", body)
			}
		})
	}
}

func TestListAnalysisTypes(t *testing.T) {
	newest := datamodel.AnalysisTypeQuery{Limit: 20}
	with := func(change func(*datamodel.AnalysisTypeQuery)) datamodel.AnalysisTypeQuery {
		q := newest
		change(&q)
		return q
	}
	for target, want := range map[string]string{
		"/schemas":                                          asked(newest, false, false),
		"/schemas?hideSchema=true":                          asked(newest, true, false),
		"/schemas?hideSchema=1":                             asked(newest, true, false),
		"/schemas?hideSchema=False":                         asked(newest, false, false),
		"/schemas?unrenderedOnly=TRUE":                      asked(newest, false, true),
		"/schemas?limit=1000&offset=7":                      asked(with(func(q *datamodel.AnalysisTypeQuery) { q.Limit, q.Offset = 1000, 7 }), false, false),
		"/schemas?limit=1001":                               asked(with(func(q *datamodel.AnalysisTypeQuery) { q.Limit = 1000 }), false, false),
		"/schemas?names=a&names=b,c":                        asked(with(func(q *datamodel.AnalysisTypeQuery) { q.Names = []string{"a", "b", "c"} }), false, false),
		"/schemas?versions=1,2&versions=3":                  asked(with(func(q *datamodel.AnalysisTypeQuery) { q.Versions = []int{1, 2, 3} }), false, false),
		"/schemas?sort=NAME&sortOrder=Asc":                  asked(with(func(q *datamodel.AnalysisTypeQuery) { q.Sort, q.Descending = []string{"name"}, false }), false, false),
		"/schemas?sort=version,name,version":                asked(with(func(q *datamodel.AnalysisTypeQuery) { q.Sort, q.Descending = []string{"version", "name"}, true }), false, false),
		"/schemas?limit=0":                                  asked(with(func(q *datamodel.AnalysisTypeQuery) { q.Limit, q.CountOnly = 0, true }), false, false),
		"/schemas?hideSchema=yes&unrenderedOnly=on&foo=bar": asked(newest, true, true),
		"/schemas?limit=&offset=&names=&versions=&sort=&sortOrder=&hideSchema=&unrenderedOnly=": asked(newest, false, false),
		"/schemas?hideSchema=true&limit=2&offset=5&names=a,b&versions=1,2&sort=name,version&sortOrder=ASC&unrenderedOnly=true":// song-client
		asked(datamodel.AnalysisTypeQuery{Names: []string{"a", "b"}, Versions: []int{1, 2}, Sort: []string{"name", "version"}, Limit: 2, Offset: 5}, true, true),
		"/schemas?sortOrder=asc":  asked(with(func(q *datamodel.AnalysisTypeQuery) { q.Descending = true }), false, false),
		"/schemas?sortOrder=DESC": asked(newest, false, false),
		"/schemas?sort=version":   asked(with(func(q *datamodel.AnalysisTypeQuery) { q.Sort, q.Descending = []string{"version"}, true }), false, false),
	} {
		t.Run(target, func(t *testing.T) {
			var got string
			p := apitest.Working()
			answer := p.Metadata.ListFn
			p.Metadata.ListFn = func(q datamodel.AnalysisTypeQuery, hideSchema, unrendered bool) ([]byte, error) {
				got = asked(q, hideSchema, unrendered)
				return answer(q, hideSchema, unrendered)
			}
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: target})
			if res.StatusCode != 200 {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func asked(q datamodel.AnalysisTypeQuery, hideSchema, unrendered bool) string {
	return fmt.Sprintf("%+v hide %t unrendered %t", q, hideSchema, unrendered)
}

func TestReadAnalysisType(t *testing.T) {
	for target, want := range map[string]string{
		"/schemas/variant_call":                                "variant_call 0 false",
		"/schemas/variant_call?version=7":                      "variant_call 7 false",
		"/schemas/variant_call?version=2147483647":             "variant_call 2147483647 false",
		"/schemas/a.b-c?unrenderedOnly=1":                      "a.b-c 0 true",
		"/schemas/variant_call/versions/3":                     "variant_call 3 false",
		"/schemas/variant_call/versions/3?unrenderedOnly=true": "variant_call 3 true",
	} {
		t.Run(target, func(t *testing.T) {
			var got string
			p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
				m.TypeFn = func(name string, version int, unrendered bool) ([]byte, error) {
					got = fmt.Sprintln(name, version, unrendered)
					return []byte(apitest.TypeBody), nil
				}
			})
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: target})
			if res.StatusCode != 200 || string(body) != apitest.TypeBody || got != want+"\n" {
				t.Errorf("got %d %s for %s", res.StatusCode, body, got)
			}
			if length := res.Header.Get("Content-Length"); length != fmt.Sprint(len(apitest.TypeBody)) {
				t.Errorf("content length %s", length)
			}
		})
	}
}

func TestRegistrationSchema(t *testing.T) {
	res, body := apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{}), apitest.Ask{Method: "GET", Target: "/schemas/registration"})
	if res.StatusCode != 200 || string(body) != `{"type":"object"}` || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

func TestAnalysisTypeThatIsNotThere(t *testing.T) {
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.TypeFn = func(name string, _ int, _ bool) ([]byte, error) {
			return nil, &core.Error{Code: core.CodeNotFound, ErrorID: "analysis.type.not.found", Message: "there is no analysis type " + name}
		}
	})
	res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{BasePath: "/base"}), apitest.Ask{Method: "GET", Target: "/base/schemas/nobody?version=1"})
	apitest.WantProblem(t, res, body, 404, "not_found", "there is no analysis type nobody")
	apitest.Golden(t, "problem_metadata", body)
}

// TestBadParametersOfMetadata: each names the parameter and the value, none is a fault of the server.
func TestBadParametersOfMetadata(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	const types, one, page, list = "/schemas", "/schemas/variant_call", "/studies/S/analysis/paginated", "/studies/S/analysis"
	whole := "must be a whole number from "
	for target, text := range map[string]string{
		types + "?limit=many":                                "limit " + whole + `0 to 2147483647, not "many"`,
		types + "?limit=-1":                                  `not "-1"`,
		types + "?limit=1.5":                                 `not "1.5"`,
		types + "?limit=99999999999999999999":                `not "99999999999999999999"`,
		types + "?limit=1&limit=2":                           "limit is given 2 times",
		types + "?offset=-1":                                 "offset " + whole + `0 to 2147483647, not "-1"`,
		types + "?offset=2147483648":                         `not "2147483648"`,
		types + "?unrenderedOnly=2":                          `unrenderedOnly must be true or false, not "2"`,
		types + "?sort=age":                                  `sort must be version or name, not "age"`,
		types + "?sortOrder=up":                              `sortOrder must be asc or desc, not "up"`,
		types + "?names=a,,b":                                `names has an empty value: "a,,b"`,
		types + "?names=a%00":                                "names contains a control character",
		types + "?names=" + strings.Repeat("a,", 1000) + "a": "names has more than 1000 values",
		types + "?versions=1,x":                              `versions must be a whole number from 1 to 2147483647, not "x"`,
		types + "?versions=0":                                `not "0"`,
		types + "?limit=%zz":                                 "query string is malformed",
		types + "?limit=" + strings.Repeat("9", 3000):        `not "` + strings.Repeat("9", 64) + `"…`,
		one + "?version=latest":                              "version " + whole + `1 to 2147483647, not "latest"`,
		one + "?version=0":                                   `not "0"`,
		one + "?version=-3":                                  `not "-3"`,
		one + "?version=2147483648":                          `not "2147483648"`,
		one + "/versions/0":                                  "version " + whole + `1 to 2147483647, not "0"`,
		one + "/versions/one":                                `not "one"`,
		one + "/versions/99999999999999999999":               `not "99999999999999999999"`,
		"/schemas/%2E%2E":                                    "name must not be a relative path segment",
		"/schemas/som3th!ng$":                                "only letters, digits, dots, hyphens and underscores, unlike \"som3th!ng$\"",
		"/schemas/a%2Fb":                                     "unlike \"a/b\"",
		"/schemas/%00":                                       "name contains a control character",
		"/schemas/" + strings.Repeat("a", 513):               "name has 513 bytes, the limit is 512",
		page + "?limit=ten":                                  "limit " + whole + `0 to 10000, not "ten"`,
		page + "?limit=10001":                                `not "10001"`,
		page + "?offset=-1":                                  "offset " + whole + `0 to 2147483647, not "-1"`,
		page + "?analysisStates=published":                   `analysisStates must be of UNPUBLISHED, PUBLISHED and SUPPRESSED, not "published"`,
		list + "?analysisStates=PUBLISHED,DELETED":           `not "DELETED"`,
		list + "?analysisStates=" + strings.Repeat("PUBLISHED,", 100) + "PUBLISHED": "more than 100 values",
		"/studies/%2E":            "study must not be a relative path segment",
		"/studies/S/analysis/%7F": "id contains a control character",
	} {
		t.Run(target[:min(len(target), 60)], func(t *testing.T) {
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target})
			p := apitest.WantProblem(t, res, body, 400, "invalid", text)
			if p.ErrorID != "malformed.parameter" || p.Message == nil || *p.Message != p.Detail || p.HTTPStatusCode != 400 {
				t.Errorf("got %+v", p)
			}
		})
	}
}

// TestEveryCodeHasAnErrorID: what Song's clients look for is in every problem of the metadata's paths, and nowhere else.
func TestEveryCodeHasAnErrorID(t *testing.T) {
	for code, want := range map[core.Code]struct {
		status     int
		errorID    string
		statusName string
	}{
		core.CodeInvalid:          {400, "malformed.parameter", "BAD_REQUEST"},
		core.CodeUnsupported:      {400, "not.supported", "BAD_REQUEST"},
		core.CodeUnauthenticated:  {401, "unauthorized.token", "UNAUTHORIZED"},
		core.CodeForbidden:        {403, "forbidden.token", "FORBIDDEN"},
		core.CodeNotFound:         {404, "not.found", "NOT_FOUND"},
		core.CodeAbsent:           {404, "not.found", "NOT_FOUND"},
		core.CodeConflict:         {409, "conflict", "CONFLICT"},
		core.CodeTooLarge:         {413, "payload.too.large", "REQUEST_ENTITY_TOO_LARGE"},
		core.CodeUnsupportedMedia: {415, "unsupported.media.type", "UNSUPPORTED_MEDIA_TYPE"},
		core.CodeUpstream:         {502, "bad.gateway", "BAD_GATEWAY"},
		core.CodeOverloaded:       {503, "service.unavailable", "SERVICE_UNAVAILABLE"},
		core.CodeUnavailable:      {503, "service.unavailable", "SERVICE_UNAVAILABLE"},
		core.CodeIndexBlocked:     {503, "service.unavailable", "SERVICE_UNAVAILABLE"},
		core.CodeInternal:         {500, "unknown.error", "INTERNAL_SERVER_ERROR"},
	} {
		t.Run(string(code), func(t *testing.T) {
			refused := func() error { return core.WrapError(code, "it cannot be", errors.New("secret")) }
			p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
				m.SubmitFn = func(string, []byte, bool) (string, error) { return "", refused() }
			})
			p.GetFn = func(string) (core.Job, error) { return core.Job{}, refused() }
			h := apitest.NewHandler(t, p, api.Config{})
			// Not by do: the document does not describe what no port answers.
			_, res, body := apitest.Exchange(t, h, apitest.Ask{Method: "POST", Target: "/submit/S", Body: "{}"})
			got := apitest.WantProblem(t, res, body, want.status, string(code), "it cannot be")
			if got.ErrorID != want.errorID || got.HTTPStatusCode != want.status || got.HTTPStatusName != want.statusName ||
				got.RequestURL != "http://localhost/submit/S" || got.Timestamp != apitest.Noon.UnixMilli() || got.Message == nil || *got.Message != got.Detail {
				t.Errorf("got %s", body)
			}
			if strings.Contains(string(body), "secret") {
				t.Errorf("shows its cause: %s", body)
			}
			if _, _, body := apitest.Exchange(t, h, apitest.Ask{Method: "GET", Target: "/jobs/j"}); strings.Contains(string(body), "errorId") {
				t.Errorf("a job's problem: %s", body)
			}
		})
	}
}

// TestProblemsOfTheTransportHaveAnErrorID: also where no route is, and where no handler was asked.
func TestProblemsOfTheTransportHaveAnErrorID(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{CheckHost: true})
	for name, tt := range map[string]struct {
		ask           apitest.Ask
		status        int
		code, errorID string
	}{
		"no path":           {apitest.Ask{Method: "GET", Target: "/studies/S/nobody"}, 404, "not_found", "not.found"},
		"no segment":        {apitest.Ask{Method: "GET", Target: "/studies/"}, 400, "invalid", "malformed.parameter"},
		"no method":         {apitest.Ask{Method: "DELETE", Target: "/schemas/a"}, 405, "method_not_allowed", "method.not.allowed"},
		"another host":      {apitest.Ask{Method: "GET", Target: "/studies/all", Host: "example.org"}, 421, "misdirected_request", "misdirected.request"},
		"a page of another": {apitest.Ask{Method: "POST", Target: "/schemas", Header: http.Header{"Sec-Fetch-Site": {"cross-site"}}}, 403, "forbidden", "forbidden.token"},
		"bad parameter":     {apitest.Ask{Method: "GET", Target: "/schemas?limit=x"}, 400, "invalid", "malformed.parameter"},
		"accepts HTML":      {apitest.Ask{Method: "GET", Target: "/studies/all", Header: http.Header{"Accept": {"text/html"}}}, 406, "not_acceptable", "not.acceptable"},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := apitest.Do(t, h, tt.ask)
			if p := apitest.WantProblem(t, res, body, tt.status, tt.code, ""); p.ErrorID != tt.errorID {
				t.Errorf("errorId: got %q, want %q", p.ErrorID, tt.errorID)
			}
		})
	}
}
