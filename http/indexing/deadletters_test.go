package indexing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
	"tutti/internal/tools/fakes"
)

// shelf answers List from n letters; a cursor is the number of the next one.
func shelf(n int, document []byte) *fakes.Letters {
	l := apitest.NoLetters()
	l.ListFn = func(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		from, err := strconv.Atoi("0" + f.Cursor)
		if err != nil {
			return nil, "", core.NewError(core.CodeInvalid, "the cursor is not one of this list")
		}
		var page []core.DeadLetter
		for i := from; i < min(n, from+f.Limit); i++ {
			letter := recordLetter("letter-" + strconv.Itoa(i))
			letter.Document, letter.Size = document, len(document)
			page = append(page, letter)
		}
		if from+f.Limit < n {
			return page, strconv.Itoa(from + f.Limit), nil
		}
		return page, "", nil
	}
	return l
}

func recordLetter(id string) core.DeadLetter {
	return core.DeadLetter{
		ID: id, Repository: "song.ca", Organization: "PACA-CA", RecordID: "A1", Reason: core.ReasonRejected,
		Attempts: 1, FirstAt: apitest.Noon, LastAt: apitest.Noon,
	}
}

// fullLetter has every member, and a version, which is none of the answer.
func fullLetter(id string) core.DeadLetter {
	berlin := time.FixedZone("CEST", 7200)
	l := recordLetter(id)
	l.Hint, l.EngineType, l.EngineReason = "mend the record <there>", "document_parsing_exception", "failed to parse [age] & gave up"
	l.Attempts, l.FirstAt, l.LastAt, l.JobID = 3, apitest.Noon.Add(-time.Hour).In(berlin), apitest.Noon.In(berlin), "job-1"
	kept := core.NewDeadLetterDocument([]byte(`{"analysisId": "A1", "age": "<old>"}`))
	l.Document, l.Size, l.SHA256 = kept.Bytes, kept.Size, kept.SHA256
	l.Version = 7
	l.Source, l.Position = "kafka song-analysis", "partition 3, offset 117"
	l.Request = &core.Request{
		ID: "request-1", Kind: core.KindIndex, Scope: core.ScopePage, Repository: "song.ca", Organization: "PACA-CA",
		RecordID: "A1", JobID: "job-1", Cause: core.CauseSweep, Force: true, Rebuild: true, Attempts: 2,
		ReceivedAt: apitest.Noon.In(berlin), NotBefore: apitest.Noon.In(berlin), Traceparent: "00-0-0-00", AsOf: 17,
		Page: &core.Page{Number: 1, Epoch: 1, Offset: 500, Limit: 500, Before: []uint64{1 << 63}, StepsBack: 1, SteppedBack: true},
	}
	return l
}

func TestGoldenDeadLetter(t *testing.T) {
	l := apitest.NoLetters()
	l.GetFn = func(id string) (core.DeadLetter, error) { return fullLetter(id), nil }
	res, body := apitest.Do(t, apitest.NewHandler(t, apitest.WithLetters(l), api.Config{}), apitest.Ask{Method: "GET", Target: "/dead-letters/a%2Fb"})
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	if bytes.Contains(body, []byte(`\u003c`)) || bytes.HasSuffix(body, []byte("\n")) {
		t.Errorf("escaped as for HTML, or with a line feed: %s", body)
	}
	apitest.Golden(t, "dead_letter", body)
}

func TestGoldenDeadLetters(t *testing.T) {
	l := apitest.NoLetters()
	l.ListFn = func(context.Context, core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
		message := core.DeadLetter{
			ID: "m", Reason: core.ReasonNotUnderstood, Attempts: 1, FirstAt: apitest.Noon, LastAt: apitest.Noon, Source: "webhook",
			Document: []byte("{"), Size: 1, Truncated: true,
		}
		return []core.DeadLetter{fullLetter("f"), message}, "", nil
	}
	_, body := apitest.Do(t, apitest.NewHandler(t, apitest.WithLetters(l), api.Config{}), apitest.Ask{Method: "GET", Target: "/dead-letters"})
	apitest.Golden(t, "dead_letters", body)
}

// TestDocumentOfADeadLetter: the form in which a document is returned, complete.
func TestDocumentOfADeadLetter(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, tt := range map[string]struct {
		document  string
		truncated bool
		member    string
		value     string
	}{
		"object":               {`{"a": 1,  "b": "<&>"}`, false, "document", `{"a":1,"b":"<&>"}`},
		"null":                 {`null`, false, "document", `null`},
		"number that is large": {`[123456789012345678901234567890.10]`, false, "document", `[123456789012345678901234567890.10]`},
		"two lines":            {"{\n}", false, "document", `{}`},
		"whole but marked cut": {`{}`, true, "documentText", `"{}"`},
		"cut":                  {`{"a": "x`, true, "documentText", `"{\"a\": \"x"`},
		"cut in a character":   {"{\"a\": \"\xf0\x9f\xa7", true, "documentText", `"{\"a\": \""`},
		"cut in two bytes":     {"\"\xc3", true, "documentText", `"\""`},
		"cut behind one":       {"\"é", true, "documentText", `"\"é"`},
		"broken JSON":          {`{"a": }`, false, "documentText", `"{\"a\": }"`},
		"lines":                {"a\tb\r\nc", false, "documentText", `"a\tb\r\nc"`},
		"as deep as is shown":  {deep(500), false, "document", deep(500)},
		"too deep":             {deep(501), false, "documentText", `"` + deep(501) + `"`},
		"brackets in a string": {`"\"` + strings.Repeat("[", 501) + `"`, false, "document", `"\"` + strings.Repeat("[", 501) + `"`},
		"deeper than a parser": {deep(20000), false, "documentText", `"` + deep(20000) + `"`},
		"JSON of bad UTF-8":    {"\"\xff\"", false, "documentBase64", `"Iv8i"`},
		"half a character":     {"\xc3", false, "documentBase64", `"ww=="`},
		"control characters":   {"a\x00b", false, "documentBase64", `"YQBi"`},
		"binary, cut":          {"\xff\xfe\x00", true, "documentBase64", `"//4A"`},
		"nothing":              {``, false, "", ``},
	} {
		t.Run(name, func(t *testing.T) {
			l := apitest.NoLetters()
			l.GetFn = func(id string) (core.DeadLetter, error) {
				letter := recordLetter(id)
				letter.Document, letter.Size, letter.Truncated = []byte(tt.document), len(tt.document), tt.truncated
				return letter, nil
			}
			_, body := apitest.Do(t, apitest.NewHandler(t, apitest.WithLetters(l), api.Config{}), apitest.Ask{Method: "GET", Target: "/dead-letters/x"})
			got := documentOf(t, body)
			want := map[string]string{}
			if tt.member != "" {
				want[tt.member] = tt.value
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDocumentDoesNotGrow holds the largest kept documents against twice their size.
func TestDocumentDoesNotGrow(t *testing.T) {
	for _, c := range []string{"<", "\"", "\\", "\x00", "\x1f", "\x7f", "\xff", "\n", "\u2028", "🧬", "["} {
		t.Run(strconv.Quote(c), func(t *testing.T) {
			document := strings.Repeat(c, core.MaxDeadLetterBytes/len(c))
			l := apitest.NoLetters()
			l.GetFn = func(id string) (core.DeadLetter, error) {
				return core.DeadLetter{ID: id, Reason: core.ReasonTooLarge, Document: []byte(document), Truncated: true}, nil
			}
			_, body := apitest.Do(t, apitest.NewHandler(t, apitest.WithLetters(l), api.Config{}), apitest.Ask{Method: "GET", Target: "/dead-letters/x"})
			if len(body) < core.MaxDeadLetterBytes/2 || len(body) > 2*core.MaxDeadLetterBytes+1024 {
				t.Errorf("%d bytes are shown in %d", len(document), len(body))
			}
		})
	}
}

func FuzzDocumentOfADeadLetter(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\u0000"]}`, "\"\xff", `"\"[`, "\x00", "[[1,2],{}", "\u2028", "\xf0\x9f"} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	l := apitest.NoLetters()
	h := apitest.NewHandler(f, apitest.WithLetters(l), api.Config{})
	f.Fuzz(func(t *testing.T, document []byte, truncated bool) {
		l.GetFn = func(id string) (core.DeadLetter, error) {
			letter := recordLetter(id)
			letter.Document, letter.Truncated = document, truncated
			return letter, nil
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/dead-letters/x", nil))
		body := w.Body.Bytes()
		var got struct {
			Document       json.RawMessage
			DocumentText   *string
			DocumentBase64 []byte
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%v: %q", err, body)
		}
		switch {
		case got.Document != nil:
			var compact bytes.Buffer
			if err := json.Compact(&compact, document); err != nil || compact.String() != string(got.Document) || truncated {
				t.Errorf("%v: %q is shown as %q", err, document, got.Document)
			}
		case got.DocumentText != nil:
			cut := len(document) - len(*got.DocumentText)
			if !strings.HasPrefix(string(document), *got.DocumentText) || cut != 0 && (cut > 3 || !truncated) {
				t.Errorf("%q is shown as %q", document, *got.DocumentText)
			}
		case !bytes.Equal(document, got.DocumentBase64):
			// What is left of a single character that was cut is no text.
			if !truncated || len(document) > 3 {
				t.Errorf("%q is shown as %q", document, got.DocumentBase64)
			}
		}
	})
}

// documentOf returns the members that show a letter's document, compact.
func documentOf(t *testing.T, body []byte) map[string]string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	got := map[string]string{}
	for name, value := range members {
		if strings.HasPrefix(name, "document") {
			got[name] = string(value)
		}
	}
	return got
}

func TestListDeadLetters(t *testing.T) {
	for name, tt := range map[string]struct{ query, call string }{
		"defaults": {"", `"" "" "" 50 ""`},
		"all":      {"?repository=song.ca&organization=CA+1&reason=crash_loop&limit=64&cursor=c%2B1", `"song.ca" "CA 1" "crash_loop" 64 "c+1"`},
		"least":    {"?limit=1&reason=&repository=&organization=", `"" "" "" 1 ""`},
	} {
		t.Run(name, func(t *testing.T) {
			l := apitest.NoLetters()
			l.ListFn = func(_ context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
				if call := fmt.Sprintf("%q %q %q %d %q", f.Repository, f.Organization, f.Reason, f.Limit, f.Cursor); call != tt.call {
					t.Errorf("call: got %s, want %s", call, tt.call)
				}
				return nil, "", nil
			}
			res, body := apitest.Do(t, apitest.NewHandler(t, apitest.WithLetters(l), api.Config{}), apitest.Ask{Method: "GET", Target: "/dead-letters" + tt.query})
			if res.StatusCode != 200 || string(body) != `{"deadLetters":[]}` {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
		})
	}
}

// TestLongListIsReadInPages: what is held of documents is bounded by a page, whatever limit is asked for.
func TestLongListIsReadInPages(t *testing.T) {
	for _, tt := range []struct {
		limit, letters int
		calls          string
		next           string
	}{
		{200, 1000, "[64 64 64 8]", "200"},
		{1000, 130, "[64 64 64]", ""},
		{128, 128, "[64 64]", ""},
		{128, 129, "[64 64]", "128"},
	} {
		t.Run(fmt.Sprintf("%d of %d", tt.limit, tt.letters), func(t *testing.T) {
			l := shelf(tt.letters, []byte(`{}`))
			var calls []int
			list := l.ListFn
			l.ListFn = func(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
				calls = append(calls, f.Limit)
				return list(ctx, f)
			}
			_, body := apitest.Do(t, apitest.NewHandler(t, apitest.WithLetters(l), api.Config{}),
				apitest.Ask{Method: "GET", Target: "/dead-letters?limit=" + strconv.Itoa(tt.limit)})
			var got struct {
				DeadLetters []struct {
					ID       string
					Document json.RawMessage
				}
				NextCursor string
			}
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			if len(got.DeadLetters) != min(tt.limit, tt.letters) || got.NextCursor != tt.next || fmt.Sprint(calls) != tt.calls {
				t.Errorf("%d letters, next %q, calls %v", len(got.DeadLetters), got.NextCursor, calls)
			}
			for i, letter := range got.DeadLetters {
				if letter.ID != "letter-"+strconv.Itoa(i) || letter.Document != nil {
					t.Fatalf("letter %d: %+v", i, letter)
				}
			}
		})
	}
}

func TestListDeadLettersRefusesBadInput(t *testing.T) {
	h := apitest.NewHandler(t, apitest.WithLetters(shelf(3, nil)), api.Config{})
	for name, tt := range map[string]struct{ query, text string }{
		"limit zero":      {"limit=0", "from 1 to 1000"},
		"limit too high":  {"limit=1001", "from 1 to 1000"},
		"limit a word":    {"limit=ten", "from 1 to 1000"},
		"reason":          {"reason=Rejected", "reason must be one of [rejected too_large invalid_id"},
		"reason twice":    {"reason=rejected&reason=too_large", "given 2 times"},
		"repository":      {"repository=..", "repository must not be"},
		"organization":    {"organization=..", "organization must not be"},
		"cursor":          {"cursor=x", "cursor is not one"},
		"cursor too long": {"cursor=" + strings.Repeat("1", 1025), "cursor was not issued"},
		"escape":          {"cursor=%zz", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, accept := range []string{"application/json", "application/x-ndjson"} {
				res, body := apitest.Do(t, h, apitest.Ask{
					Method: "GET", Target: "/dead-letters?" + tt.query, Header: map[string][]string{"Accept": {accept}},
				})
				apitest.WantProblem(t, res, body, 400, "invalid", tt.text)
			}
		})
	}
}

func TestRetryDeadLetter(t *testing.T) {
	l := apitest.NoLetters()
	l.RetryFn = func(id, requestID string) (core.DeadLetter, error) {
		if id != "a/b" || requestID != apitest.TestRequestID {
			t.Errorf("got %q %q", id, requestID)
		}
		return recordLetter(id), nil
	}
	h := apitest.NewHandler(t, apitest.WithLetters(l), api.Config{})
	for _, body := range []string{"", "{}", ` {"x": 1} `} {
		res, got := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/dead-letters/a%2Fb/retry", Body: body})
		want := `{"successful":true,"requestId":"req-1","id":"a/b","repository":"song.ca","organization":"PACA-CA","recordId":"A1"}`
		if res.StatusCode != 202 || string(got) != want {
			t.Errorf("got %d %s", res.StatusCode, got)
		}
	}
	l.RetryFn = func(id, _ string) (core.DeadLetter, error) {
		return core.DeadLetter{ID: id, Repository: "song.ca"}, nil
	}
	_, got := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/dead-letters/retry/retry"})
	if want := `{"successful":true,"requestId":"req-1","id":"retry","repository":"song.ca"}`; string(got) != want {
		t.Errorf("got %s", got)
	}
}

func TestRetryDeadLetters(t *testing.T) {
	for name, tt := range map[string]struct{ query, call string }{
		"all":             {"", `"" "" "" "req-1"`},
		"of a repository": {"?repository=song.ca", `"song.ca" "" "" "req-1"`},
		"of all three":    {"?reason=too_large&repository=song.ca&organization=S1", `"song.ca" "S1" "too_large" "req-1"`},
	} {
		t.Run(name, func(t *testing.T) {
			l := apitest.NoLetters()
			l.RetryAllFn = func(f core.DeadLetterFilter, requestID string) (core.Job, error) {
				if call := fmt.Sprintf("%q %q %q %q", f.Repository, f.Organization, f.Reason, requestID); call != tt.call {
					t.Errorf("call: got %s, want %s", call, tt.call)
				}
				return core.Job{ID: "a/b"}, nil
			}
			res, body := apitest.Do(t, apitest.NewHandler(t, apitest.WithLetters(l), api.Config{BasePath: "/base"}), apitest.Ask{Method: "POST", Target: "/base/dead-letters/retry" + tt.query})
			if want := `{"successful":true,"requestId":"req-1","jobId":"a/b"}`; res.StatusCode != 202 || string(body) != want {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
			if location := res.Header.Get("Location"); location != "/base/jobs/a%2Fb" {
				t.Errorf("location %s", location)
			}
		})
	}
}

func TestDiscardDeadLetter(t *testing.T) {
	l := apitest.NoLetters()
	var discarded string
	l.DeleteFn = func(id string) error {
		discarded = id
		return nil
	}
	res, body := apitest.Do(t, apitest.NewHandler(t, apitest.WithLetters(l), api.Config{}), apitest.Ask{Method: "DELETE", Target: "/dead-letters/a%2Fb"})
	if res.StatusCode != 204 || len(body) != 0 || discarded != "a/b" {
		t.Errorf("got %d %q, discarded %q", res.StatusCode, body, discarded)
	}
}

func TestDeadLetterErrors(t *testing.T) {
	down := core.NewError(core.CodeUnavailable, "the queue does not answer")
	failing := &fakes.Letters{
		ListFn: func(context.Context, core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
			return nil, "", down
		},
		GetFn:      func(string) (core.DeadLetter, error) { return core.DeadLetter{}, down },
		DeleteFn:   func(string) error { return down },
		RetryFn:    func(string, string) (core.DeadLetter, error) { return core.DeadLetter{}, down },
		RetryAllFn: func(core.DeadLetterFilter, string) (core.Job, error) { return core.Job{}, down },
	}
	conflict := apitest.NoLetters()
	conflict.RetryFn = func(string, string) (core.DeadLetter, error) {
		return core.DeadLetter{}, &core.Error{Code: core.CodeConflict, Message: "still not understood", Hint: "discard it"}
	}
	for _, tt := range []struct {
		letters        *fakes.Letters
		method, target string
		body           string
		status         int
		code, text     string
	}{
		{failing, "GET", "/dead-letters", "", 503, "unavailable", "does not answer"},
		{failing, "GET", "/dead-letters/x", "", 503, "unavailable", "does not answer"},
		{failing, "DELETE", "/dead-letters/x", "", 503, "unavailable", "does not answer"},
		{failing, "POST", "/dead-letters/x/retry", "", 503, "unavailable", "does not answer"},
		{failing, "POST", "/dead-letters/retry", "", 503, "unavailable", "does not answer"},
		{apitest.NoLetters(), "GET", "/dead-letters/x", "", 404, "not_found", "no such dead letter"},
		{apitest.NoLetters(), "GET", "/dead-letters/retry", "", 404, "not_found", "no such dead letter"},
		{apitest.NoLetters(), "DELETE", "/dead-letters/x", "", 404, "not_found", "no such dead letter"},
		{apitest.NoLetters(), "DELETE", "/dead-letters/retry", "", 404, "not_found", "no such dead letter"},
		{apitest.NoLetters(), "POST", "/dead-letters/x/retry", "", 404, "not_found", "no such dead letter"},
		{conflict, "POST", "/dead-letters/x/retry", "", 409, "conflict", "still not understood"},
		{apitest.NoLetters(), "GET", "/dead-letters/%2E%2E", "", 400, "invalid", "relative path"},
		{apitest.NoLetters(), "DELETE", "/dead-letters/%00", "", 400, "invalid", "control character"},
		{apitest.NoLetters(), "POST", "/dead-letters/" + strings.Repeat("x", 513) + "/retry", "", 400, "invalid", "513 bytes"},
		{apitest.NoLetters(), "GET", "/dead-letters/", "", 400, "invalid", "empty"},
		{apitest.NoLetters(), "POST", "/dead-letters//retry", "", 400, "invalid", "empty"},
		{apitest.NoLetters(), "POST", "/dead-letters/x/retry", "[]", 400, "invalid", "not a JSON object"},
		{apitest.NoLetters(), "POST", "/dead-letters/retry", "{", 400, "invalid", "not valid JSON"},
		{apitest.NoLetters(), "DELETE", "/dead-letters/x", "1", 400, "invalid", "not a JSON object"},
		{apitest.NoLetters(), "POST", "/dead-letters/retry?reason=none", "", 400, "invalid", "reason must be one of"},
		{apitest.NoLetters(), "POST", "/dead-letters/retry?repository=%2E", "", 400, "invalid", "repository must not be"},
		{apitest.NoLetters(), "DELETE", "/dead-letters", "", 405, "method_not_allowed", "this method"},
		{apitest.NoLetters(), "POST", "/dead-letters", "", 405, "method_not_allowed", "this method"},
		{apitest.NoLetters(), "POST", "/dead-letters/x", "", 405, "method_not_allowed", "this method"},
		{apitest.NoLetters(), "GET", "/dead-letters/x/retry", "", 405, "method_not_allowed", "this method"},
	} {
		t.Run(tt.method+tt.target+tt.body, func(t *testing.T) {
			res, body := apitest.Do(t, apitest.NewHandler(t, apitest.WithLetters(tt.letters), api.Config{}),
				apitest.Ask{Method: tt.method, Target: tt.target, Body: tt.body})
			apitest.WantProblem(t, res, body, tt.status, tt.code, tt.text)
		})
	}
}

func TestRetriesRefuseOtherContent(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for _, a := range []apitest.Ask{
		{Method: "POST", Target: "/dead-letters/x/retry"}, {Method: "POST", Target: "/dead-letters/retry"}, {Method: "DELETE", Target: "/dead-letters/x"},
	} {
		a.Body, a.Header = "{}", map[string][]string{"Content-Type": {"text/plain"}}
		res, body := apitest.Do(t, h, a)
		apitest.WantProblem(t, res, body, 415, "unsupported_media_type", "not declared as JSON")
		a.Header = map[string][]string{"Sec-Fetch-Site": {"cross-site"}}
		res, body = apitest.Do(t, h, a)
		apitest.WantProblem(t, res, body, 403, "forbidden", "another origin")
	}
}

// TestReasonsAreThoseOfTheCore holds what the list takes, and the document, against the constants.
func TestReasonsAreThoseOfTheCore(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../internal/core/deadletter.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, value)
		}
		return true
	})
	var described []string
	for _, v := range apitest.Document(t).Components.Schemas["DeadLetterReason"].Value.Enum {
		described = append(described, v.(string))
	}
	if diff := cmp.Diff(want, described); diff != "" || len(want) == 0 {
		t.Errorf("core, document: %s", diff)
	}
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for _, reason := range slices.Concat(want, []string{""}) {
		if res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/dead-letters?reason=" + reason}); res.StatusCode != 200 {
			t.Errorf("%s: %d %s", reason, res.StatusCode, body)
		}
	}
}
