package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// TestAdviceOnRequests: a refused request has the hint, and one that follows it is accepted.
func TestAdviceOnRequests(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	open := apitest.NewHandler(t, apitest.OfS1(), api.Config{})
	closed := func(access core.DefaultAccess) apitest.Handler {
		p, c := apitest.OfS1(), apitest.Participants()
		c.DefaultAccess = access
		p.Catalogues.Put(c)
		return apitest.GuardedHandler(t, p, d, api.Config{})
	}
	named := func(hosts ...string) apitest.Handler {
		return apitest.NewHandler(t, apitest.OfS1(), api.Config{CheckHost: true, Hosts: hosts})
	}
	post := func(target, body string, header http.Header) apitest.Ask {
		return apitest.Ask{Method: "POST", Target: target, Body: body, Header: header}
	}
	as := func(who string) http.Header {
		return http.Header{"Authorization": d.Header(who), "Content-Type": {"application/json"}}
	}
	const noBody, declare = "send no body, or {}", "send Content-Type: application/json, and no Content-Encoding"
	const query = `{"query":"{__typename}"}`
	const byDefault = "the catalogue has no access.json, so auth.defaultAccess decides who reads it: "
	none := http.Header{"Authorization": {"Bearer " + apitest.Signed(t, d.Key, nil, 1e12)}}
	for name, tt := range map[string]struct {
		h        apitest.Handler
		wrong    apitest.Ask
		status   int
		hint     string
		followed []apitest.Ask
		by       apitest.Handler
	}{
		"broken JSON": {open, post(apitest.RepositoryPath, "{", nil), 400, noBody, []apitest.Ask{post(apitest.RepositoryPath, "", nil), post(apitest.RepositoryPath, "{}", nil)}, open},
		"a list":      {open, post(apitest.RepositoryPath, "[]", nil), 400, noBody, []apitest.Ask{post(apitest.RepositoryPath, "{}", nil)}, open},
		"text":        {open, post(apitest.RepositoryPath, "{}", apitest.ContentType("text/plain")), 415, declare, []apitest.Ask{post(apitest.RepositoryPath, "{}", apitest.ContentType("application/json"))}, open},
		"packed": {
			open, post(apitest.RepositoryPath, "{}", http.Header{"Content-Encoding": {"gzip"}}), 415, declare,
			[]apitest.Ask{post(apitest.RepositoryPath, "{}", apitest.ContentType("application/json"))},
			open,
		},
		"no event": {
			open, post("/notifications/song.ca", " ", nil), 400, "send one event as a JSON object, or an array of them",
			[]apitest.Ask{post("/notifications/song.ca", "{}", nil), post("/notifications/song.ca", "[{},{}]", nil)},
			open,
		},
		"no ids": {
			open, post(apitest.OrganizationPath+"/ids", "\n", apitest.ContentType(apitest.TextType)), 400, "send one id a line",
			[]apitest.Ask{post(apitest.OrganizationPath+"/ids", "a\nb", apitest.ContentType(apitest.TextType))},
			open,
		},
		"a wrong line": {
			open, post(apitest.RepositoryPath+"/ids", "a", apitest.ContentType(apitest.TextType)), 400, "nothing was requested; a line is an organization, a tab and an id",
			[]apitest.Ask{post(apitest.RepositoryPath+"/ids", "A\ta", apitest.ContentType(apitest.TextType))},
			open,
		},
		"force of a record": {
			open, post(apitest.RecordPath+"?force=true", "", nil), 400, "force lifts the prune guard of an organization's or a repository's run",
			[]apitest.Ask{post(apitest.OrganizationPath+"?force=true", "", nil), post(apitest.RepositoryPath+"?force=true", "", nil)},
			open,
		},
		"another host": {
			named(),
			apitest.Ask{Method: "GET", Target: "/jobs", Host: "tutti.lan"},
			421, "use a loopback address, or add the name to server.hosts",
			[]apitest.Ask{{Method: "GET", Target: "/jobs", Host: "127.0.0.1"}, {Method: "GET", Target: "/jobs", Host: "tutti.lan"}},
			named("tutti.lan"),
		},
		"a proxy that changes the host": {
			open,
			apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Host: "10.0.0.1:8080", Header: http.Header{"Origin": {apitest.Portal}}},
			403,
			"if it is this server's own, let the proxy in front of it keep the browser's Host header",
			[]apitest.Ask{{Method: "POST", Target: apitest.RepositoryPath, Host: strings.TrimPrefix(apitest.Portal, "https://"), Header: http.Header{"Origin": {apitest.Portal}}}},
			open,
		},
		"another's job": {
			closed(core.AccessPublic), apitest.Ask{Method: "GET", Target: "/jobs/x1", Header: as(apitest.ForeignRight)}, 404, "jobs are deleted after a while", nil, open,
		},
		"another's dead letter": {
			closed(core.AccessPublic), apitest.Ask{Method: "GET", Target: "/dead-letters/x1", Header: as(apitest.ForeignRight)}, 404, "it is deleted when its record succeeds", nil, open,
		},
		"no scope": {
			closed(core.AccessPublic), post(apitest.OrganizationPath, "", none), 403, "use a token with this scope, or with tutti.WRITE; this one has none",
			[]apitest.Ask{post(apitest.OrganizationPath, "", as(apitest.SystemRight))},
			closed(core.AccessPublic),
		},
		"a closed catalogue": {
			closed(core.AccessDeny), post("/participants/graphql", query, as(apitest.WriteRight)), 403, "use a token with this scope; " + byDefault + "deny",
			[]apitest.Ask{post("/participants/graphql", query, as(apitest.SystemRight))},
			closed(core.AccessDeny),
		},
		"an open catalogue": {
			closed(core.AccessDeny), post("/participants/graphql", query, as(apitest.WriteRight)), 403, byDefault + "deny",
			[]apitest.Ask{post("/participants/graphql", query, as(apitest.WriteRight))},
			closed(core.AccessPublic),
		},
		"a member of entities": {
			open, apitest.Ask{Method: "GET", Target: "/entities?fields=x"}, 400, "fields takes id,", []apitest.Ask{{Method: "GET", Target: "/entities?fields=id"}}, open,
		},
		"a batch of messages": {
			open, post("/mcp", "["+apitest.ListTools+"]", apitest.ContentType("application/json")), 400, "send each message in its own request",
			[]apitest.Ask{post("/mcp", apitest.ListTools, apitest.ContentType("application/json"))},
			open,
		},
		"no message": {
			open, post("/mcp", "{", apitest.ContentType("application/json")), 400, "connect a client of the Model Context Protocol, with streamable HTTP",
			[]apitest.Ask{post("/mcp", apitest.ListTools, apitest.ContentType("application/json"))},
			open,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, res, body := apitest.Exchange(t, tt.h, tt.wrong)
			if hint := gjson.GetBytes(body, "hint").String(); res.StatusCode != tt.status || !strings.Contains(hint, tt.hint) {
				t.Errorf("got %d %s, want %d and the hint %q", res.StatusCode, body, tt.status, tt.hint)
			}
			for _, a := range tt.followed {
				if _, res, body := apitest.Exchange(t, tt.by, a); res.StatusCode >= 300 {
					t.Errorf("%s %s %q follows the hint: %d %s", a.Method, a.Target, a.Body, res.StatusCode, body)
				}
			}
		})
	}
}

// TestAdviceOfMCP: what a tool advises when it fails succeeds.
func TestAdviceOfMCP(t *testing.T) {
	p, c := apitest.Working(), apitest.Participants()
	c.Fields = append(c.Fields, core.CatalogueField{Name: "place", DisplayName: "Place", Type: "geo_point"}, core.CatalogueField{Name: "notes", DisplayName: "Notes", Type: "text"})
	p.Catalogues.Put(c)
	h := apitest.NewHandler(t, p, api.Config{})
	clause := `{"op":"in","fieldName":"participant_id","value":"P"},`
	clauses := strings.TrimSuffix(strings.Repeat(clause, 201), ",")
	values := strings.TrimSuffix(strings.Repeat(`"P",`, 201), ",")
	const of = `{"catalogueId":"participants",`
	for name, tt := range map[string]struct{ tool, wrong, hint, followed string }{
		"too many clauses": {
			"build_sqon", of + `"clauses":[` + clauses + `]}`, "a clause with the operator in takes many values",
			of + `"clauses":[{"op":"in","fieldName":"participant_id","value":[` + values + `]}]}`,
		},
		"a field without facet": {"execute_query", of + `"facets":["notes"]}`, "use a keyword field", of + `"facets":["participant_id"]}`},
		"a place":               {"execute_query", of + `"fields":["place"]}`, "name another field", of + `"fields":["notes"]}`},
		"an object":             {"execute_query", of + `"fields":["samples"]}`, "name the fields inside an object or a nested field", of + `"fields":["samples.type"]}`},
		"a wrong filter": {
			"execute_query", of + `"sqon":{"op":"inn"}}`, "build it with build_sqon",
			of + `"sqon":` + apitest.CallMCP(t, h, "build_sqon", of+`"clauses":[{"op":"in","fieldName":"participant_id","value":"P"}]}`).Get("structuredContent.sqon").Raw + `}`,
		},
		"a number": {"get_catalogue_fields", `{"catalogueId":7}`, "see the tool's input schema", of + `"values":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			result := apitest.CallMCP(t, h, tt.tool, tt.wrong)
			if text := result.Get("content.0.text").String(); !result.Get("isError").Bool() || !strings.HasSuffix(text, "; "+tt.hint) {
				t.Errorf("got %s, want the hint %q", result.Raw, tt.hint)
			}
			if result := apitest.CallMCP(t, h, tt.tool, tt.followed); result.Get("isError").Bool() {
				t.Errorf("%s follows the hint: %s", tt.followed, result.Raw)
			}
		})
	}
	// The schema of the tool has what the hint says it has.
	_, body := apitest.SendMCP(t, h, apitest.ListTools)
	if kind := gjson.GetBytes(body, `result.tools.#(name=="get_catalogue_fields").inputSchema.properties.catalogueId.type`).String(); kind != "string" {
		t.Errorf("the input schema says %s", strconv.Quote(kind))
	}
}
