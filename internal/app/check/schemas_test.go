package check_test

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"testing"

	"tutti/internal/app/check"
)

func TestExternalValidations(t *testing.T) {
	server := httptest.NewServer(nil)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	closed := closedAddress(t)
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
