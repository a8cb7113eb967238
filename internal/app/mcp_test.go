package app_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"tutti/http/mcp"
)

// bearerTransport sends a token with every request.
type bearerTransport struct{ token string }

func (b bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connectMCP connects the SDK's client.
func connectMCP(t *testing.T, url, token string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: url + mcp.Path, HTTPClient: &http.Client{Transport: bearerTransport{token}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// callTool returns the text of a tool's result, and whether it is an error.
func callTool(t *testing.T, s *sdk.ClientSession, name, arguments string) (string, bool) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return result.Content[0].(*sdk.TextContent).Text, result.IsError
}

// TestMCPSeesOnlyWhatTheTokenSees: hits, facets and totals of execute_query are those of the caller's token.
func TestMCPSeesOnlyWhatTheTokenSees(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBuiltIn(t, plan{more: tokens + catalogueDir(dir)})
	folder{
		"guarded/base.json":   based("guarded", aliasWord, ""),
		"guarded/access.json": `{"field":"studyId","scope":"{value}.READ","public":null}`,
	}.write(b.world, dir)
	_, system := b.firstKey("tutti.WRITE")
	b.start()
	b.token = system
	b.prepareStudies("S1", "S2")
	_, reader := b.key(`["S1.READ"]`)
	_, writer := b.key(`["S1.WRITE"]`)
	b.publish("S1", b.submit("S1"))
	b.publish("S2", b.submit("S2"))
	b.publish("S2", b.submit("S2"))
	b.awaitConverged()
	b.awaitAvailable("guarded")
	b.awaitField("guarded", "studyId", "keyword")
	if err := b.app.Index().Refresh(t.Context(), b.alias); err != nil {
		t.Fatal(err)
	}
	const query = `{"catalogueId":"guarded","fields":["studyId"],"facets":["studyId"]}`
	for _, c := range []struct {
		who, token string
		want       []string
	}{
		{"the system", system, []string{"S1", "S2", "S2"}}, {"who reads S1", reader, []string{"S1"}}, {"nobody", "", nil}, {"who writes S1", writer, nil},
	} {
		t.Run(c.who, func(t *testing.T) {
			text, failed := callTool(t, connectMCP(t, b.app.URL(), c.token), "execute_query", query)
			var got []string
			for _, hit := range gjson.Get(text, "hits").Array() {
				got = append(got, hit.Get("studyId").String())
			}
			slices.Sort(got)
			counted := int64(0)
			for _, value := range gjson.Get(text, "facets.studyId.values").Array() {
				counted += value.Get("count").Int()
			}
			if want := int64(len(c.want)); failed || !slices.Equal(got, c.want) || gjson.Get(text, "total").Int() != want || counted != want {
				t.Errorf("got %s, want the studies %v", text, c.want)
			}
		})
	}

	for who, token := range map[string]string{"nobody": "", "who reads S1": reader} {
		text, failed := callTool(t, connectMCP(t, b.app.URL(), token), "index_status", `{}`)
		if failed != (token == "") || strings.Contains(text, "a token is required") != failed || strings.Contains(text, `"repositories"`) == failed {
			t.Errorf("index_status of %s: isError %t: %s", who, failed, text)
		}
	}

	// The SDK's client lists everything, and no call of it, failed or not, shows what the reader may not see.
	s := connectMCP(t, b.app.URL(), reader)
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 6 {
		t.Errorf("tools: %v, %v", tools, err)
	}
	resources, err := s.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) != 3 {
		t.Errorf("resources: %v, %v", resources, err)
	}
	fields, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "tutti://introspection/catalogues/guarded"})
	if err != nil || !strings.Contains(fields.Contents[0].Text, `"fieldName":"studyId"`) {
		t.Errorf("fields: %v, %v", fields, err)
	}
	for _, c := range []struct {
		tool, arguments string
		failed          bool
		want            string
	}{
		{"list_catalogues", `{}`, false, `"catalogueId":"guarded"`},
		{"get_catalogue_fields", `{"catalogueId":"guarded"}`, false, `"studyId"`},
		{"get_catalogue_fields", `{"catalogueId":"guarded","contains":"studyId","values":5}`, false, `"values":[{"value":"S1","count":1}]`},
		{"get_sqon_schema", `{}`, false, `"op"`},
		{"index_status", `{}`, false, `"repositories"`},
		{"build_sqon", `{"catalogueId":"guarded","clauses":[{"op":"in","fieldName":"studyId","value":["S"]}]}`, false, `studyId is \"S\"`},
		{"build_sqon", `{"catalogueId":"guarded","clauses":[{"op":"gt","fieldName":"studyId","value":"S"}]}`, true, "clauses/0/op: "},
		{"execute_query", `{"catalogueId":"guarded","fields":["studiId"]}`, true, `did you mean "studyId"`},
		{"execute_query", `{"catalogueId":"guarded","fields":["studyId"],"sqon":{"op":"filter","content":{"fieldNames":["studyId"],"value":"S*"}}}`, false, `"total":1,`},
		{"execute_query", `{"catalogueId":"guarded","sqon":{"op":"not-in","content":{"fieldName":"studyId","value":"S1"}},"facets":["studyId","updatedAt"],"first":0}`, false, `"total":0,`},
		{"execute_query", `{"catalogueId":"guarded","sort":[{"fieldName":"files"}]}`, true, "files"},
		{"execute_query", `{"catalogueId":"guarded","sort":[{"fieldName":"studyId","order":"desc"}],"first":1}`, false, `"total":1,`},
	} {
		text, failed := callTool(t, s, c.tool, c.arguments)
		if failed != c.failed || !strings.Contains(text, c.want) || strings.Contains(text, "S2") {
			t.Errorf("%s %s: isError %t: %s", c.tool, c.arguments, failed, text)
		}
	}
}

// TestMCPAuthorization: a client learns which tokens the endpoint accepts, and that none are checked.
func TestMCPAuthorization(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		more, resource, issuer string
		environ                []string
	}{
		"off":      {},
		"API keys": {more: tokens, resource: "{url}/mcp"},
		"an issuer": {
			more:     "auth: {mode: token, jwt: {issuer: \"https://login.example.org/realms/a\", audience: tutti, jwksUrl: \"https://login.example.org/keys\"}}\n",
			environ:  []string{"TUTTI_SERVER_PUBLIC_URL=https://tutti.example.org/base"},
			resource: "https://tutti.example.org/base/mcp", issuer: `["https://login.example.org/realms/a"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuiltIn(t, plan{more: test.more, set: settings{environ: test.environ}})
			b.start()
			for _, path := range []string{"", mcp.Path} {
				a, err := b.request(http.MethodGet, "/.well-known/oauth-protected-resource"+path)
				if err != nil {
					t.Fatal(err)
				}
				if test.resource == "" {
					if a.status != http.StatusNotFound {
						t.Errorf("%d %s", a.status, a.raw)
					}
					continue
				}
				want := strings.ReplaceAll(test.resource, "{url}", b.url)
				if a.status != http.StatusOK || a.get("resource").String() != want || a.get("authorization_servers").Raw != test.issuer {
					t.Errorf("%d %s, want %s, %s", a.status, a.raw, want, test.issuer)
				}
			}
		})
	}
}
