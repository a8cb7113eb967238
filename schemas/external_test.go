package schemas_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/schemas"
)

// service is an external one that notes what it is asked.
type service struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newExternal(t *testing.T, answer http.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.RequestURI)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.asked))
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte("a secret"))
	}
}

// externally registers a type "a" with one external validation and validates an analysis with an experiment.
func externally(t *testing.T, cfg schemas.Config, url, path, experiment string) error {
	t.Helper()
	s, _ := newService(t, cfg)
	register(t, s, `{"name":"a","schema":`+simple+`,"options":{"externalValidations":[{"url":"`+url+`","jsonPath":"`+path+`"}]}}`)
	_, err := s.Validate(t.Context(), "S/1", strings.Replace(analysis("a", ""), `"experiment":{}`, `"experiment":`+experiment, 1))
	return err
}

func TestExternalValidation(t *testing.T) {
	loopback := schemas.Config{AllowedHosts: []string{"127.0.0.1"}}
	for _, c := range []struct {
		name, template, path, experiment string
		answer                           http.HandlerFunc
		asked                            []string
		want                             string
	}{
		{"2xx is valid", "/v/{value}", "experiment.id", `{"id":"x"}`, status(204), []string{"GET /v/x"}, ""},
		{"a leading $.", "/v/{value}", "$.experiment.id", `{"id":"x"}`, status(200), []string{"GET /v/x"}, ""},
		{"every {study} and {value}", "/{study}/{value}/{value}?s={study}&v={value}", "experiment.id", `{"id":"x"}`, status(200), []string{"GET /S%2F1/x/x?s=S%2F1&v=x"}, ""},
		{"percent-encoded by position", "/{value}?v={value}", "experiment.id", `{"id":"a b/c?d&e=f#g%+{study}ü"}`, status(200), []string{"GET /a%20b%2Fc%3Fd&e=f%23g%25+%7Bstudy%7D%C3%BC?v=a+b%2Fc%3Fd%26e%3Df%23g%25%2B%7Bstudy%7D%C3%BC"}, ""},
		{"a missing value is skipped", "/{value}", "experiment.none.deeper", `{}`, status(404), nil, ""},
		{"a null is a missing value", "/{value}", "experiment.id", `{"id":null}`, status(404), nil, ""},
		{"a number by its text", "/{value}", "experiment.id", `{"id":1.50}`, status(200), []string{"GET /1.50"}, ""},
		{"a boolean by its text", "/{value}", "experiment.id", `{"id":true}`, status(200), []string{"GET /true"}, ""},
		{"an index", "/{value}", "experiment.ids[1]", `{"ids":["a","b"]}`, status(200), []string{"GET /b"}, ""},
		{"all items, each value once", "/{value}", "experiment.d[*]['the id']", `{"d":[{"the id":"a"},{"the id":"b"},{"the id":"a"},{}]}`, status(200), []string{"GET /a", "GET /b"}, ""},
		{"an object cannot be asked about", "/{value}", "experiment", `{}`, status(200), nil, "/experiment | externalValidations | is an object, which cannot be sent to an external service"},
		{"404 is invalid and asked once", "/{value}", "experiment.id", `{"id":"x"}`, status(404), []string{"GET /x"}, `/experiment/id | externalValidations | "x" is not valid: the service answered 404`},
		{"every place of an invalid value", "/{value}", "experiment.d[*]", `{"d":["x","x"]}`, status(404), []string{"GET /x"}, `/experiment/d/0 | externalValidations | "x" is not valid: the service answered 404` + "\n" + `/experiment/d/1 | externalValidations | "x" is not valid: the service answered 404`},
		{"5xx is asked three times and says so", "/{value}", "experiment.id", `{"id":"x"}`, status(503), []string{"GET /x", "GET /x", "GET /x"}, `/experiment/id | externalValidations | "x" could not be checked: the service answered 503 | retryable`},
		{"a value that is a parent", "/v/{value}", "experiment.id", `{"id":".."}`, status(200), nil, `/experiment/id | externalValidations | ".." cannot be sent: it would change the path`},
		{"a value that completes a parent", "/v/.{value}/x", "experiment.id", `{"id":"."}`, status(200), nil, `/experiment/id | externalValidations | "." cannot be sent: it would change the path`},
		{"a value that completes an encoded parent", "/v/%2e{value}/x", "experiment.id", `{"id":"."}`, status(200), nil, `/experiment/id | externalValidations | "." cannot be sent: it would change the path`},
		{"a value that completes an encoded parent in capitals", "/v/{value}%2E/x", "experiment.id", `{"id":"."}`, status(200), nil, `/experiment/id | externalValidations | "." cannot be sent: it would change the path`},
		{"an empty value in a path", "/v/{value}", "experiment.id", `{"id":""}`, status(200), nil, `/experiment/id | externalValidations | is empty and cannot be sent`},
		{"dots in a query", "/v?v={value}", "experiment.id", `{"id":".."}`, status(200), []string{"GET /v?v=.."}, ""},
		{"a value that is too long", "/{value}", "experiment.id", `{"id":"` + strings.Repeat("x", 9000) + `"}`, status(200), nil, `/experiment/id | externalValidations | is too long to be sent`},
	} {
		t.Run(c.name, func(t *testing.T) {
			external := newExternal(t, c.answer)
			err := externally(t, loopback, external.URL+c.template, c.path, c.experiment)
			if diff := cmp.Diff(c.asked, external.requests()); diff != "" {
				t.Error("asked", diff)
			}
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, core.CodeInvalid, "schema.violation", `the analysis does not match version 1 of "a": `)
			if diff := cmp.Diff(c.want, lines(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExternalRetries(t *testing.T) {
	loopback := schemas.Config{AllowedHosts: []string{"127.0.0.1"}}
	t.Run("a service that comes back", func(t *testing.T) {
		var calls int
		external := newExternal(t, func(w http.ResponseWriter, _ *http.Request) {
			if calls++; calls < 3 {
				w.WriteHeader(500)
			}
		})
		if err := externally(t, loopback, external.URL+"/{value}", "experiment.id", `{"id":"x"}`); err != nil {
			t.Error(err)
		}
	})
	t.Run("a time-out", func(t *testing.T) {
		external := newExternal(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		cfg := loopback
		cfg.Timeout = 20 * time.Millisecond
		err := externally(t, cfg, external.URL+"/{value}", "experiment.id", `{"id":"x"}`)
		want := `/experiment/id | externalValidations | "x" could not be checked: the service did not answer within 20ms | retryable`
		if got := lines(err); got != want || len(external.requests()) != 3 {
			t.Errorf("%s after %d calls", got, len(external.requests()))
		}
	})
	t.Run("a service that is not there", func(t *testing.T) {
		external := newExternal(t, status(200))
		external.Close()
		err := externally(t, loopback, external.URL+"/{value}", "experiment.id", `{"id":"x"}`)
		want := `/experiment/id | externalValidations | "x" could not be checked: the service could not be reached | retryable`
		if got := lines(err); got != want {
			t.Error(got)
		}
	})
	t.Run("a service that never answers is given up for the rest", func(t *testing.T) {
		external := newExternal(t, status(500))
		values := `"0"` + strings.Repeat(`,"x"`, 1)
		for i := range 50 {
			values += `,"v` + string(rune('a'+i%26)) + strings.Repeat("z", i/26) + `"`
		}
		err := externally(t, loopback, external.URL+"/{value}", "experiment.d[*]", `{"d":[`+values+`]}`)
		if got := len(violations(err)); got != 52 {
			t.Errorf("%d violations, want 52", got)
		}
		// At most eight are asked side by side before the first three are known to be silent.
		if got := len(external.requests()); got > 3*(3+8) {
			t.Errorf("%d calls", got)
		}
	})
	t.Run("too many values", func(t *testing.T) {
		external := newExternal(t, status(200))
		var values strings.Builder
		for i := range 1001 {
			values.WriteString(`,"` + string(rune('a'+i%26)) + strings.Repeat("z", i/26) + `"`)
		}
		err := externally(t, loopback, external.URL+"/{value}", "experiment.d[*]", `{"d":[`+values.String()[1:]+`]}`)
		want := `/experiment/d/1000 | externalValidations | the analysis has more than 1000 different values that external services must check`
		if got := lines(err); got != want || len(external.requests()) != 0 {
			t.Errorf("%s after %d calls", got, len(external.requests()))
		}
	})
	t.Run("a caller that leaves", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		external := newExternal(t, func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		})
		s, _ := newService(t, loopback)
		register(t, s, `{"name":"a","schema":`+simple+`,"options":{"externalValidations":[{"url":"`+external.URL+`/{value}","jsonPath":"studyId"}]}}`)
		_, err := s.Validate(ctx, "S1", analysis("a", ""))
		wantError(t, err, core.CodeUnavailable, "", "the check was canceled")
	})
}

func TestExternalAddresses(t *testing.T) {
	const refused = `/experiment/id | externalValidations | "x" cannot be checked: the address of the service is not among the hosts that ` +
		`schemas.externalValidations.allowedHosts allows`
	external := newExternal(t, status(200))
	port := external.URL[strings.LastIndexByte(external.URL, ':'):]
	for _, c := range []struct {
		name, host string
		allowed    []string
		want       string
	}{
		{"loopback", "127.0.0.1", nil, refused},
		{"a name of loopback", "localhost", nil, refused},
		{"IPv6 of loopback", "[::1]", nil, refused},
		{"IPv4 in IPv6", "[::ffff:127.0.0.1]", nil, refused},
		{"unspecified", "0.0.0.0", nil, refused},
		{"a listed address", "127.0.0.1", []string{"127.0.0.1"}, ""},
		{"a listed name", "localhost", []string{"LOCALHOST."}, ""},
		{"a listed port", "127.0.0.1", []string{"127.0.0.1" + port}, ""},
		{"another port", "127.0.0.1", []string{"127.0.0.1:1"}, refused},
		{"a name whose address alone is listed", "localhost", []string{"127.0.0.1"}, refused},
		{"not among those listed", "127.0.0.1", []string{"example.org"}, refused},
		{"a listed address in IPv6", "[::ffff:127.0.0.1]", []string{"127.0.0.1"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := externally(t, schemas.Config{AllowedHosts: c.allowed}, "http://"+c.host+port+"/{value}", "experiment.id", `{"id":"x"}`)
			if got := lines(err); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	for _, host := range []string{"", "http://a", "a/b", "*.example.org", "a b", "user@a"} {
		t.Run("refuses to list "+host, func(t *testing.T) {
			_, err := schemas.New(&fakeStore{}, schemas.Config{AllowedHosts: []string{host}})
			wantError(t, err, core.CodeInvalid, "", "schemas.externalValidations.allowedHosts: ")
		})
	}
}

// TestForbiddenAddressIsNamed: the operator reads which key allows the address of a service, and a service at an address that it lists is asked.
func TestForbiddenAddressIsNamed(t *testing.T) {
	external := newExternal(t, status(200))
	var failures tlsconfig.Failures
	cfg := schemas.Config{TLS: tlsconfig.Files{Key: "schemas.externalValidations", Failures: &failures}}
	if err := externally(t, cfg, external.URL+"/{value}", "experiment.id", `{"id":"x"}`); err == nil {
		t.Error("a service on this machine was asked")
	}
	want := []string{"schemas.externalValidations: the address of a service is not among the hosts that are allowed; add its host to schemas.externalValidations.allowedHosts"}
	if got := failures.Reasons(); !slices.Equal(got, want) {
		t.Errorf("reasons %q, want %q", got, want)
	}
	cfg.AllowedHosts = []string{"127.0.0.1"}
	if err := externally(t, cfg, external.URL+"/{value}", "experiment.id", `{"id":"x"}`); err != nil {
		t.Error(err)
	}
}

func TestExternalRedirects(t *testing.T) {
	loopback := schemas.Config{AllowedHosts: []string{"127.0.0.1"}}
	other := newExternal(t, status(200))
	for _, c := range []struct{ name, to, want string }{
		{"on the same host", "/end", ""},
		{"to the same host by its address", "http://HOST/end", ""},
		{"to the same host and port by https", "https://HOST/end", `"x" is not valid: the service redirected to another host or too often`},
		{"to the same host with a user", "http://user@HOST/end", `"x" is not valid: the service redirected to another host or too often`},
		{"to the same host with a password", "http://user:secret@HOST/end", `"x" is not valid: the service redirected to another host or too often`},
		{"to another port", other.URL + "/x", `"x" is not valid: the service redirected to another host or too often`},
		{"without end", "/again", `"x" is not valid: the service redirected to another host or too often`},
		{"to another scheme", "file:///etc/passwd", `"x" is not valid: the service redirected to another host or too often`},
		{"to nowhere", "", `"x" is not valid: the service answered 302`},
	} {
		t.Run(c.name, func(t *testing.T) {
			external := newExternal(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/end" {
					return
				}
				if c.to != "" {
					w.Header().Set("Location", strings.Replace(c.to, "HOST", r.Host, 1))
				}
				w.WriteHeader(http.StatusFound)
			})
			err := externally(t, loopback, external.URL+"/{value}", "experiment.id", `{"id":"x"}`)
			want := c.want
			if want != "" {
				want = "/experiment/id | externalValidations | " + want
			}
			if got := lines(err); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			if len(external.requests()) > 6 {
				t.Errorf("%d calls", len(external.requests()))
			}
		})
	}
	if len(other.requests()) != 0 {
		t.Error("the other host was asked")
	}
}

func TestExternalWaitsForTheRest(t *testing.T) {
	external := newExternal(t, status(200))
	s, _ := newService(t, schemas.Config{AllowedHosts: []string{"127.0.0.1"}})
	register(t, s, `{"name":"a","schema":`+simple+`,"options":{"fileTypes":["X"],"externalValidations":[{"url":"`+external.URL+`/{value}","jsonPath":"studyId"}]}}`)
	if _, err := s.Validate(t.Context(), "S1", analysis("a", "")); err == nil {
		t.Error("a file type was let through")
	}
	if got := external.requests(); len(got) != 0 {
		t.Errorf("asked %v about an analysis that is not valid anyway", got)
	}
}
