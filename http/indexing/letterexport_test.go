package indexing_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
	"tutti/internal/tools/testkit"
)

func acceptNDJSON() http.Header { return http.Header{"Accept": {"application/x-ndjson"}} }

func TestExportGivesEveryLetterWhole(t *testing.T) {
	for _, tt := range []struct {
		letters int
		query   string
		first   int
		want    int
		next    string
	}{
		{0, "", 0, 0, ""},
		{1, "", 0, 1, ""},
		{64, "", 0, 64, ""},
		{1500, "", 0, 1500, ""},
		{1500, "?limit=100", 0, 100, "100"},
		{1500, "?limit=100&cursor=1450", 1450, 50, ""},
		{100, "?limit=100", 0, 100, ""},
		{1500, "?cursor=7", 7, 1493, ""},
	} {
		t.Run(fmt.Sprintf("%d%s", tt.letters, tt.query), func(t *testing.T) {
			h := apitest.NewHandler(t, apitest.WithLetters(shelf(tt.letters, []byte("{\n\"a\": [1]\n}"))), api.Config{})
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/dead-letters" + tt.query, Header: acceptNDJSON()})
			if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/x-ndjson" {
				t.Fatalf("got %d %s", res.StatusCode, res.Header.Get("Content-Type"))
			}
			lines := bytes.SplitAfter(body, []byte("\n"))
			if last := lines[len(lines)-1]; len(last) != 0 {
				t.Errorf("the last line does not end: %q", last)
			}
			if len(lines)-1 != tt.want {
				t.Fatalf("%d lines, want %d", len(lines)-1, tt.want)
			}
			for i, line := range lines[:tt.want] {
				var v any
				if err := json.Unmarshal(line, &v); err != nil {
					t.Fatalf("line %d: %v", i, err)
				}
				if err := apitest.Document(t).Components.Schemas["DeadLetter"].Value.VisitJSON(v); err != nil {
					t.Fatalf("line %d: %v", i, err)
				}
				letter := v.(map[string]any)
				if letter["id"] != fmt.Sprintf("letter-%d", tt.first+i) || fmt.Sprint(letter["document"]) != "map[a:[1]]" {
					t.Fatalf("line %d: %s", i, line)
				}
			}
			if got := res.Trailer.Get("Next-Cursor"); got != tt.next {
				t.Errorf("next cursor %q, want %q", got, tt.next)
			}
		})
	}
}

func TestExportByAccept(t *testing.T) {
	h := apitest.NewHandler(t, apitest.WithLetters(shelf(1, nil)), api.Config{})
	const list, lines = "application/json", "application/x-ndjson"
	for accept, want := range map[string]string{
		"":                         list,
		"*/*":                      list,
		"application/*":            list,
		"application/json":         list,
		"application/problem+json": list,
		"application/x-ndjson":     lines,
		"Application/X-NDJSON":     lines,
		"application/x-ndjson;q=0.5, application/json;q=0.4":    lines,
		"application/x-ndjson;q=0.4, application/json;q=0.5":    list,
		"application/x-ndjson, application/json":                list,
		"application/json, application/x-ndjson":                list,
		"application/x-ndjson, */*":                             lines,
		"application/x-ndjson, application/problem+json;q=0.9":  lines,
		"application/*;q=0.3, application/x-ndjson;q=0.2":       list,
		"application/json;q=0, */*":                             lines,
		"application/x-ndjson;q=0, */*;q=0.1":                   list,
		"application/x-ndjson;q=0":                              "",
		"application/json;q=0, application/x-ndjson;q=0.0, */*": "",
		"text/html": "",
		"text/html, application/xhtml+xml, */*;q=0.8":            list,
		"application/x-ndjson;charset=utf-8":                     lines,
		"application/ndjson":                                     "",
		"nonsense;;, application/x-ndjson":                       lines,
		"application/x-ndjson;q=nonsense, application/json;q=.9": lines,
	} {
		t.Run(accept, func(t *testing.T) {
			header := http.Header{}
			if accept != "" {
				header.Set("Accept", accept)
			}
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/dead-letters", Header: header})
			if want == "" {
				p := apitest.WantProblem(t, res, body, 406, "not_acceptable", "application/json or application/x-ndjson only")
				if p.Hint != "accept application/json or application/x-ndjson" {
					t.Errorf("hint %q", p.Hint)
				}
				return
			}
			if got := res.Header.Get("Content-Type"); got != want || !strings.Contains(strings.Join(res.Header.Values("Vary"), ","), "Accept") {
				t.Errorf("got %s, varies by %q", got, res.Header.Values("Vary"))
			}
		})
	}
	for _, target := range []string{"/dead-letters/x", "/jobs"} {
		res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target, Header: acceptNDJSON()})
		apitest.WantProblem(t, res, body, 406, "not_acceptable", "JSON only")
	}
}

func FuzzAccept(f *testing.F) {
	for _, s := range []string{"*/*", "application/x-ndjson;q=0.1", "a/b;q=NaN", ";q=", "application/json;q=-1,*/*;q=9e999"} {
		f.Add(s)
	}
	h := apitest.NewHandler(f, apitest.WithLetters(shelf(1, nil)), api.Config{})
	f.Fuzz(func(t *testing.T, accept string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/dead-letters", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		want := map[string]int{"application/json": 200, "application/x-ndjson": 200, "application/problem+json": 406}
		if got := w.Header().Get("Content-Type"); want[got] != w.Code {
			t.Errorf("%q: %d %s", accept, w.Code, got)
		}
	})
}

func TestHeadOfAnExportReadsOneLetter(t *testing.T) {
	l := shelf(100000, nil)
	asked := 0
	list := l.ListFn
	l.ListFn = func(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
		asked += f.Limit
		return list(ctx, f)
	}
	server := httptest.NewServer(apitest.NewHandler(t, apitest.WithLetters(l), api.Config{}))
	defer server.Close()
	res, body := askExport(t, server, "HEAD", "")
	if _, err := io.ReadAll(body); err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/x-ndjson" || asked != 1 {
		t.Errorf("got %d %s, %d letters asked for", res.StatusCode, res.Header.Get("Content-Type"), asked)
	}
}

func TestExportThatCannotBeginIsAProblem(t *testing.T) {
	l := apitest.NoLetters()
	l.ListFn = func(context.Context, core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
		return nil, "", core.NewError(core.CodeUnavailable, "the queue does not answer")
	}
	res, body := apitest.Do(t, apitest.NewHandler(t, apitest.WithLetters(l), api.Config{}), apitest.Ask{Method: "GET", Target: "/dead-letters", Header: acceptNDJSON()})
	apitest.WantProblem(t, res, body, 503, "unavailable", "does not answer")
}

// TestExportThatFailsOnTheWayIsBrokenOff: a client must not take a part for the whole.
func TestExportThatFailsOnTheWayIsBrokenOff(t *testing.T) {
	l := shelf(1000, []byte(`{}`))
	list := l.ListFn
	l.ListFn = func(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
		if f.Cursor == "128" {
			return nil, "", core.WrapError(core.CodeUnavailable, "the queue does not answer", errors.New("dial: refused"))
		}
		return list(ctx, f)
	}
	var log testkit.Buffer
	server := httptest.NewServer(apitest.NewHandler(t, apitest.WithLetters(l), api.Config{Logger: slog.New(slog.NewJSONHandler(&log, nil))}))
	res, body := askExport(t, server, "GET", "")
	read, err := io.ReadAll(body)
	if res.StatusCode != 200 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %d, %v", res.StatusCode, err)
	}
	if n := bytes.Count(read, []byte("\n")); n != 128 {
		t.Errorf("%d lines came before", n)
	}
	server.Close() // waits for the handler
	if !strings.Contains(log.String(), `"err":"listing dead letters: the queue does not answer: dial: refused"`) {
		t.Errorf("log: %s", log.String())
	}
}

// TestExportIsSentAsItIsRead: the second page is read only after the client has had the first.
func TestExportIsSentAsItIsRead(t *testing.T) {
	l := shelf(100, nil)
	list := l.ListFn
	read := make(chan struct{})
	l.ListFn = func(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
		if f.Cursor != "" {
			select {
			case <-read:
			case <-ctx.Done():
			}
		}
		return list(ctx, f)
	}
	server := httptest.NewServer(apitest.NewHandler(t, apitest.WithLetters(l), api.Config{}))
	defer server.Close()
	_, body := askExport(t, server, "GET", "")
	lines := bufio.NewReader(body)
	for range 64 {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	close(read)
	if rest, err := io.ReadAll(lines); err != nil || bytes.Count(rest, []byte("\n")) != 36 {
		t.Errorf("%d lines, %v", bytes.Count(rest, []byte("\n")), err)
	}
}

// TestExportEndsWhenItsClientGoes: the list has no end, so that only the client's going can end the handler, which Close
// waits for.
func TestExportEndsWhenItsClientGoes(t *testing.T) {
	l := apitest.NoLetters()
	l.ListFn = func(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
		return make([]core.DeadLetter, f.Limit), "more", ctx.Err()
	}
	server := httptest.NewServer(apitest.NewHandler(t, apitest.WithLetters(l), api.Config{}))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/dead-letters", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = acceptNDJSON()
	res, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	res.Body.Close()
	server.Close()
}

// askExport asks a server for an export, whose body ends with the test.
func askExport(t *testing.T, server *httptest.Server, method, query string) (*http.Response, io.Reader) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/dead-letters"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = acceptNDJSON()
	res, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res, res.Body
}
