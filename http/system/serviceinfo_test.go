package system_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/http/system"
	"tutti/internal/tools/apitest"
)

// TestServiceInfo: it has what GA4GH's Service Info requires, configured or from the URL at which the server is asked.
func TestServiceInfo(t *testing.T) {
	for name, test := range map[string]struct {
		service system.Service
		cfg     api.Config
		host    string
		want    string
	}{
		"nothing configured": {
			system.Service{},
			api.Config{BasePath: "/a"},
			"tutti.example.org:8080",
			`{"id":"org.example.tutti","name":"tutti","type":{"group":"tutti","artifact":"tutti","version":"1.0"},` +
				`"organization":{"name":"tutti.example.org","url":"http://tutti.example.org:8080/a"},` +
				`"documentationUrl":"http://tutti.example.org:8080/a/api-docs","version":"unknown"}`,
		},
		"the address of a host": {
			system.Service{},
			api.Config{},
			"10.0.0.1:8080",
			`{"id":"10.0.0.1","name":"tutti","type":{"group":"tutti","artifact":"tutti","version":"1.0"},` +
				`"organization":{"name":"10.0.0.1","url":"http://10.0.0.1:8080"},` +
				`"documentationUrl":"http://10.0.0.1:8080/api-docs","version":"unknown"}`,
		},
		"the public URL": {
			system.Service{URL: "https://data.example.org/tutti/", Version: "1.2.3"},
			api.Config{},
			"10.0.0.1:8080",
			`{"id":"org.example.data","name":"tutti","type":{"group":"tutti","artifact":"tutti","version":"1.0"},` +
				`"organization":{"name":"data.example.org","url":"https://data.example.org/tutti"},` +
				`"documentationUrl":"https://data.example.org/tutti/api-docs","version":"1.2.3"}`,
		},
		"all configured": {
			system.Service{
				ID: "i", Name: "n", Description: "d", Environment: "e", ContactURL: "mailto:a@b", OrganizationName: "o", OrganizationURL: "https://o",
				Version: "1", URL: "https://u",
			},
			api.Config{},
			"h",
			`{"id":"i","name":"n","type":{"group":"tutti","artifact":"tutti","version":"1.0"},"description":"d","organization":{"name":"o","url":"https://o"},` +
				`"contactUrl":"mailto:a@b","documentationUrl":"https://u/api-docs","environment":"e","version":"1"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			p.Service = test.service
			h := apitest.NewHandler(t, p, test.cfg)
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: test.cfg.BasePath + "/service-info", Host: test.host})
			if diff := cmp.Diff(test.want, string(body)); res.StatusCode != 200 || diff != "" {
				t.Errorf("got %d: %s", res.StatusCode, diff)
			}
		})
	}
}

// TestServiceInfoCatalogue: a catalogue that was called service-info before there was a route of this name keeps its id and its paths.
func TestServiceInfoCatalogue(t *testing.T) {
	named, failed := apitest.Participants(), apitest.Biosamples()
	named.ID, failed.ID = "service-info", "service-info"
	h, _ := apitest.Catalogued(t, api.Config{}, named, apitest.Biosamples())
	for _, target := range []string{"/introspection/service-info", "/service-info/introspection"} {
		var body struct {
			CatalogueID string `json:"catalogId"`
		}
		if err := json.Unmarshal(apitest.Introspect(t, h, target, 200), &body); err != nil || body.CatalogueID != "service-info" {
			t.Errorf("%s: %q, %v", target, body.CatalogueID, err)
		}
	}
	res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/service-info/graphql", Body: `{"query":"{__typename}"}`, Header: http.Header{"Content-Type": {"application/json"}}})
	if res.StatusCode != 200 {
		t.Errorf("its GraphQL: %d %s", res.StatusCode, body)
	}
	if body := apitest.Introspect(t, h, "/service-info", 200); !strings.Contains(string(body), `"organization"`) {
		t.Errorf("the route: %s", body)
	}
	h, _ = apitest.Catalogued(t, api.Config{}, failed, apitest.Participants())
	apitest.WantFailure(t, h, apitest.Ask{Method: "POST", Target: "/service-info/graphql"}, strings.ReplaceAll(apitest.BiosamplesFailure, "biosamples", "service-info"))
}
