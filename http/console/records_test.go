package console_test

import (
	"net/http"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/report/recordtrace"
)

// TestRecordByID: an id alone leads to the trace of its record; several are listed, and a caller sees only those of its organizations.
func TestRecordByID(t *testing.T) {
	at := func(repository, organization string) recordtrace.Location {
		return recordtrace.Location{Repository: repository, Organization: organization, ID: "r1"}
	}
	const trace = "/console/records?id=r1&organization=S1&repository=song.ca"
	for name, tt := range map[string]struct {
		found       []recordtrace.Location
		failed      []string
		token, more string
		to          string
		has         []string
		lacks       string
	}{
		"in one":                          {found: []recordtrace.Location{at("song.ca", "S1")}, token: "system", to: trace},
		"in several":                      {found: []recordtrace.Location{at("song.ca", "S1"), at("song.ca", "S2")}, token: "system", has: []string{"2 records have this id", "?repository=song.ca&amp;organization=S2&amp;id=r1"}},
		"in none":                         {token: "system", has: []string{"No record with this id", `name="organization"`, "<details open>"}},
		"of one organization":             {found: []recordtrace.Location{at("song.ca", "S1"), at("song.ca", "S2")}, token: "s1", to: trace},
		"of another one":                  {found: []recordtrace.Location{at("song.ca", "S2")}, token: "s1", has: []string{"No record with this id"}, lacks: "S2"},
		"without a scope":                 {found: []recordtrace.Location{at("song.ca", "S1")}, token: "none", has: []string{"No record with this id"}, lacks: "S1"},
		"in a chosen one":                 {found: []recordtrace.Location{at("good", "S1"), at("song.ca", "S1")}, token: "system", more: "&repository=song.ca", to: trace},
		"in a chosen study":               {found: []recordtrace.Location{at("song.ca", "S1"), at("song.ca", "S2")}, token: "system", more: "&organization=S1", to: trace},
		"not in the chosen one":           {found: []recordtrace.Location{at("song.ca", "S1")}, token: "system", more: "&repository=good", has: []string{"of what you chose"}},
		"in one, not everywhere":          {found: []recordtrace.Location{at("song.ca", "S1")}, failed: []string{"good"}, token: "s1", has: []string{"1 record has this id", "?repository=song.ca&amp;organization=S1&amp;id=r1", "The index of good"}},
		"in a chosen one, not everywhere": {found: []recordtrace.Location{at("song.ca", "S1")}, failed: []string{"good"}, token: "system", more: "&repository=song.ca", to: trace},
		"not everywhere":                  {failed: []string{"good"}, token: "system", has: []string{"Not every repository could be searched", "The index of good"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.located = recordtrace.Locations{Found: tt.found, Failed: tt.failed}
			got := send(t, router(t, w, api.Config{Authenticator: tokens{}}), request{method: "GET", path: "/console/records?id=%20r1" + tt.more, token: tt.token})
			if tt.to != "" {
				if got.Code != http.StatusSeeOther || got.Header().Get("Location") != tt.to {
					t.Errorf("status %d to %q: %s", got.Code, got.Header().Get("Location"), got.Body)
				}
				return
			}
			body := got.Body.String()
			for _, says := range tt.has {
				if !strings.Contains(body, says) {
					t.Errorf("the page lacks %q", says)
				}
			}
			if got.Code != http.StatusOK || tt.lacks != "" && strings.Contains(body, tt.lacks) {
				t.Errorf("status %d, with %q: %s", got.Code, tt.lacks, body)
			}
			checkPage(t, "", got.Header(), body)
		})
	}
}
