package check_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tutti/internal/app/check"
	"tutti/internal/tools/testkit"
)

// TestAlerts: each receiver of alerts is requested once without effects, with its credentials, and what it would refuse is said with the key to
// change and without its URL. What TLS may refuse is tried by TestSecuredConnections.
func TestAlerts(t *testing.T) {
	var requests []string
	receiver := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		requests = append(requests, fmt.Sprint(r.Method, len(body), err, r.Header.Get("Content-Type")))
		switch _, status, _ := strings.Cut(r.URL.Path, "/s3cret/"); {
		case r.Header.Get("Authorization") != "Bearer s3cret-token" || r.Header.Get("X-Signature-256") == "":
			w.WriteHeader(http.StatusUnauthorized)
		case status != "":
			var code int
			_, _ = fmt.Sscan(status, &code)
			w.WriteHeader(code)
		}
	})
	server := httptest.NewServer(receiver)
	defer server.Close()
	secured := httptest.NewUnstartedServer(receiver)
	secured.Config.ErrorLog = log.New(io.Discard, "", 0)
	secured.StartTLS()
	defer secured.Close()
	overTLS, plain := "https://"+strings.TrimPrefix(server.URL, "http://"), "http://"+strings.TrimPrefix(secured.URL, "https://")
	const credentials = ", token: s3cret-token, secret: s3cret-key"
	for name, tt := range map[string]struct {
		url, more, want string
		requests        int
	}{
		"answers":              {server.URL + "/s3cret/", credentials, "ok: alerts[0] (127.0.0.1:*) answers HEAD with status 200; tutti alerts test sends a message", 1},
		"takes only POST":      {server.URL + "/s3cret/405", credentials, "ok: alerts[0] (127.0.0.1:*) answers HEAD with status 405; *", 1},
		"redirects":            {server.URL + "/s3cret/302", credentials, "ok: alerts[0] (127.0.0.1:*) answers HEAD with status 302; *", 1},
		"credentials":          {server.URL + "/s3cret/", "", "warn: alerts[0] (127.0.0.1:*): it rejects the credentials with status 401 -> check alerts[0].url, token and secret", 1},
		"a proxy":              {server.URL + "/s3cret/502", credentials, "warn: alerts[0] (127.0.0.1:*): it answers with status 502 -> check the receiver, and a proxy in front of it", 1},
		"unreachable":          {"http://" + testkit.NewAddress(t) + "/s3cret/", "", "warn: alerts[0] (127.0.0.1:*): it cannot be reached: nothing listens there -> check host and port, and that the service runs", 0},
		"not TLS":              {overTLS + "/s3cret/", "", "warn: alerts[0] (127.0.0.1:*): it cannot be reached: it does not speak TLS -> use http:// instead of https://, if intended", 0},
		"TLS":                  {plain + "/s3cret/", "", "warn: alerts[0] (127.0.0.1:*): it answers with status 400, as a server of HTTPS does -> use https:// instead of http://, if intended", 0},
		"authority is unknown": {secured.URL + "/s3cret/", "", "warn: alerts[0] (127.0.0.1:*): it cannot be reached: its certificate is signed by an unknown authority -> set alerts[0].caFile to *", 0},
		"no such file":         {secured.URL + "/s3cret/", ", caFile: /none/ca.pem", "fail: alerts[0].caFile: /none/ca.pem cannot be read: no such file or directory -> *", 0},
	} {
		t.Run(name, func(t *testing.T) {
			requests = nil
			report := check.Run(t.Context(), parse(t, fmt.Sprintf("dataDir: %q\nalerts: [{url: '%s'%s}]", t.TempDir(), tt.url, tt.more)), check.Options{})
			wantLines(t, of(report, "alerts"), tt.want)
			if len(requests) != tt.requests || tt.requests == 1 && requests[0] != "HEAD0 <nil>" {
				t.Errorf("the requests are %q", requests)
			}
		})
	}
}
