package search_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/tools/apitest"
)

func TestIntrospectionBodies(t *testing.T) {
	odd := apitest.Plain(`a b/c%41"é`)
	failing := apitest.Biosamples()
	for name, tt := range map[string]struct {
		base   string
		target string
		all    []*core.Catalogue
	}{
		"introspection_healthy":   {"", "/introspection", []*core.Catalogue{apitest.Participants(), apitest.Plain("records")}},
		"introspection_degraded":  {"", "/introspection", []*core.Catalogue{apitest.Participants(), apitest.Biosamples(), apitest.Broken("donors")}},
		"introspection_unhealthy": {"", "/introspection", []*core.Catalogue{apitest.Biosamples(), apitest.Broken("donors")}},
		"introspection_none":      {"", "/introspection", nil},
		"introspection_single":    {"", "/introspection", []*core.Catalogue{apitest.Participants()}},
		"introspection_base":      {"/search/api", "/introspection", []*core.Catalogue{odd}},
		"catalogue":               {"", "/introspection/participants", []*core.Catalogue{apitest.Participants(), apitest.Biosamples()}},
		"catalogue_failed":        {"", "/introspection/biosamples", []*core.Catalogue{apitest.Participants(), failing}},
		"catalogue_fields":        {"/base", "/introspection/fields", []*core.Catalogue{apitest.Participants()}},
		"catalogue_fields_failed": {"", "/introspection/fields", []*core.Catalogue{apitest.Broken("donors")}},
		"catalogue_without":       {"", "/introspection/empty", []*core.Catalogue{{ID: "empty"}}},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{BasePath: tt.base}, tt.all...)
			apitest.GoldenInOrder(t, name, apitest.Introspect(t, h, tt.base+tt.target, 200))
		})
	}
}

// TestSQONDescription: the package of the language says what it is, and what is sent is that.
func TestSQONDescription(t *testing.T) {
	h, _ := apitest.Catalogued(t, api.Config{})
	body := apitest.Introspect(t, h, "/introspection/sqon", 200)
	if string(body) != string(sqon.Description()) {
		t.Errorf("got %s", body)
	}
	for _, name := range []string{"$schema", "title", "description", "version", "aliases", "operators", "schema"} {
		if apitest.MemberOf(t, body, name) == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestIntrospectionOfAnyID: ids are opaque, and a path that an answer returns leads to what it says.
func TestIntrospectionOfAnyID(t *testing.T) {
	for _, id := range []string{
		"toString", "__proto__", "constructor", "a/b", "a b", "é", "100%", "%41", "a+b", "a?b#c", "..a", "a;b,c", `"`, "<&>", "日本",
		strings.Repeat("x", 512), "a:b@c", "null", "-",
	} {
		t.Run(id, func(t *testing.T) {
			for _, base := range []string{"", "/base"} {
				h, _ := apitest.Catalogued(t, api.Config{BasePath: base}, apitest.Plain(id), apitest.Plain("other"))
				summary := apitest.Introspect(t, h, base+"/introspection", 200)
				paths, _ := apitest.MemberOf(t, summary, "catalogs", id, "paths").(map[string]any)
				escaped := url.PathEscape(id)
				if paths["introspection"] != base+"/introspection/"+escaped || paths["graphql"] != base+"/"+escaped+"/graphql" {
					t.Errorf("paths: %v", paths)
				}
				detail := apitest.Introspect(t, h, base+"/introspection/"+escaped, 200)
				if got := apitest.MemberOf(t, detail, "catalogId"); got != id {
					t.Errorf("the path of %q leads to %v", id, got)
				}
			}
		})
	}
}

func TestIntrospectionRefuses(t *testing.T) {
	h, _ := apitest.Catalogued(t, api.Config{BasePath: "/base"}, apitest.Participants(), apitest.Biosamples())
	long := url.PathEscape(strings.Repeat("é", 257))
	for name, tt := range map[string]struct {
		a                  apitest.Ask
		status             int
		code, detail, hint string
	}{
		"unknown": {
			apitest.Ask{Method: "GET", Target: "/base/introspection/toString"},
			404, "not_found", "catalogue not found", "GET /base/introspection lists all catalogues",
		},
		"unknown, prototype": {
			apitest.Ask{Method: "GET", Target: "/base/introspection/__proto__"},
			404, "not_found", "catalogue not found", "GET /base/introspection lists all catalogues",
		},
		"decoded once": {
			apitest.Ask{Method: "GET", Target: "/base/introspection/%2570articipants"},
			404, "not_found", "catalogue not found", "GET /base/introspection lists all catalogues",
		},
		"another case": {
			apitest.Ask{Method: "GET", Target: "/base/introspection/Participants"},
			404, "not_found", "catalogue not found", "GET /base/introspection lists all catalogues",
		},
		"dots": {
			apitest.Ask{Method: "GET", Target: "/base/introspection/%2e%2e"},
			400, "invalid", "catalogueId must not be a relative path segment", "",
		},
		"control character": {
			apitest.Ask{Method: "GET", Target: "/base/introspection/a%00"},
			400, "invalid", "catalogueId contains a control character", "",
		},
		"too long": {
			apitest.Ask{Method: "GET", Target: "/base/introspection/" + long},
			400, "invalid", "catalogueId has 514 bytes, the limit is 512", "",
		},
		"query": {
			apitest.Ask{Method: "GET", Target: "/base/introspection?pretty=1"},
			400, "invalid", `unknown query parameter "pretty"`, "this path takes no query parameters",
		},
		"accept": {
			apitest.Ask{Method: "GET", Target: "/base/introspection", Header: http.Header{"Accept": {"text/html"}}},
			406, "not_acceptable", "this path answers JSON only", "accept application/json",
		},
		"accept of a detail": {
			apitest.Ask{Method: "GET", Target: "/base/introspection/participants", Header: http.Header{"Accept": {"application/xml"}}},
			406, "not_acceptable", "this path answers JSON only", "accept application/json",
		},
		"fields with several": {
			apitest.Ask{Method: "GET", Target: "/base/introspection/fields"},
			404, "not_found", "this path exists only with exactly one catalogue; there are 2",
			"use the path of a catalogue: /base/introspection/biosamples, /base/introspection/participants",
		},
		"below a detail": {
			apitest.Ask{Method: "GET", Target: "/base/introspection/participants/more"},
			404, "not_found", "no resource has this path", "all paths are in /base/openapi.json",
		},
		"without the base path": {
			apitest.Ask{Method: "GET", Target: "/introspection"},
			404, "not_found", "no resource has this path", "all paths are in /base/openapi.json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := apitest.Do(t, h, tt.a)
			p := apitest.WantProblem(t, res, body, tt.status, tt.code, "")
			if p.Detail != tt.detail || p.Hint != tt.hint {
				t.Errorf("got %q, %q, want %q, %q", p.Detail, p.Hint, tt.detail, tt.hint)
			}
			if res.Header.Get("ETag") != "" {
				t.Errorf("a refusal has the tag %s", res.Header.Get("ETag"))
			}
		})
	}
}

// TestIntrospectionIsReadOnly also for a catalogue that failed, whose detail takes no other method than others do.
func TestIntrospectionIsReadOnly(t *testing.T) {
	h, _ := apitest.Catalogued(t, api.Config{}, apitest.Biosamples())
	for _, target := range []string{"/introspection", "/introspection/fields", "/introspection/sqon", "/introspection/biosamples", "/introspection/none"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			t.Run(method+target, func(t *testing.T) {
				res, body := apitest.Do(t, h, apitest.Ask{Method: method, Target: target, Body: "{}"})
				apitest.WantProblem(t, res, body, 405, "method_not_allowed", "this path does not support this method")
				if allow := res.Header.Get("Allow"); allow != "GET, HEAD" {
					t.Errorf("allow: %q", allow)
				}
			})
		}
	}
}

func TestFieldsOfNoAndOfManyCatalogues(t *testing.T) {
	h, s := apitest.Catalogued(t, api.Config{})
	res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/introspection/fields"})
	p := apitest.WantProblem(t, res, body, 404, "not_found", "exactly one catalogue; there is none")
	if p.Hint != "" {
		t.Errorf("hint %q", p.Hint)
	}
	var many []*core.Catalogue
	var want []string
	for i := range 12 {
		many = append(many, apitest.Plain(fmt.Sprintf("c%02d", i)))
		if i < 10 {
			want = append(want, fmt.Sprintf("/introspection/c%02d", i))
		}
	}
	s.Put(many...)
	res, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/introspection/fields"})
	p = apitest.WantProblem(t, res, body, 404, "not_found", "exactly one catalogue; there are 12")
	if p.Hint != "use the path of a catalogue: "+strings.Join(want, ", ")+" and others, which GET /introspection lists" {
		t.Errorf("hint %q", p.Hint)
	}
}

// TestOtherPathsOfIntrospection: existing clients send a slash behind the summary's path, and find a catalogue's detail below its id.
func TestOtherPathsOfIntrospection(t *testing.T) {
	h, _ := apitest.Catalogued(t, api.Config{BasePath: "/base"}, apitest.Participants(), apitest.Biosamples())
	for target, same := range map[string]string{
		"/base/introspection/":             "/base/introspection",
		"/base/participants/introspection": "/base/introspection/participants",
		"/base/participant/introspection":  "/base/introspection/participants",
	} {
		t.Run(target, func(t *testing.T) {
			if got, want := apitest.Introspect(t, h, target, 200), apitest.Introspect(t, h, same, 200); string(got) != string(want) {
				t.Errorf("got %s, want %s", got, want)
			}
			res, _ := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target})
			again, _ := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target, Header: http.Header{"If-None-Match": {res.Header.Get("ETag")}}})
			if again.StatusCode != 304 {
				t.Errorf("got %d for what the client has", again.StatusCode)
			}
		})
	}
	for target, want := range map[string]struct {
		status int
		code   string
	}{
		"/base/introspection/?pretty=1":           {400, "invalid"},
		"/base/participants/introspection?a=b":    {400, "invalid"},
		"/base/unknown/introspection":             {404, "not_found"},
		"/base/keys/introspection":                {405, "method_not_allowed"},
		"/base/console/introspection":             {404, "not_found"},
		"/base/introspection/introspection":       {404, "not_found"},
		"/base/participants/introspection/fields": {404, "not_found"},
	} {
		res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target})
		apitest.WantProblem(t, res, body, want.status, want.code, "")
	}
}

// TestCatalogueByDocumentType: an id wins, and a document type names a catalogue that has it alone, failed ones counted.
func TestCatalogueByDocumentType(t *testing.T) {
	donor := &core.Catalogue{ID: "donors", DocumentType: "donor"}
	named := &core.Catalogue{ID: "mutation", DocumentType: "variant"}
	typed := &core.Catalogue{ID: "calls", DocumentType: "mutation"}
	first, second := apitest.Plain("records-a"), apitest.Plain("records-b")
	second.Problem, second.Fields = &core.CatalogueProblem{Code: core.CatalogueUnknown, Message: "Something went wrong."}, nil
	h, s := apitest.Catalogued(t, api.Config{}, donor, named, typed, first, second, apitest.Broken("nameless"), apitest.Biosamples())
	for name, want := range map[string]string{
		"donors": "donors", "donor": "donors", "mutation": "mutation", "variant": "mutation", "calls": "calls",
		"records-a": "records-a",
	} {
		t.Run(name, func(t *testing.T) {
			if got := apitest.MemberOf(t, apitest.Introspect(t, h, "/introspection/"+name, 200), "catalogId"); got != want {
				t.Errorf("got %v, want %s", got, want)
			}
		})
	}
	t.Run("failed", func(t *testing.T) {
		byType, byID := apitest.Introspect(t, h, "/introspection/biosample", 200), apitest.Introspect(t, h, "/introspection/biosamples", 200)
		if string(byType) != string(byID) || apitest.MemberOf(t, byID, "status") != "failed" {
			t.Errorf("got %s and %s", byType, byID)
		}
	})
	t.Run("shared", func(t *testing.T) {
		res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/introspection/record"})
		p := apitest.WantProblem(t, res, body, 409, "ambiguous_document_type", `2 catalogues have the documentType "record"`)
		if p.Hint != "use the id of a catalogue: records-a, records-b" {
			t.Errorf("hint %q", p.Hint)
		}
		apitest.GoldenInOrder(t, "catalogue_ambiguous", body)
	})
	t.Run("shared no more", func(t *testing.T) {
		s.Put(first)
		if got := apitest.MemberOf(t, apitest.Introspect(t, h, "/introspection/record", 200), "catalogId"); got != "records-a" {
			t.Errorf("got %v", got)
		}
	})
}

// TestReservedCatalogueShadowsNoRoute: also one that is listed for its folder's name answers where no route does.
func TestReservedCatalogueShadowsNoRoute(t *testing.T) {
	h, _ := apitest.Catalogued(t, api.Config{}, apitest.Broken("sqon"), apitest.Broken("fields"), apitest.Broken("jobs"), apitest.Broken("ping"), apitest.Broken("introspection"))
	if got := apitest.MemberOf(t, apitest.Introspect(t, h, "/introspection/sqon", 200), "aliases"); got == nil {
		t.Error("the catalogue sqon has taken the place of the filter language")
	}
	apitest.Introspect(t, h, "/introspection/fields", 404)
	apitest.Introspect(t, h, "/jobs", 200)
	apitest.Introspect(t, h, "/jobs/graphql", 200)
	apitest.Introspect(t, h, "/ping", 200)
	apitest.Introspect(t, h, "/introspection", 200)
	for _, target := range []string{"/jobs/graphql/more/of", "/ping/graphql", "/introspection/graphql/x"} {
		res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target})
		apitest.WantProblem(t, res, body, 404, "not_found", "no resource has this path")
	}
	if got := apitest.MemberOf(t, apitest.Introspect(t, h, "/introspection/jobs", 200), "status"); got != "failed" {
		t.Errorf("jobs: %v", got)
	}
}

func TestMalformedEscapeOfACatalogue(t *testing.T) {
	p := apitest.Working()
	p.Catalogues.Put(apitest.Biosamples())
	_, addr := apitest.Start(t, p, api.Config{})
	for _, target := range []string{"/introspection/%E0%A4%A", "/introspection/%", "/introspection/%zz", "/%E0%A4%A/graphql", "/biosamples/%E0%A4%A"} {
		t.Run(target, func(t *testing.T) {
			res, body := apitest.Wire(t, addr, "GET "+target+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
			apitest.WantProblem(t, res, body, 400, "invalid", "the request is malformed")
		})
	}
	t.Run("no UTF-8, which is well-formed as an escape", func(t *testing.T) {
		res, body := apitest.Wire(t, addr, "GET /introspection/%E0%A4 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		apitest.WantProblem(t, res, body, 400, "invalid", "catalogueId is not valid UTF-8")
	})
}

// TestGeneratedAtIsTheTimeOfTheAnswer in UTC with milliseconds, which a clock of another zone does not change.
func TestGeneratedAtIsTheTimeOfTheAnswer(t *testing.T) {
	now := apitest.Noon
	h, _ := apitest.Catalogued(t, api.Config{Now: func() time.Time { return now }}, apitest.Participants())
	for given, want := range map[time.Time]string{
		apitest.Noon: "2026-05-04T12:00:00.000Z",
		apitest.Noon.Add(time.Hour + 7*time.Millisecond + 999*time.Microsecond):          "2026-05-04T13:00:00.007Z",
		apitest.Noon.In(time.FixedZone("east", 2*3600)).Add(123456789 * time.Nanosecond): "2026-05-04T12:00:00.123Z",
	} {
		now = given
		if got := apitest.MemberOf(t, apitest.Introspect(t, h, "/introspection/participants", 200), "generatedAt"); got != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

// TestAuthFiltered: an access rule applies to everybody but the system.
func TestAuthFiltered(t *testing.T) {
	restricted, free := apitest.Participants(), apitest.Plain("free")
	restricted.Restricted = true
	p := apitest.Working()
	known, denied := apitest.Plain("known"), apitest.Plain("denied")
	known.DefaultAccess, denied.DefaultAccess = core.AccessAuthenticated, core.AccessDeny
	p.Catalogues.Put(restricted, free, known, denied)
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	asking, open := apitest.GuardedHandler(t, p, d, api.Config{}), apitest.NewHandler(t, p, api.Config{})
	for name, tt := range map[string]struct {
		h      apitest.Handler
		header []string
		id     string
		want   bool
	}{
		"no token":                  {asking, nil, "participants", true},
		"a token that is unknown":   {asking, []string{"Bearer nonsense"}, "participants", true},
		"no token at all":           {asking, []string{"Basic dXNlcjpwYXNz"}, "participants", true},
		"an expired token":          {asking, d.Headers[apitest.Expired]["jwt"], "participants", true},
		"a token too many":          {asking, slices.Concat(d.Header(apitest.SystemRight), d.Header(apitest.SystemRight)), "participants", true},
		"a reader":                  {asking, d.Header(apitest.ReadRight), "participants", true},
		"a writer":                  {asking, d.Header(apitest.WriteRight), "participants", true},
		"the system":                {asking, d.Header(apitest.SystemRight), "participants", false},
		"no token, no rule":         {asking, nil, "free", false},
		"the system, no rule":       {asking, d.Header(apitest.SystemRight), "free", false},
		"no one is asked":           {open, nil, "participants", true},
		"no one is asked, a token":  {open, d.Header(apitest.SystemRight), "participants", true},
		"no one is asked, no rule":  {open, nil, "free", false},
		"no one is asked, a reader": {open, d.Header(apitest.ReadRight), "participants", true},
		"anonymous, authenticated":  {asking, nil, "known", true},
		"a bad token":               {asking, []string{"Bearer nonsense"}, "known", true},
		"a reader, authenticated":   {asking, d.Header(apitest.ReadRight), "known", false},
		"anonymous, denied":         {asking, nil, "denied", true},
		"a reader, denied":          {asking, d.Header(apitest.ReadRight), "denied", true},
		"the system, denied":        {asking, d.Header(apitest.SystemRight), "denied", false},
		"without tokens, denied":    {open, nil, "denied", true},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := apitest.Do(t, tt.h, apitest.Ask{Method: "GET", Target: "/introspection/" + tt.id, Header: http.Header{"Authorization": tt.header}})
			if got := apitest.MemberOf(t, body, "meta", "authFiltered"); res.StatusCode != 200 || got != tt.want {
				t.Errorf("got %d, %v", res.StatusCode, got)
			}
			// It is known from a sample that has hidden documents too.
			if sampled := strings.Contains(string(body), `"multiValued":true`); tt.id == "participants" && sampled == tt.want {
				t.Errorf("multiValued is in the response: %t", sampled)
			}
		})
	}
	for id, want := range map[string]bool{"participants": false, "open": true} {
		sampled := apitest.Participants()
		sampled.ID = "open"
		p.Catalogues.Put(restricted, sampled)
		got := apitest.CallMCP(t, open, "get_catalogue_fields", `{"catalogueId":"`+id+`"}`).Get("structuredContent").Raw
		if strings.Contains(got, `"multiValued":true`) != want {
			t.Errorf("get_catalogue_fields of %s: %s", id, got)
		}
	}
}

// TestIntrospectionTags: a tag stands for all but the time, and for who sees what.
func TestIntrospectionTags(t *testing.T) {
	restricted := apitest.Participants()
	restricted.Restricted = true
	p := apitest.Working()
	p.Catalogues.Put(restricted)
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	now := apitest.Noon
	h := apitest.GuardedHandler(t, p, d, api.Config{Now: func() time.Time { return now }})
	tagOf := func(target string, who []string) string {
		t.Helper()
		res, _ := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target, Header: http.Header{"Authorization": who}})
		if res.StatusCode != 200 || res.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: got %d, cache control %q", target, res.StatusCode, res.Header.Get("Cache-Control"))
		}
		return res.Header.Get("ETag")
	}
	targets := []string{"/introspection", "/introspection/fields", "/introspection/sqon", "/introspection/participants"}
	before := map[string]string{}
	for _, target := range targets {
		before[target] = tagOf(target, nil)
		if !strings.HasPrefix(before[target], `W/"`) || len(before[target]) != 20 {
			t.Errorf("%s: tag %s", target, before[target])
		}
	}
	if before["/introspection/fields"] != before["/introspection/participants"] {
		t.Error("an alias has another tag")
	}
	now = now.Add(time.Hour)
	for _, target := range targets {
		if got := tagOf(target, nil); got != before[target] {
			t.Errorf("%s: the tag has changed with the time", target)
		}
		if got := tagOf(target, d.Header(apitest.ReadRight)); got != before[target] {
			t.Errorf("%s: the tag has changed with a caller who sees the same", target)
		}
		seesMore := tagOf(target, d.Header(apitest.SystemRight)) != before[target]
		if detail := target == "/introspection/fields" || target == "/introspection/participants"; seesMore != detail {
			t.Errorf("%s: the tag has changed with who sees more: %t", target, seesMore)
		}
	}
	changed := apitest.Participants()
	changed.Restricted, changed.Fields = true, changed.Fields[1:]
	p.Catalogues.Put(changed)
	if tagOf("/introspection/participants", nil) == before["/introspection/participants"] {
		t.Error("the tag is that of before the change of the fields")
	}
	if tagOf("/introspection", nil) != before["/introspection"] {
		t.Error("the tag of the summary has changed, and the summary has not")
	}
	changed = apitest.Participants()
	changed.Problem, changed.Fields = apitest.Biosamples().Problem, nil
	p.Catalogues.Put(changed)
	if tagOf("/introspection", nil) == before["/introspection"] {
		t.Error("the tag of the summary is that of before the failure")
	}
	failed := tagOf("/introspection/participants", nil)
	if failed == before["/introspection/participants"] || tagOf("/introspection/participants", d.Header(apitest.SystemRight)) != failed {
		t.Error("the tag of a failed catalogue")
	}
}

func TestIntrospectionIsNotSentTwice(t *testing.T) {
	for _, c := range []*core.Catalogue{apitest.Participants(), apitest.Biosamples()} {
		h, _ := apitest.Catalogued(t, api.Config{}, c)
		for _, target := range []string{"/introspection", "/introspection/fields", "/introspection/sqon", "/introspection/" + c.ID} {
			res, _ := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target})
			tag := res.Header.Get("ETag")
			for _, tt := range []struct {
				given  []string
				status int
			}{
				{nil, 200},
				{[]string{tag}, 304},
				{[]string{"*"}, 304},
				{[]string{strings.TrimPrefix(tag, "W/")}, 304},
				{[]string{`"x", ` + tag + `, W/"y"`}, 304},
				{[]string{`"x"`, tag}, 304},
				{[]string{"  " + tag + "  "}, 304},
				{[]string{`"x"`}, 200},
				{[]string{""}, 200},
				{[]string{strings.Trim(tag, `W/"`)}, 200},
				{[]string{strings.ToLower(tag[:2]) + tag[2:]}, 200},
			} {
				for _, method := range []string{"GET", "HEAD"} {
					_, again, body := apitest.Exchange(t, h, apitest.Ask{Method: method, Target: target, Header: http.Header{"If-None-Match": tt.given}})
					if again.StatusCode != tt.status || again.Header.Get("ETag") != tag || again.Header.Get("Cache-Control") != "no-cache" {
						t.Errorf("%s %s, %q: got %d, %v", method, target, tt.given, again.StatusCode, again.Header)
					}
					if tt.status == 304 && (len(body) > 0 || again.Header.Get("Content-Type") != "" || again.Header.Get("Content-Length") != "") {
						t.Errorf("%s %s, %q: 304 with %d bytes, %v", method, target, tt.given, len(body), again.Header)
					}
				}
			}
		}
	}
}

// TestDetailVariesByCaller, beside what CORS adds, with 304 too; the rest is the same for all.
func TestDetailVariesByCaller(t *testing.T) {
	h, _ := apitest.Catalogued(t, api.Config{CORSOrigins: []string{apitest.Portal}}, apitest.Participants())
	for target, want := range map[string][]string{
		"/introspection": {"Origin"}, "/introspection/sqon": {"Origin"},
		"/introspection/fields": {"Origin", "Authorization"}, "/introspection/participants": {"Origin", "Authorization"},
	} {
		for _, known := range []string{"", "*"} {
			header := http.Header{"Origin": {apitest.Portal}, "If-None-Match": {known}}
			res, _ := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target, Header: header})
			if got := res.Header.Values("Vary"); !slices.Equal(got, want) || res.Header.Get("Access-Control-Allow-Origin") != apitest.Portal {
				t.Errorf("%s %q: vary %q, %v", target, known, got, res.Header)
			}
		}
	}
}

// TestIntrospectionNamesGraphQL: a field has its names in GraphQL where they do not follow from its own.
func TestIntrospectionNamesGraphQL(t *testing.T) {
	c := apitest.Plain("odd")
	c.Fields = []core.CatalogueField{
		{Name: "age-at", DisplayName: "Age", Type: "long", GraphQL: &core.GraphQLNames{Field: "age_at", Aggregation: "age_at_2"}},
		{Name: "sex", DisplayName: "Sex", Type: "keyword"},
	}
	h, _ := apitest.Catalogued(t, api.Config{}, c, apitest.Plain("other"))
	detail := apitest.Introspect(t, h, "/introspection/odd", 200)
	want := map[string]any{"field": "age_at", "aggregation": "age_at_2"}
	if diff := cmp.Diff(want, apitest.MemberOf(t, detail, "fields", "age-at", "graphql")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Count(string(detail), `"graphql"`) != 1 {
		t.Errorf("a field whose names follow from its own has some: %s", detail)
	}
}

// TestHeadOfIntrospection over a connection: the headers of GET, and nothing behind them.
func TestHeadOfIntrospection(t *testing.T) {
	p := apitest.Working()
	p.Catalogues.Put(apitest.Wide("wide", 500))
	_, addr := apitest.Start(t, p, api.Config{})
	for _, target := range []string{"/introspection", "/introspection/fields", "/introspection/sqon", "/introspection/wide", "/introspection/none"} {
		get, body := apitest.Wire(t, addr, "GET "+target+" HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: r\r\nConnection: close\r\n\r\n")
		head, none := apitest.Wire(t, addr, "HEAD "+target+" HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: r\r\nConnection: close\r\n\r\n")
		if head.StatusCode != get.StatusCode || len(none) > 0 || int(head.ContentLength) != len(body) {
			t.Errorf("%s: got %d with %d of %d bytes, GET %d", target, head.StatusCode, len(none), head.ContentLength, get.StatusCode)
		}
		get.Header.Del("Date")
		head.Header.Del("Date")
		if diff := cmp.Diff(get.Header, head.Header); diff != "" {
			t.Errorf("%s: %s", target, diff)
		}
	}
}

// TestWideCatalogueIsWhole: what goes out in several pieces arrives as one JSON value with every field in its order.
func TestWideCatalogueIsWhole(t *testing.T) {
	c := apitest.Wide("wide", 1500)
	p := apitest.Working()
	p.Catalogues.Put(c)
	_, addr := apitest.Start(t, p, api.Config{})
	res, body := apitest.Wire(t, addr, "GET /introspection/wide HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	var got struct {
		Fields    map[string]struct{ DisplayName, Type string }
		Operators map[string][]string
	}
	if err := json.Unmarshal(body, &got); err != nil || int(res.ContentLength) != len(body) {
		t.Fatalf("%d of %d bytes: %v", len(body), res.ContentLength, err)
	}
	at := 0
	for _, f := range c.Fields {
		if is := got.Fields[f.Name]; is.DisplayName != f.DisplayName || is.Type != f.Type || len(got.Operators[f.Type]) == 0 {
			t.Errorf("%s: %+v", f.Name, is)
		}
		next := strings.Index(string(body), `"`+f.Name+`":`)
		if next < at {
			t.Errorf("%s is not in its order", f.Name)
		}
		at = next
	}
	if len(got.Fields) != len(c.Fields) || len(got.Operators) != 5 {
		t.Errorf("%d fields, operators of %d types", len(got.Fields), len(got.Operators))
	}
}
