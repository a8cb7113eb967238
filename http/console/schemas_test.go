package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tutti/http/api"
)

// TestTryPayload: a payload is validated and not stored; each violation is shown at the line of its value.
func TestTryPayload(t *testing.T) {
	w := newWorld()
	h := router(t, w, api.Config{Authenticator: tokens{}})
	try := func(token, study, payload string) (int, string) {
		got := send(t, h, request{
			method: "POST", path: "/console/schemas/variant_call/try", token: token, form: url.Values{"study": {study}, "payload": {payload}},
		})
		if got.Code < 300 {
			checkPage(t, "", got.Header(), got.Body.String())
		}
		return got.Code, got.Body.String()
	}
	code, body := try("s1", "S1", "{\n \"samples\": [\n  {\"id\": \"a\"},\n  {\"wrong\": 1,\n   \"id\": 2}\n ]\n}")
	for _, line := range []string{
		`<li class="wrong"><span class="no">1</span><span>✕</span><span>{</span></li><li class="wrong note"><span class="no"></span><span></span><span>the analysis: lacks x</span></li>`,
		`<li><span class="no">4</span><span></span><span>  {&#34;wrong&#34;: 1,</span></li>`,
		`<li class="wrong"><span class="no">5</span><span>✕</span><span>   &#34;id&#34;: 2}</span></li><li class="wrong note"><span class="no"></span><span></span><span>/samples/1/id: must be a string</span></li>`,
	} {
		if !strings.Contains(body, line) {
			t.Errorf("the page lacks %s", line)
		}
	}
	if code != http.StatusOK || !strings.Contains(body, "The payload is not valid") {
		t.Errorf("status %d: %s", code, body)
	}
	// A payload that is not JSON, or lacks the value, is marked where it ends to be known.
	if _, body := try("s1", "S1", "wrong"); !strings.Contains(body, "/samples/1/id: must be a string") {
		t.Errorf("not JSON: %s", body)
	}
	if _, body := try("system", "S1", "{}"); !strings.Contains(body, "The payload is valid") || !strings.Contains(body, "version 2 of variant_call") {
		t.Errorf("valid: %s", body)
	}
	w.Calls = nil
	for token, status := range map[string]int{"none": 403, "": 401} {
		if code, _ := try(token, "S1", "{}"); code != status || len(w.Calls) > 0 {
			t.Errorf("%q: status %d, calls %q", token, code, w.Calls)
		}
	}
	if code, _ := try("system", "", "{}"); code != http.StatusBadRequest {
		t.Errorf("without a study: status %d", code)
	}
}

// TestStudyNotIndexed: the page of a study says if no repository indexes its analyses.
func TestStudyNotIndexed(t *testing.T) {
	for _, why := range []string{"no repository", ""} {
		w := newWorld()
		w.meta.notIndexed = why
		got := send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/studies/S1"})
		if got.Code != http.StatusOK || strings.Contains(got.Body.String(), "No index gets these analyses") != (why != "") {
			t.Errorf("%q: status %d: %s", why, got.Code, got.Body)
		}
	}
}

// TestSubmitInvalid: an invalid submission is shown again with its violations, so that nothing typed is lost.
func TestSubmitInvalid(t *testing.T) {
	got := send(t, router(t, newWorld(), api.Config{}), request{method: "POST", path: "/console/studies/S1/submit", form: url.Values{"payload": {"{\"x\":\n\"wrong\"}"}}})
	body := got.Body.String()
	if got.Code != http.StatusUnprocessableEntity || !strings.Contains(body, "/x: must be a string") || !strings.Contains(body, "</textarea>") || !strings.Contains(body, "The analysis was not submitted") {
		t.Errorf("status %d: %s", got.Code, body)
	}
	if got := send(t, router(t, newWorld(), api.Config{}), request{method: "GET", path: "/console/schemas/nothing?version=9"}); got.Code != http.StatusNotFound {
		t.Errorf("status %d", got.Code)
	}
}

// TestRegisterInvalid: an invalid registration is shown again, each violation at the line of its value.
func TestRegisterInvalid(t *testing.T) {
	got := send(t, router(t, newWorld(), api.Config{}), request{
		method: "POST", path: "/console/schemas", form: url.Values{"registration": {"{\"schema\": {\n  \"type\": \"wrong\"\n}}"}},
	})
	body := got.Body.String()
	for _, says := range []string{
		"The analysis type was not registered", `<span>  &#34;type&#34;: &#34;wrong&#34;</span></li><li class="wrong note"><span class="no"></span><span></span><span>/schema/type: must be a type</span></li>`,
		"the registration: lacks name", "&#34;wrong&#34;\n}}</textarea>",
	} {
		if !strings.Contains(body, says) {
			t.Errorf("the page lacks %s", says)
		}
	}
	if got.Code != http.StatusUnprocessableEntity {
		t.Errorf("status %d: %s", got.Code, body)
	}
	checkPage(t, "", got.Header(), body)
	for token, says := range map[string]string{"system": "Register an analysis type", "s1": ""} {
		got := send(t, router(t, newWorld(), api.Config{Authenticator: tokens{}}), request{method: "GET", path: "/console/schemas?from=variant_call", token: token})
		if got.Code != http.StatusOK || strings.Contains(got.Body.String(), `name="registration"`) != (says != "") {
			t.Errorf("%s: status %d: %s", token, got.Code, got.Body)
		}
	}
	if got := send(t, router(t, newWorld(), api.Config{}), request{method: "GET", path: "/console/studies/S1/analyses/a9/suppress"}); got.Code != http.StatusNotFound {
		t.Errorf("an analysis that does not exist: status %d", got.Code)
	}
}

// TestLongPayload: of a long payload the page has only the lines around its violations, and the payload itself once.
func TestLongPayload(t *testing.T) {
	payload := "{\n" + strings.Repeat("  \"n\": 1,\n", 5000) + "  \"samples\": [{}, {\"id\": \"wrong" + strings.Repeat("x", 2000) + "\"}]\n}"
	got := send(t, router(t, newWorld(), api.Config{}), request{
		method: "POST", path: "/console/schemas/variant_call/try", form: url.Values{"study": {"S1"}, "payload": {payload}},
	})
	body := got.Body.String()
	if got.Code != http.StatusOK || strings.Count(body, `<span class="no">5002</span>`) != 1 || strings.Contains(body, `<span class="no">2500</span>`) ||
		!strings.Contains(body, `<span class="no">4999</span>`) || !strings.Contains(body, "xxx …</span>") {
		t.Errorf("status %d, %d bytes", got.Code, len(body))
	}
}
