package indexing_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

const notifyPath = "/notifications/song.ca"

func faults(n int) []core.EventError {
	f := make([]core.EventError, n)
	for i := range f {
		f[i] = core.EventError{Pointer: "/" + strconv.Itoa(i), Message: "studyId is missing", DeadLetterID: "letter-" + strconv.Itoa(i)}
	}
	return f
}

// TestNotifyPassesTheBodyAsItCame: the signature is of its bytes.
func TestNotifyPassesTheBodyAsItCame(t *testing.T) {
	const sent = " {\"a\" : \"<\u00e9>\"}\r\n"
	p := apitest.Working()
	p.NotifyFn = func(repository string, body []byte, signature, requestID string) (core.NotificationResult, error) {
		if repository != "song/ca" || string(body) != sent || signature != "sha256=ab" || requestID != apitest.TestRequestID {
			t.Errorf("got %q %q %q %q", repository, body, signature, requestID)
		}
		return core.NotificationResult{Accepted: 1}, nil
	}
	res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{
		Method: "POST", Target: "/notifications/song%2Fca", Body: sent, Header: http.Header{"X-Signature-256": {"sha256=ab"}},
	})
	if want := `{"successful":true,"requestId":"req-1","accepted":1,"notUnderstood":0,"faults":[]}`; res.StatusCode != 202 || string(body) != want {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

func TestNotifyAnswersWhatBecameOfTheEvents(t *testing.T) {
	for name, tt := range map[string]struct {
		notified core.NotificationResult
		status   int
		body     string
	}{
		"an empty array": {core.NotificationResult{}, 202, `{"successful":true,"requestId":"req-1","accepted":0,"notUnderstood":0,"faults":[]}`},
		"all":            {core.NotificationResult{Accepted: 3}, 202, `{"successful":true,"requestId":"req-1","accepted":3,"notUnderstood":0,"faults":[]}`},
		"some": {
			core.NotificationResult{Accepted: 1, Errors: faults(1)},
			202,
			`{"successful":true,"requestId":"req-1","accepted":1,"notUnderstood":1,"faults":[{"pointer":"/0","message":"studyId is missing","deadLetterId":"letter-0"}]}`,
		},
		"none": {
			core.NotificationResult{Errors: []core.EventError{{Pointer: "/studyId", Message: "studyId is missing"}, {Pointer: "/1", Message: "not an object"}}},
			400,
			`{"type":"about:blank","title":"Bad Request","status":400,"detail":"studyId is missing","instance":"/notifications/song.ca",` +
				`"code":"not_understood","requestId":"req-1","violations":[{"pointer":"/studyId","message":"studyId is missing"},{"pointer":"/1","message":"not an object"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			p.NotifyFn = func(string, []byte, string, string) (core.NotificationResult, error) { return tt.notified, nil }
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "POST", Target: notifyPath, Body: "[]"})
			if res.StatusCode != tt.status || string(body) != tt.body {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
		})
	}
}

func TestNotifyListsTheFirstFaults(t *testing.T) {
	for _, accepted := range []int{0, 5} {
		p := apitest.Working()
		p.NotifyFn = func(string, []byte, string, string) (core.NotificationResult, error) {
			return core.NotificationResult{Accepted: accepted, Errors: faults(2000)}, nil
		}
		res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "POST", Target: notifyPath, Body: "[]"})
		var got struct {
			NotUnderstood      int
			Faults, Violations []core.EventError
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if accepted == 0 {
			apitest.WantProblem(t, res, body, 400, "not_understood", "studyId is missing")
			got.Faults, got.NotUnderstood = got.Violations, 2000
		}
		if len(got.Faults) != 100 || got.NotUnderstood != 2000 || got.Faults[99].Pointer != "/99" {
			t.Errorf("%d accepted: %d faults of %d", accepted, len(got.Faults), got.NotUnderstood)
		}
	}
}

func TestNotifyRefuses(t *testing.T) {
	p := apitest.Working()
	p.NotifyFn = func(string, []byte, string, string) (core.NotificationResult, error) {
		t.Error("a notification was taken")
		return core.NotificationResult{}, nil
	}
	h := apitest.NewHandler(t, p, api.Config{MaxBodyBytes: 32})
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	for name, tt := range map[string]struct {
		a          apitest.Ask
		status     int
		code, text string
	}{
		"no body":              {apitest.Ask{}, 400, "invalid", "the body is empty"},
		"white space":          {apitest.Ask{Body: " \r\n\t"}, 400, "invalid", "the body is empty"},
		"another content type": {apitest.Ask{Body: "{}", Header: header("Content-Type", "text/plain")}, 415, "unsupported_media_type", "not declared as JSON"},
		"a form":               {apitest.Ask{Body: "a=1", Header: header("Content-Type", "application/x-www-form-urlencoded")}, 415, "unsupported_media_type", "not declared as JSON"},
		"a broken type":        {apitest.Ask{Body: "{}", Header: header("Content-Type", "/")}, 415, "unsupported_media_type", "not declared as JSON"},
		"encoded":              {apitest.Ask{Body: "{}", Header: header("Content-Encoding", "gzip")}, 415, "unsupported_media_type", "not declared as JSON"},
		"too large":            {apitest.Ask{Body: strings.Repeat(" ", 33)}, 413, "too_large", "32 bytes"},
		"not a code":           {apitest.Ask{Target: "/notifications/..%2F%00", Body: "{}"}, 400, "invalid", "repositoryCode contains a control character"},
		"no code":              {apitest.Ask{Target: "/notifications/", Body: "{}"}, 400, "invalid", "empty"},
		"another site's page":  {apitest.Ask{Body: "{}", Header: header("Sec-Fetch-Site", "cross-site")}, 403, "forbidden", "another origin"},
		"another origin":       {apitest.Ask{Body: "{}", Header: header("Origin", "https://evil.example")}, 403, "forbidden", "another origin"},
		"HTML wanted":          {apitest.Ask{Body: "{}", Header: header("Accept", "text/html")}, 406, "not_acceptable", "JSON only"},
		"a query":              {apitest.Ask{Target: notifyPath + "?secret=x", Body: "{}"}, 400, "invalid", "unknown query parameter"},
		"read":                 {apitest.Ask{Method: "GET"}, 405, "method_not_allowed", "this method"},
	} {
		t.Run(name, func(t *testing.T) {
			a := tt.a
			if a.Method == "" {
				a.Method = "POST"
			}
			if a.Target == "" {
				a.Target = notifyPath
			}
			res, body := apitest.Do(t, h, a)
			apitest.WantProblem(t, res, body, tt.status, tt.code, tt.text)
		})
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", notifyPath, strings.NewReader(strings.Repeat("1", 33)))
	r.ContentLength = -1 // chunked: the size is not said
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	apitest.WantProblem(t, w.Result(), w.Body.Bytes(), 413, "too_large", "32 bytes")
}

// TestNotifyTakesWhatWebhooksSend: no Origin, no Sec-Fetch-Site, any JSON type.
func TestNotifyTakesWhatWebhooksSend(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for _, contentType := range []string{"", "application/json", "application/json; charset=utf-8", "application/cloudevents+json"} {
		header := http.Header{"User-Agent": {"hook/1"}}
		if contentType != "" {
			header.Set("Content-Type", contentType)
		}
		if res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: notifyPath, Body: "{}", Header: header}); res.StatusCode != 202 {
			t.Errorf("%q: got %d %s", contentType, res.StatusCode, body)
		}
	}
}

func TestNotifyErrors(t *testing.T) {
	for _, tt := range []struct {
		err    *core.Error
		status int
		header string
		value  string
	}{
		{core.NewError(core.CodeUnauthenticated, "the signature is missing"), 401, "WWW-Authenticate", "Bearer"},
		{core.NewError(core.CodeInvalid, "the body is not valid JSON"), 400, "WWW-Authenticate", ""},
		{core.NewError(core.CodeNotFound, "repository \"song.ca\" is not configured"), 404, "WWW-Authenticate", ""},
		{core.NewError(core.CodeUnavailable, "the queue does not answer"), 503, "Retry-After", "2"},
		{core.NewError(core.CodeOverloaded, "the queue is full"), 503, "Retry-After", "2"},
		{core.NewError(core.CodeInternal, "an internal error occurred"), 500, "Retry-After", ""},
	} {
		t.Run(string(tt.err.Code), func(t *testing.T) {
			p := apitest.Working()
			p.NotifyFn = func(string, []byte, string, string) (core.NotificationResult, error) {
				return core.NotificationResult{}, tt.err
			}
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "POST", Target: notifyPath, Body: "{}"})
			apitest.WantProblem(t, res, body, tt.status, string(tt.err.Code), tt.err.Message)
			if got := res.Header.Get(tt.header); got != tt.value {
				t.Errorf("%s: %q", tt.header, got)
			}
		})
	}
}
