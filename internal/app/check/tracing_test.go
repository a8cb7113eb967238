package check_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"tutti/internal/app/check"
	"tutti/internal/tools/testkit"
)

func TestTracing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" || r.Header.Get("Authorization") != "s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	for name, tt := range map[string]struct{ members, want string }{
		"taken":           {fmt.Sprintf("endpoint: %q, headers: Authorization=s3cret", server.URL), "ok: 127.0.0.1:* takes traces"},
		"refused":         {fmt.Sprintf("endpoint: %q, headers: Authorization=x", server.URL), "warn: 127.0.0.1:*: the receiver of traces answered with status 401 -> *tracing.headers*"},
		"nothing listens": {fmt.Sprintf("endpoint: 'http://%s'", testkit.NewAddress(t)), "warn: 127.0.0.1:* cannot be reached: nothing listens there -> check host and port, and that the service runs"},
	} {
		t.Run(name, func(t *testing.T) {
			report := check.Run(t.Context(), parse(t, fmt.Sprintf("dataDir: %q\ntracing: {%s}", t.TempDir(), tt.members)), check.Options{})
			if wantLines(t, of(report, "tracing"), tt.want); !report.OK {
				t.Error("tutti does not start without it")
			}
		})
	}
}
