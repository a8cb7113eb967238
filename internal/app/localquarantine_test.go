package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestSlowAnalysisType: analyses of a version whose validation timed out are refused with 400, and /ready and a metric report it, until
// a later version is registered.
func TestSlowAnalysisType(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{more: "schemas: {validationTimeout: 1s}\n"})
	const reason = `schemas: validation by version 1 of "slow" took longer than 1s; register a later version`
	state := func(want string) {
		t.Helper()
		quarantined := 0.0
		if want != "" {
			quarantined = 1
		}
		a := b.ready()
		if got := a.get("reasons.0").String(); got != want || !a.get("ready").Bool() || a.status != http.StatusOK {
			t.Errorf("reason %q, want %q: %s", got, want, a.raw)
		}
		if got := b.metric("tutti_schema_quarantined_versions"); got != quarantined {
			t.Errorf("%v versions are quarantined, want %v", got, quarantined)
		}
	}
	payload := func(members string) string { return strings.Replace(b.payload("S1", members), `"plain"`, `"slow"`, 1) }
	text := payload(`"text":"` + strings.Repeat("a", 2<<20) + `"`) // which takes seconds

	b.mustSend(http.MethodPost, "/schemas", `{"name":"slow","schema":{"type":"object","required":["experiment"],"properties":{"experiment":`+
		`{"type":"object","properties":{"text":{"pattern":"(.*a){200}b"}}}}}}`, http.StatusOK)
	state("")
	for _, body := range []string{text, payload("")} {
		a := b.mustSend(http.MethodPost, "/submit/S1", body, http.StatusBadRequest)
		if a.get("errorId").String() != "schema.violation" || !strings.Contains(a.get("detail").String(), "takes no others until a later version is registered") {
			t.Errorf("POST /submit: %s", a.raw)
		}
	}
	state(reason)
	b.submit("S1")
	b.mustSend(http.MethodPost, "/schemas", strings.Replace(plainType, "plain", "slow", 1), http.StatusOK)
	state("")
	b.mustSend(http.MethodPost, "/submit/S1", payload(""), http.StatusOK)
}
