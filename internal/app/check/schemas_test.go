package check_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"tutti/internal/app/check"
	"tutti/internal/tools/testkit"
)

func TestExternalValidations(t *testing.T) {
	server := httptest.NewServer(nil)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	closed := testkit.NewAddress(t)
	defaults := fmt.Sprintf("defaultOptions: {externalValidations: [{url: %q, jsonPath: a}, {url: %q, jsonPath: b}]}",
		server.URL+"/{study}/{value}", server.URL+"/other/{value}")
	for name, tt := range map[string]struct {
		schemas string
		want    []string
	}{
		"none":      {"", nil},
		"an option": {"enforceLatest: false, defaultOptions: {fileTypes: [BAM]}", nil},
		"a host and port that answers": {
			fmt.Sprintf("externalValidations: {allowedHosts: [%q]}", u.Host),
			[]string{"ok: external validations may only call " + u.Host},
		},
		"only hosts": {
			"externalValidations: {allowedHosts: [127.0.0.1, '::1']}",
			[]string{"ok: external validations may only call 127.0.0.1, ::1"},
		},
		"one that does not answer": {
			fmt.Sprintf("externalValidations: {allowedHosts: [%q, %q]}", u.Host, closed),
			[]string{
				"ok: external validations may only call *",
				"warn: " + closed + " does not answer: nothing listens there; values that it validates are rejected until it does -> check host and port, and that the service runs",
			},
		},
		"defaults that are allowed": {
			defaults + ", externalValidations: {allowedHosts: [127.0.0.1]}",
			[]string{"ok: external validations may only call 127.0.0.1"},
		},
		"defaults of another host": {
			defaults + ", externalValidations: {allowedHosts: ['127.0.0.2']}",
			[]string{
				"ok: external validations may only call 127.0.0.2",
				"fail: schemas.defaultOptions uses " + u.Host + ", which is not an allowed host -> add " + u.Host + " to schemas.externalValidations.allowedHosts",
			},
		},
		"defaults on this machine": {
			defaults,
			[]string{
				"ok: external validations may call any public address",
				"fail: schemas.defaultOptions uses " + u.Host + ", which is not a public address and must be allowed -> add " + u.Host + " to schemas.externalValidations.allowedHosts",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := check.Run(t.Context(), builtInConfig(t, t.TempDir(), "schemas: {"+tt.schemas+"}"), check.Options{})
			wantLines(t, of(report, "schemas"), tt.want...)
		})
	}
}

// TestStorage: each answer of Score that is not one of Score has a hint that names the keys to change.
func TestStorage(t *testing.T) {
	for name, tt := range map[string]struct {
		status     int
		body, want string
	}{
		"a page":       {200, "<html>", "fail: Score at 127.0.0.1:*: * -> check schemas.storage.url and schemas.storage.token"},
		"unauthorized": {401, "", "fail: Score at 127.0.0.1:*: * -> check schemas.storage.token"},
		"not there":    {404, "<html>", "fail: Score at 127.0.0.1:*: * -> check schemas.storage.url"},
		"right":        {200, "false", "ok: Score at 127.0.0.1:* answers"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", map[bool]string{true: "text/html", false: "application/json"}[strings.HasPrefix(tt.body, "<")])
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			t.Cleanup(server.Close)
			report := check.Run(t.Context(), builtInConfig(t, t.TempDir(), fmt.Sprintf("schemas: {storage: {url: %q, token: s3cret}}", server.URL)), check.Options{})
			wantLines(t, of(report, "schemas"), tt.want)
		})
	}
}

// TestExternalValidationsOfTypes: the services of the analysis types in the store are checked like those of the default options, those of an
// older version only if its analyses are accepted.
func TestExternalValidationsOfTypes(t *testing.T) {
	dir, closed := t.TempDir(), testkit.NewAddress(t)
	s, end := openStore(t, dir)
	execute(t, s, "INSERT INTO analysis_type_name (name, latest) VALUES ('t', 2)")
	for i, host := range []string{"127.0.0.9:1", closed} {
		execute(t, s, fmt.Sprintf(`INSERT INTO analysis_type (name, version, created_at, options, schema) VALUES ('t', %d, 1, '{"externalValidations":[{"url":"http://%s/{value}","jsonPath":"a"}]}', '{}')`, i+1, host))
	}
	end()
	const old = `fail: version 1 of the analysis type "t" uses 127.0.0.9:1, which is not an allowed host -> add 127.0.0.9:1 to schemas.externalValidations.allowedHosts`
	for enforced, more := range map[string][]string{"true": nil, "false": {old}} {
		report := check.Run(t.Context(), builtInConfig(t, dir, "schemas: {enforceLatest: "+enforced+", externalValidations: {allowedHosts: ['"+closed+"']}}"), check.Options{})
		wantLines(t, of(report, "schemas"), append(append([]string{"ok: external validations may only call " + closed}, more...),
			"warn: "+closed+" does not answer: nothing listens there; values that it validates are rejected until it does -> check host and port, and that the service runs")...)
	}
	report := check.Run(t.Context(), builtInConfig(t, dir, ""), check.Options{})
	wantLines(t, of(report, "schemas"), "ok: external validations may call any public address",
		`fail: version 2 of the analysis type "t" uses `+closed+", which is not a public address and must be allowed -> add "+closed+" to schemas.externalValidations.allowedHosts")
}
