package cors_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tutti/http/cors"
	"tutti/internal/core"
)

const portal = "https://portal.example.org"

// allowed returns the origin whose pages may read the response to a request of an origin, "" for none.
func allowed(p cors.Policy, origin string) string {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Origin", origin)
	p.Share(http.NotFoundHandler()).ServeHTTP(w, r)
	return w.Header().Get("Access-Control-Allow-Origin")
}

func TestNewRefusesWhatIsNoOrigin(t *testing.T) {
	for _, origin := range []string{
		"", "portal.example.org", "//portal.example.org", "https://", "https:portal.example.org", "ftp://portal.example.org",
		"https://portal.example.org/", "https://portal.example.org/app", "https://portal.example.org?x", "https://portal.example.org#x",
		"https://user@portal.example.org", "https://*.example.org", "https://portal.example.org:", "https://portal.example.org:x",
		"https://:8080", "https://pörtal.example.org", "https://a b.example.org", " https://portal.example.org", "null", "**",
		"https://portal.example.org,https://other.example", "https://portal.example.org\n", "https://%70ortal.example.org",
	} {
		t.Run(origin, func(t *testing.T) {
			_, err := cors.New(cors.Config{Origins: []string{portal, origin}})
			if core.CodeOf(err) != core.CodeInvalid || !strings.Contains(core.MessageOf(err), "is not an origin") ||
				core.HintOf(err) != "an origin is a scheme, a host and, unless it is the default, a port, such as "+portal+"; * means all origins" {
				t.Errorf("got %v, hint %q", err, core.HintOf(err))
			}
		})
	}
}

func TestOriginsAreTakenAsBrowsersWriteThem(t *testing.T) {
	for given, sent := range map[string]string{
		"https://portal.example.org":      "https://portal.example.org",
		"https://Portal.example.org:443":  "https://portal.example.org",
		"http://portal.example.org:80":    "http://portal.example.org",
		"http://portal.example.org:443":   "http://portal.example.org:443",
		"http://localhost:3000":           "http://localhost:3000",
		"http://[::1]:3000":               "http://[::1]:3000",
		"https://[::1]:443":               "https://[::1]",
		"http://127.0.0.1":                "http://127.0.0.1",
		"https://xn--prtal-jua.example":   "https://xn--prtal-jua.example",
		"https://under_score.example.org": "https://under_score.example.org",
	} {
		t.Run(given, func(t *testing.T) {
			p, err := cors.New(cors.Config{Origins: []string{given}})
			if err != nil {
				t.Fatal(err)
			}
			if got := allowed(p, sent); got != sent {
				t.Errorf("got %q", got)
			}
		})
	}
}

// FuzzCORSOrigins: what is taken as an origin, the standard library's protection takes too.
func FuzzCORSOrigins(f *testing.F) {
	for _, seed := range []string{portal, "HTTP://[::1]:80", "https://a:1", "https://a/", "https://*.b", "null", "https://a%20b", "https://a:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		p, err := cors.New(cors.Config{Origins: []string{given}})
		if err != nil || given == "*" {
			return
		}
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(given); err != nil {
			// It knows schemes and hosts in lower case alone.
			if err := http.NewCrossOriginProtection().AddTrustedOrigin(strings.ToLower(given)); err != nil {
				t.Errorf("%q is taken: %v", given, err)
			}
		}
		if got := allowed(p, given); got != "" && got != given {
			t.Errorf("%q got %q", given, got)
		}
	})
}
