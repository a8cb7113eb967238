package http_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/internal/core"
)

// TestAdviceOnRequests: a refused request has the hint, and one that follows it is accepted.
func TestAdviceOnRequests(t *testing.T) {
	d := newTokenIssuer(t, &memoryKeyStore{})
	open := newHandler(t, ofS1(), api.Config{})
	closed := func(access core.DefaultAccess) handler {
		p, c := ofS1(), participants()
		c.DefaultAccess = access
		p.catalogues.put(c)
		return guardedHandler(t, p, d, api.Config{})
	}
	named := func(hosts ...string) handler {
		return newHandler(t, ofS1(), api.Config{CheckHost: true, Hosts: hosts})
	}
	post := func(target, body string, header http.Header) ask {
		return ask{method: "POST", target: target, body: body, header: header}
	}
	as := func(who string) http.Header {
		return http.Header{"Authorization": d.header(who), "Content-Type": {"application/json"}}
	}
	const noBody, declare = "send no body, or {}", "send Content-Type: application/json, and no Content-Encoding"
	const query = `{"query":"{__typename}"}`
	const byDefault = "the catalogue has no access.json, so auth.defaultAccess decides who reads it: "
	none := http.Header{"Authorization": {"Bearer " + signed(t, d.key, nil, 1e12)}}
	for name, tt := range map[string]struct {
		h        handler
		wrong    ask
		status   int
		hint     string
		followed []ask
		by       handler
	}{
		"broken JSON": {open, post(repositoryPath, "{", nil), 400, noBody, []ask{post(repositoryPath, "", nil), post(repositoryPath, "{}", nil)}, open},
		"a list":      {open, post(repositoryPath, "[]", nil), 400, noBody, []ask{post(repositoryPath, "{}", nil)}, open},
		"text":        {open, post(repositoryPath, "{}", contentType("text/plain")), 415, declare, []ask{post(repositoryPath, "{}", contentType("application/json"))}, open},
		"packed": {
			open, post(repositoryPath, "{}", http.Header{"Content-Encoding": {"gzip"}}), 415, declare,
			[]ask{post(repositoryPath, "{}", contentType("application/json"))},
			open,
		},
		"no event": {
			open, post("/notifications/song.ca", " ", nil), 400, "send one event as a JSON object, or an array of them",
			[]ask{post("/notifications/song.ca", "{}", nil), post("/notifications/song.ca", "[{},{}]", nil)},
			open,
		},
		"no ids": {
			open, post(organizationPath+"/ids", "\n", contentType(textType)), 400, "send one id a line",
			[]ask{post(organizationPath+"/ids", "a\nb", contentType(textType))},
			open,
		},
		"a wrong line": {
			open, post(repositoryPath+"/ids", "a", contentType(textType)), 400, "nothing was requested; a line is an organization, a tab and an id",
			[]ask{post(repositoryPath+"/ids", "A\ta", contentType(textType))},
			open,
		},
		"force of a record": {
			open, post(recordPath+"?force=true", "", nil), 400, "force lifts the prune guard of an organization's or a repository's run",
			[]ask{post(organizationPath+"?force=true", "", nil), post(repositoryPath+"?force=true", "", nil)},
			open,
		},
		"another host": {
			named(),
			ask{method: "GET", target: "/jobs", host: "tutti.lan"},
			421, "use a loopback address, or add the name to server.hosts",
			[]ask{{method: "GET", target: "/jobs", host: "127.0.0.1"}, {method: "GET", target: "/jobs", host: "tutti.lan"}},
			named("tutti.lan"),
		},
		"a proxy that changes the host": {
			open,
			ask{method: "POST", target: repositoryPath, host: "10.0.0.1:8080", header: http.Header{"Origin": {portal}}},
			403,
			"if it is this server's own, let the proxy in front of it keep the browser's Host header",
			[]ask{{method: "POST", target: repositoryPath, host: strings.TrimPrefix(portal, "https://"), header: http.Header{"Origin": {portal}}}},
			open,
		},
		"another's job": {
			closed(core.AccessPublic), ask{method: "GET", target: "/jobs/x1", header: as(foreignRight)}, 404, "jobs are deleted after a while", nil, open,
		},
		"another's dead letter": {
			closed(core.AccessPublic), ask{method: "GET", target: "/dead-letters/x1", header: as(foreignRight)}, 404, "it is deleted when its record succeeds", nil, open,
		},
		"no scope": {
			closed(core.AccessPublic), post(organizationPath, "", none), 403, "use a token with this scope, or with tutti.WRITE; this one has none",
			[]ask{post(organizationPath, "", as(systemRight))},
			closed(core.AccessPublic),
		},
		"a closed catalogue": {
			closed(core.AccessDeny), post("/participants/graphql", query, as(writeRight)), 403, "use a token with this scope; " + byDefault + "deny",
			[]ask{post("/participants/graphql", query, as(systemRight))},
			closed(core.AccessDeny),
		},
		"an open catalogue": {
			closed(core.AccessDeny), post("/participants/graphql", query, as(writeRight)), 403, byDefault + "deny",
			[]ask{post("/participants/graphql", query, as(writeRight))},
			closed(core.AccessPublic),
		},
		"a member of entities": {
			open, ask{method: "GET", target: "/entities?fields=x"}, 400, "fields takes id,", []ask{{method: "GET", target: "/entities?fields=id"}}, open,
		},
		"a batch of messages": {
			open, post("/mcp", "["+listTools+"]", contentType("application/json")), 400, "send each message in its own request",
			[]ask{post("/mcp", listTools, contentType("application/json"))},
			open,
		},
		"no message": {
			open, post("/mcp", "{", contentType("application/json")), 400, "connect a client of the Model Context Protocol, with streamable HTTP",
			[]ask{post("/mcp", listTools, contentType("application/json"))},
			open,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, res, body := exchange(t, tt.h, tt.wrong)
			if hint := gjson.GetBytes(body, "hint").String(); res.StatusCode != tt.status || !strings.Contains(hint, tt.hint) {
				t.Errorf("got %d %s, want %d and the hint %q", res.StatusCode, body, tt.status, tt.hint)
			}
			for _, a := range tt.followed {
				if _, res, body := exchange(t, tt.by, a); res.StatusCode >= 300 {
					t.Errorf("%s %s %q follows the hint: %d %s", a.method, a.target, a.body, res.StatusCode, body)
				}
			}
		})
	}
}

// TestAdviceOfMCP: what a tool advises when it fails succeeds.
func TestAdviceOfMCP(t *testing.T) {
	p, c := working(), participants()
	c.Fields = append(c.Fields, core.CatalogueField{Name: "place", DisplayName: "Place", Type: "geo_point"}, core.CatalogueField{Name: "notes", DisplayName: "Notes", Type: "text"})
	p.catalogues.put(c)
	h := newHandler(t, p, api.Config{})
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
			of + `"sqon":` + callMCP(t, h, "build_sqon", of+`"clauses":[{"op":"in","fieldName":"participant_id","value":"P"}]}`).Get("structuredContent.sqon").Raw + `}`,
		},
		"a number": {"get_catalogue_fields", `{"catalogueId":7}`, "see the tool's input schema", of + `"values":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			result := callMCP(t, h, tt.tool, tt.wrong)
			if text := result.Get("content.0.text").String(); !result.Get("isError").Bool() || !strings.HasSuffix(text, "; "+tt.hint) {
				t.Errorf("got %s, want the hint %q", result.Raw, tt.hint)
			}
			if result := callMCP(t, h, tt.tool, tt.followed); result.Get("isError").Bool() {
				t.Errorf("%s follows the hint: %s", tt.followed, result.Raw)
			}
		})
	}
	// The schema of the tool has what the hint says it has.
	_, body := sendMCP(t, h, listTools)
	if kind := gjson.GetBytes(body, `result.tools.#(name=="get_catalogue_fields").inputSchema.properties.catalogueId.type`).String(); kind != "string" {
		t.Errorf("the input schema says %s", strconv.Quote(kind))
	}
}
