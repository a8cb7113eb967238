package client_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/core"
)

// newClient returns a Client with its own connections, which are closed after the test.
func newClient(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg.HTTP = &http.Client{Transport: transport}
	c, err := client.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serve runs handler for the test and returns its URL.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func answer(w http.ResponseWriter, status int, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// wantError checks code, message and hint of an error of the client.
func wantError(t *testing.T, err error, code core.Code, message, hint string) {
	t.Helper()
	if core.CodeOf(err) != code || core.MessageOf(err) != message || core.HintOf(err) != hint {
		t.Errorf("error %q %q %q,\nwant  %q %q %q (%v)", core.CodeOf(err), core.MessageOf(err), core.HintOf(err), code, message, hint, err)
	}
}

const jobJSON = `{"id":"j1","scope":"repository","repository":"a","indexName":"docs","state":"partial","cause":"rest",` +
	`"queuedAt":"2026-05-04T12:00:00Z","startedAt":"2026-05-04T12:00:01Z","endedAt":"2026-05-04T12:00:03.5Z",` +
	`"totals":{"expected":10,"fetched":9,"indexed":8,"stale":0,"removed":0,"rejected":1,"retried":0},"ratePerSecond":3.6,` +
	`"etaSeconds":null,"organizations":[{"organization":"S1","totals":{"expected":10,"fetched":9,"indexed":8,"stale":0,"removed":0,` +
	`"rejected":1,"retried":0},"state":"partial","error":{"code":"prune_guard","message":"m"}}],"organizationsTotal":1,` +
	`"error":{"code":"prune_guard","message":"S1: m"},"later":{"x":1}}`

const letterJSON = `{"id":"d1","repository":"a","organization":"S1","recordId":"r","reason":"rejected","hint":"h","engineType":"t",` +
	`"engineReason":"why","attempts":2,"firstAt":"2026-05-04T12:00:00Z","lastAt":"2026-05-04T12:00:01Z","size":7,"sha256":"ab",` +
	`"truncated":false,"document":{"a":1}}`

// TestCalls: each method sends the request of CONTRACT section 1, below the base path, with each id in its own segment.
func TestCalls(t *testing.T) {
	t.Parallel()
	const odd, oddPath = "S/1 ä%2F?#", "S%2F1%20%C3%A4%252F%3F%23"
	const accepted = `{"successful":true,"indexName":"docs","requestId":"q","jobId":"j1"}`
	for name, tt := range map[string]struct {
		call   func(context.Context, *client.Client) (any, error)
		want   string
		status int
		body   string
		result any
	}{
		"repository": {
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.Index(ctx, client.RunOptions{Force: true, Rebuild: true}, "a")
			},
			"POST /base/index/repository/a?force=true&rebuild=true", 202, accepted,
			client.Accepted{Successful: true, IndexName: "docs", RequestID: "q", JobID: "j1", Raw: []byte(accepted)},
		},
		"organization": {
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.Index(ctx, client.RunOptions{}, "a", odd)
			},
			"POST /base/index/repository/a/organization/" + oddPath, 202, accepted,
			client.Accepted{Successful: true, IndexName: "docs", RequestID: "q", JobID: "j1", Raw: []byte(accepted)},
		},
		"record": {
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.Index(ctx, client.RunOptions{}, "a", "S", odd)
			},
			"POST /base/index/repository/a/organization/S/id/" + oddPath, 202, `{"successful":true}`,
			client.Accepted{Successful: true, Raw: []byte(`{"successful":true}`)},
		},
		"removal": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.RemoveRecord(ctx, "a", "S", "r") },
			"DELETE /base/index/repository/a/organization/S/id/r", 202, `{"successful":true}`,
			client.Accepted{Successful: true, Raw: []byte(`{"successful":true}`)},
		},
		"jobs": {
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.Jobs(ctx, core.JobFilter{Repository: "a&b", State: core.JobFailed, Limit: 3, Cursor: "n"})
			},
			"GET /base/jobs?cursor=n&limit=3&repository=a%26b&state=failed", 200, `{"jobs":[],"nextCursor":"m"}`,
			client.JobPage{Jobs: []client.Job{}, NextCursor: "m", Raw: []byte(`{"jobs":[],"nextCursor":"m"}`)},
		},
		"all jobs": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.Jobs(ctx, core.JobFilter{}) },
			"GET /base/jobs", 200, `{"jobs":[]}`,
			client.JobPage{Jobs: []client.Job{}, Raw: []byte(`{"jobs":[]}`)},
		},
		"job": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.Job(ctx, "j1") },
			"GET /base/jobs/j1", 200, jobJSON, wantJob(),
		},
		"cancel": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.CancelJob(ctx, "j1") },
			"DELETE /base/jobs/j1", 200, jobJSON, wantJob(),
		},
		"letters": {
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.DeadLetters(ctx, core.DeadLetterFilter{Repository: "a", Organization: "o", Reason: "rejected", Limit: 3, Cursor: "n"})
			},
			"GET /base/dead-letters?cursor=n&limit=3&organization=o&reason=rejected&repository=a", 200, `{"deadLetters":[]}`,
			client.DeadLetterPage{DeadLetters: []client.DeadLetter{}, Raw: []byte(`{"deadLetters":[]}`)},
		},
		"letter": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.DeadLetter(ctx, "d1") },
			"GET /base/dead-letters/d1", 200, letterJSON,
			client.DeadLetter{
				DeadLetter: core.DeadLetter{
					ID: "d1", Repository: "a", Organization: "S1", RecordID: "r", Reason: "rejected", Hint: "h", EngineType: "t",
					EngineReason: "why", Attempts: 2, FirstAt: at("12:00:00"), LastAt: at("12:00:01"), Size: 7, SHA256: "ab",
				},
				Document: []byte(`{"a":1}`), Raw: []byte(letterJSON),
			},
		},
		"retry": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.Retry(ctx, "d1") },
			"POST /base/dead-letters/d1/retry", 202, `{"successful":true,"id":"d1","repository":"a"}`,
			client.RetryResult{Successful: true, ID: "d1", Repository: "a", Raw: []byte(`{"successful":true,"id":"d1","repository":"a"}`)},
		},
		"retry all": {
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.RetryAll(ctx, core.DeadLetterFilter{Repository: "a", Organization: "S1", Reason: "rejected"})
			},
			"POST /base/dead-letters/retry?organization=S1&reason=rejected&repository=a", 202, `{"successful":true,"jobId":"j"}`,
			client.Accepted{Successful: true, JobID: "j", Raw: []byte(`{"successful":true,"jobId":"j"}`)},
		},
		"discard": {
			func(ctx context.Context, c *client.Client) (any, error) { return nil, c.Discard(ctx, "d1") },
			"DELETE /base/dead-letters/d1", 204, "", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got, headers string
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = r.Method + " " + r.RequestURI
				headers = r.Header.Get("Authorization") + " " + r.Header.Get("User-Agent") + " " + r.Header.Get("Accept")
				answer(w, tt.status, "application/json; charset=utf-8", tt.body)
			})
			c := newClient(t, client.Config{Server: url + "/base/", Token: " secret\n", UserAgent: "u"})
			result, err := tt.call(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("asked for %s, want %s", got, tt.want)
			}
			if headers != "Bearer secret u application/json" {
				t.Errorf("headers %q", headers)
			}
			if diff := cmp.Diff(tt.result, result); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func at(clock string) time.Time {
	parsed, err := time.Parse(time.RFC3339, "2026-05-04T"+clock+"Z")
	if err != nil {
		return time.Time{}
	}
	return parsed
}

func wantJob() client.Job {
	started, ended := at("12:00:01"), at("12:00:03.5")
	totals := core.Totals{Expected: 10, Fetched: 9, Indexed: 8, Rejected: 1}
	return client.Job{
		ID: "j1", Scope: core.ScopeRepository, Repository: "a", IndexName: "docs", State: core.JobPartial, Cause: core.CauseREST,
		QueuedAt: at("12:00:00"), StartedAt: &started, EndedAt: &ended, Totals: totals, RatePerSecond: 3.6,
		Organizations: []client.Organization{
			{Organization: "S1", Totals: totals, State: core.JobPartial, Error: &core.JobError{Code: "prune_guard", Message: "m"}},
		},
		OrganizationsTotal: 1, Error: &core.JobError{Code: "prune_guard", Message: "S1: m"}, Raw: []byte(jobJSON),
	}
}

// TestErrorResponses: error responses of the server, or of something in front of it, become errors.
func TestErrorResponses(t *testing.T) {
	t.Parallel()
	const proxyHint = "check the address and its base path (--server), and proxies in front of the server"
	for name, tt := range map[string]struct {
		status        int
		header        map[string]string
		contentType   string
		body          string
		code          core.Code
		message, hint string
		text          string
		retryAfter    time.Duration
	}{
		"problem": {
			status: 404, contentType: "application/problem+json", body: `{"status":404,"detail":"no such job","code":"not_found","hint":"look","requestId":"q1"}`,
			code: core.CodeNotFound, message: "no such job", hint: "look", text: "no such job: HTTP 404",
		},
		"problem of the server": {
			status: 500, contentType: "application/problem+json", body: `{"detail":"an internal error occurred","code":"internal","requestId":"q1"}`,
			code: core.CodeInternal, message: "an internal error occurred", text: "an internal error occurred: HTTP 500, request q1",
		},
		"retry after": {
			status: 503, contentType: "application/problem+json", header: map[string]string{"Retry-After": "7", "X-Request-Id": "q2"},
			body: `{"detail":"the queue is full","code":"overloaded","hint":"wait"}`,
			code: core.CodeOverloaded, message: "the queue is full", hint: "wait; try again after 7s", retryAfter: 7 * time.Second,
			text: "the queue is full: HTTP 503, request q2",
		},
		"unauthenticated": {
			status: 401, contentType: "application/problem+json", body: `{"detail":"a token is needed","code":"unauthenticated"}`,
			code: core.CodeUnauthenticated, message: "a token is needed", hint: "set a token with --token or TUTTI_TOKEN",
			text: "a token is needed: HTTP 401",
		},
		"unknown code": {
			status: 418, contentType: "application/problem+json", body: `{"detail":"no coffee","code":"teapot"}`,
			code: "teapot", message: "no coffee", text: "no coffee: HTTP 418",
		},
		"proxy's page": {
			status: 404, contentType: "text/html", body: "<html>not here</html>", code: core.CodeUpstream,
			message: "the server at URL returned 404 Not Found with text/html, which is not a response of tutti", hint: proxyHint,
		},
		"proxy without tutti": {
			status: 502, contentType: "text/html", body: "<html>Bad Gateway</html>", code: core.CodeUnavailable,
			message: "the server at URL returned 502 Bad Gateway with text/html, which is not a response of tutti",
			hint:    "the proxy does not reach tutti; check that tutti is running",
		},
		"other JSON": {
			status: 403, contentType: "application/json", body: `{"error":"denied"}`, code: core.CodeForbidden,
			message: "the server at URL returned 403 Forbidden with application/json, which is not a response of tutti", hint: proxyHint,
		},
		"nothing": {
			status: 429, code: core.CodeOverloaded, header: map[string]string{"Retry-After": "soon"},
			message: "the server at URL returned 429 Too Many Requests with an unknown type, which is not a response of tutti", hint: proxyHint,
		},
		"page of success": {
			status: 200, contentType: "text/html", body: "<html>sign in</html>", code: core.CodeUpstream,
			message: "the server at URL returned text/html instead of JSON", hint: proxyHint,
		},
		"broken JSON": {
			status: 200, contentType: "application/json", body: `{"id":`, code: core.CodeUpstream,
			message: "the server at URL returned JSON with an unexpected format: unexpected end of JSON input", hint: proxyHint,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range tt.header {
					w.Header().Set(name, value)
				}
				w.Header()["Content-Type"] = nil
				if tt.contentType != "" {
					w.Header().Set("Content-Type", tt.contentType)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			_, err := newClient(t, client.Config{Server: url}).Job(t.Context(), "j1")
			wantError(t, err, tt.code, strings.ReplaceAll(tt.message, "URL", url), tt.hint)
			if tt.text != "" && err.Error() != tt.text {
				t.Errorf("text %q, want %q", err.Error(), tt.text)
			}
			if got := core.RetryAfterOf(err); got != tt.retryAfter {
				t.Errorf("retry after %s, want %s", got, tt.retryAfter)
			}
			refusal, ok := errors.AsType[*client.ResponseError](err)
			if !ok || refusal.Status != tt.status {
				t.Errorf("status %+v, want %d", refusal, tt.status)
			}
		})
	}
}

// TestUnreachable: a server that cannot be reached, or closes the connection, is unavailable.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	const hint = "check that it is running (tutti serve); set another address with --server or TUTTI_SERVER"
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	cut := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"id":"j1"`)
	})
	release := make(chan struct{})
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	for name, tt := range map[string]struct {
		url     string
		timeout time.Duration
	}{"unreachable": {gone.URL, 0}, "cut short": {cut, 0}, "too slow": {slow, 50 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, client.Config{Server: tt.url, Timeout: tt.timeout}).Job(t.Context(), "j1")
			wantError(t, err, core.CodeUnavailable, "tutti at "+tt.url+" does not answer", hint)
		})
	}
	t.Run("stopped", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := newClient(t, client.Config{Server: gone.URL}).Job(ctx, "j1")
		if !errors.Is(err, context.Canceled) || core.CodeOf(err) == core.CodeUnavailable {
			t.Errorf("error %v, want the context's", err)
		}
	})
}

// TestRedirects: only a redirect within the same scheme, host and port is followed, and the token is sent nowhere else.
func TestRedirects(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		answer(w, http.StatusOK, "application/json", jobJSON)
	})
	var to string
	own := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved/jobs/j1" {
			if r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("the token is gone: %q", r.Header.Get("Authorization"))
			}
			answer(w, http.StatusOK, "application/json", jobJSON)
			return
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	c := newClient(t, client.Config{Server: own, Token: "secret"})
	for name, location := range map[string]string{
		"another port": other + "/jobs/j1", "another name": strings.Replace(own, "127.0.0.1", "localhost", 1) + "/moved/jobs/j1",
		"another scheme": strings.Replace(own, "http:", "https:", 1) + "/moved/jobs/j1",
	} {
		t.Run(name, func(t *testing.T) {
			to = location
			_, err := c.Job(t.Context(), "j1")
			origin := location[:strings.Index(location[8:], "/")+8]
			wantError(t, err, core.CodeUpstream, "the server at "+own+" redirects to "+origin+", which is not followed",
				"set the address of the redirect's target with --server")
		})
	}
	t.Run("the same server", func(t *testing.T) {
		to = "/moved/jobs/j1"
		if job, err := c.Job(t.Context(), "j1"); err != nil || job.ID != "j1" {
			t.Errorf("%+v, %v", job, err)
		}
	})
	if len(asked) > 0 {
		t.Errorf("the other server was asked with %q", <-asked)
	}
}

// TestInvalidArguments: invalid arguments are rejected without a request, and no secret is shown.
func TestInvalidArguments(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg           client.Config
		message, hint string
	}{
		"no scheme":     {client.Config{Server: "localhost:8080"}, `the server's address "localhost:8080" is not an http or https URL`, "such as http://127.0.0.1:8080"},
		"other scheme":  {client.Config{Server: "ftp://a"}, `the server's address "ftp://a" is not an http or https URL`, "such as http://127.0.0.1:8080"},
		"no URL":        {client.Config{Server: "http://u:secret@a b"}, `the server's address "…@a b" is not an http or https URL`, "such as http://127.0.0.1:8080"},
		"no host":       {client.Config{Server: "http://:80/x"}, `the server's address "http://:80/x" has no host`, "such as http://127.0.0.1:8080"},
		"query":         {client.Config{Server: "http://a/?x=1"}, `the server's address "http://a/?x=1" has a query or a fragment`, "such as http://127.0.0.1:8080"},
		"user":          {client.Config{Server: "http://u:secret@a"}, "the server's address contains a user or a password", "use a token instead"},
		"token in two":  {client.Config{Token: "secret\r\nX: y"}, "the token contains characters that are invalid in a header", "a token must be printable ASCII without spaces"},
		"not ASCII yet": {client.Config{Token: "sécret"}, "the token contains characters that are invalid in a header", "a token must be printable ASCII without spaces"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client.New(tt.cfg)
			wantError(t, err, core.CodeInvalid, tt.message, tt.hint)
			if strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	c := newClient(t, client.Config{Server: url})
	_, err := c.Index(t.Context(), client.RunOptions{}, "a", "S", "..")
	wantError(t, err, core.CodeInvalid, "id must not be a relative path segment", "")
	_, err = c.Index(t.Context(), client.RunOptions{}, "a", "")
	wantError(t, err, core.CodeInvalid, "organization is empty", "")
	_, err = c.WatchJob(t.Context(), ".", func(client.Event) error { return nil })
	wantError(t, err, core.CodeInvalid, "id must not be a relative path segment", "")
	wantError(t, c.Discard(t.Context(), ""), core.CodeInvalid, "id is empty", "")
}

// TestDefaultServer: without a configuration the local server is used.
func TestDefaultServer(t *testing.T) {
	t.Parallel()
	c, err := client.New(client.Config{})
	if err != nil || c.Server() != "http://127.0.0.1:8080" {
		t.Errorf("%v, %v", c, err)
	}
}

// TestExport: the lines are unchanged, and an interrupted export is an error.
func TestExport(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat(letterJSON+"\n", 3)
	var asked string
	breaks := false
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.RequestURI + " " + r.Header.Get("Accept")
		answer(w, http.StatusOK, "application/x-ndjson", lines)
		if breaks {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	c := newClient(t, client.Config{Server: url})
	var out bytes.Buffer
	if err := c.ExportDeadLetters(t.Context(), core.DeadLetterFilter{Repository: "a", Reason: "rejected"}, &out); err != nil || out.String() != lines {
		t.Errorf("%v: %s", err, &out)
	}
	if want := "/dead-letters?reason=rejected&repository=a application/x-ndjson"; asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
	breaks = true
	wantError(t, c.ExportDeadLetters(t.Context(), core.DeadLetterFilter{}, io.Discard), core.CodeUnavailable, "tutti at "+url+" does not answer",
		"check that it is running (tutti serve); set another address with --server or TUTTI_SERVER")
	breaks = false
	full := errors.New("no space")
	if err := c.ExportDeadLetters(t.Context(), core.DeadLetterFilter{}, writerFunc(func([]byte) (int, error) { return 0, full })); !errors.Is(err, full) {
		t.Errorf("error %v, want the writer's", err)
	}
	page := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "text/html", "<html>") })
	wantError(t, newClient(t, client.Config{Server: page}).ExportDeadLetters(t.Context(), core.DeadLetterFilter{}, io.Discard), core.CodeUpstream,
		"the server at "+page+" returned text/html instead of JSON lines",
		"check the address and its base path (--server), and proxies in front of the server")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestCAFile: a server whose authority is in the file is trusted, others are not, and the error has a hint.
func TestCAFile(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "application/json", jobJSON)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	trusting, err := client.New(client.Config{Server: server.URL, CAFile: file})
	if err != nil {
		t.Fatal(err)
	}
	if job, err := trusting.Job(t.Context(), "j1"); err != nil || job.ID != "j1" {
		t.Errorf("got %+v, %v", job, err)
	}
	_, err = newClient(t, client.Config{Server: server.URL}).Job(t.Context(), "j1")
	wantError(t, err, core.CodeUnavailable, "the certificate of tutti at "+server.URL+" cannot be verified",
		"set the PEM file of its authority with --ca-file or TUTTI_CA_FILE, and use a host name that the certificate is valid for")
	const hint = "use a PEM file of certificate authorities"
	_, err = client.New(client.Config{Server: server.URL, CAFile: file + ".none"})
	wantError(t, err, core.CodeInvalid, "the CA file cannot be read", hint)
	if err := os.WriteFile(file, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = client.New(client.Config{Server: server.URL, CAFile: file})
	wantError(t, err, core.CodeInvalid, "the CA file "+file+" contains no certificate", hint)
	_, err = client.New(client.Config{CAFile: file, HTTP: &http.Client{}})
	wantError(t, err, core.CodeInvalid, "a CA file cannot be combined with an HTTP client", "")
}
