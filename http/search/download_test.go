package search_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

const (
	form  = "application/x-www-form-urlencoded"
	files = `{"files":[{"fileName":"a.tsv","columns":[]}],"fileName":"b"}`
)

// formOf is the body that a page with Arranger's components sends.
func formOf(params string) string {
	return url.Values{"params": {params}, "httpHeaders": {`{"Authorization":"Bearer x"}`}, "downloadKey": {"1-2-3"}}.Encode()
}

// TestDownloadParams: a form of a page, and JSON, with the params inside or as they are.
func TestDownloadParams(t *testing.T) {
	for name, tt := range map[string]struct{ contentType, body, want string }{
		"form":              {form, formOf(files), files},
		"form with charset": {form + "; charset=UTF-8", "params=%7B%7D", "{}"},
		"form of a page":    {form, "params=%7B%22a%22%3A%22+%26%2B%22%7D&httpHeaders=%7B%7D&downloadKey=x", `{"a":" &+"}`},
		"JSON":              {"application/json", files, files},
		"JSON, empty":       {"application/json", "{}", "{}"},
		"member":            {"application/json", `{"params":` + files + `,"downloadKey":"x"}`, files},
		"member as text":    {"application/json; charset=utf-8", `{"params":"{\"a\":1.0}"}`, `{"a":1.0}`},
		"member null":       {"application/json", `{"params":null}`, `{"params":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, target := range []string{"/download", "/participants/download", "/participant/download"} {
				h, _, last := apitest.Searched(t, api.Config{}, apitest.Participants())
				res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: target, Body: tt.body, Header: http.Header{"Content-Type": {tt.contentType}}})
				if res.StatusCode != 200 || string(body) != "id\nA\n" || last.Catalogue != "participants" || string(last.Download.Params) != tt.want {
					t.Errorf("%s: got %d %s, params %s of %q", target, res.StatusCode, body, last.Download.Params, last.Catalogue)
				}
			}
		})
	}
}

func TestDownloadBodiesAtFault(t *testing.T) {
	const json = "application/json"
	const empty, missing = "send a JSON object, or a form whose field params is one", "set it to a JSON object that selects what to download"
	const refused, media = "the body is not declared as application/x-www-form-urlencoded or JSON", "send Content-Type: application/x-www-form-urlencoded or application/json, in UTF-8, and no Content-Encoding"
	for name, tt := range map[string]struct {
		contentType, body string
		status            int
		detail, hint      string
	}{
		"empty form":      {form, "", 400, "the body is empty", empty},
		"empty JSON":      {json, "\n", 400, "the body is empty", empty},
		"no params":       {form, "param=%7B%7D", 400, "field params of the form is missing", missing},
		"params twice":    {form, "params=%7B%7D&params=%7B%7D", 400, "field params of the form is given more than once", ""},
		"malformed form":  {form, "params=%zz", 400, "the form is malformed", ""},
		"semicolons":      {form, "params={};a=b", 400, "the form is malformed", ""},
		"broken params":   {form, "params={", 400, "field params of the form is not valid JSON", ""},
		"empty params":    {form, "params=", 400, "field params of the form is not valid JSON", ""},
		"params array":    {form, "params=[]", 400, "field params of the form is not a JSON object", ""},
		"params no UTF-8": {form, "params=%FF", 400, "field params of the form is not UTF-8", ""},
		"params member":   {form, `params={"a":1,"a":2}`, 400, `member "a" of field params of the form appears twice`, ""},
		"broken JSON":     {json, "{", 400, "the body is not valid JSON", ""},
		"array":           {json, "[]", 400, "the body is not a JSON object", ""},
		"member array":    {json, `{"params":[]}`, 400, "member params of the body is not a JSON object", ""},
		"member broken":   {json, `{"params":"{"}`, 400, "member params of the body is not valid JSON", ""},
		"member NUL":      {json, `{"params":"\u0000"}`, 400, "member params of the body contains a NUL character", ""},
		"no type":         {"", "{}", 415, refused, media},
		"text":            {"text/plain", "{}", 415, refused, media},
		"multipart":       {"multipart/form-data; boundary=x", "{}", 415, refused, media},
		"other charset":   {form + "; charset=latin1", "params={}", 415, refused, media},
	} {
		t.Run(name, func(t *testing.T) {
			h, _, last := apitest.Searched(t, api.Config{}, apitest.Participants())
			res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/download", Body: tt.body, Header: http.Header{"Content-Type": {tt.contentType}}})
			code := map[int]string{400: "invalid", 415: "unsupported_media_type"}[tt.status]
			p := apitest.WantProblem(t, res, body, tt.status, code, tt.detail)
			if p.Detail != tt.detail || p.Hint != tt.hint || last.Catalogue != "" || bytes.Contains(body, []byte(`"errors"`)) {
				t.Errorf("got %s, asked of %q", body, last.Catalogue)
			}
		})
	}
}

// TestDownloadAccept: a browser takes anything; what a client names is told to who makes the file; what it excludes it is not
// given.
func TestDownloadAccept(t *testing.T) {
	const all = "text/tab-separated-values or text/csv or application/x-ndjson or application/json or application/gzip"
	const none = "this path answers " + all + " only"
	const csv = "the download is text/csv, which the header Accept excludes"
	for accept, tt := range map[string]struct{ named, detail, hint string }{
		"":    {},
		"*/*": {},
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": {},
		"text/*":                                 {},
		"text/csv":                               {named: "text/csv"},
		"text/csv;q=0.5, application/x-ndjson":   {named: "application/x-ndjson"},
		"application/json, text/plain, */*":      {named: "application/json"},
		"application/json":                       {named: "application/json", detail: csv, hint: "accept text/csv, or request another format"},
		"text/*, text/csv;q=0":                   {detail: csv, hint: "accept text/csv, or request another format"},
		"application/gzip":                       {named: "application/gzip", detail: csv, hint: "accept text/csv, or request another format"},
		"text/html":                              {detail: none, hint: "accept " + all},
		"application/graphql-response+json, a/b": {detail: none, hint: "accept " + all},
	} {
		t.Run(accept, func(t *testing.T) {
			h, p, _ := apitest.Searched(t, api.Config{}, apitest.Participants())
			told := "nothing"
			p.Searches.DownloadFn = func(ctx context.Context, id string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error {
				told = r.Accept
				return apitest.Writing(core.DownloadHead{ContentType: "text/csv; charset=utf-8; header=present", FileName: "a.csv"}, nil, "id\r\n")(ctx, id, who, r, begin)
			}
			header := http.Header{"Content-Type": {form}, "Accept": {accept}}
			res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/download", Body: formOf("{}"), Header: header})
			if tt.detail == none {
				tt.named = "nothing"
			}
			if told != tt.named {
				t.Errorf("told %q, want %q", told, tt.named)
			}
			if tt.detail == "" {
				if res.StatusCode != 200 || string(body) != "id\r\n" || res.Header.Get("Content-Type") != "text/csv; charset=utf-8; header=present" {
					t.Errorf("got %d %s %v", res.StatusCode, body, res.Header)
				}
				return
			}
			if problem := apitest.WantProblem(t, res, body, 406, "not_acceptable", tt.detail); problem.Hint != tt.hint || problem.Detail != tt.detail {
				t.Errorf("got %q, hint %q", problem.Detail, problem.Hint)
			}
			if d := res.Header.Get("Content-Disposition"); d != "" {
				t.Errorf("disposition %q", d)
			}
		})
	}
}

// TestDownloadOfAChunk goes with its length, and what fails until then is a problem like any other.
func TestDownloadOfAChunk(t *testing.T) {
	head := core.DownloadHead{ContentType: "text/tab-separated-values; charset=utf-8", FileName: "a.tsv"}
	params := apitest.Ask{Method: "POST", Target: "/participants/download", Body: "{}", Header: http.Header{"Content-Type": {"application/json"}}}
	t.Run("whole", func(t *testing.T) {
		h, p, _ := apitest.Searched(t, api.Config{}, apitest.Participants())
		for _, pieces := range [][]string{nil, {""}, {"id\n", "", "A\n"}, {strings.Repeat("x", 32<<10-1)}} {
			p.Searches.DownloadFn = apitest.Writing(head, nil, pieces...)
			res, body := apitest.Do(t, h, params)
			want := strings.Join(pieces, "")
			if res.StatusCode != 200 || string(body) != want || res.Header.Get("Content-Length") != fmt.Sprint(len(want)) {
				t.Errorf("got %d, %d bytes, %v", res.StatusCode, len(body), res.Header)
			}
			if got := res.Header.Get("Content-Disposition"); got != `attachment; filename="a.tsv"` || res.Header.Get("Content-Type") != head.ContentType {
				t.Errorf("disposition %s, type %s", got, res.Header.Get("Content-Type"))
			}
			if vary := strings.Join(res.Header.Values("Vary"), ", "); vary != "Accept, Authorization" || res.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("vary %s, %v", vary, res.Header)
			}
		}
	})
	gone := core.WrapError(core.CodeUnavailable, "the engine does not answer", errors.New("secret"))
	for name, tt := range map[string]struct {
		download     func(context.Context, string, core.Principal, core.DownloadRequest, core.BeginDownload) error
		status       int
		code, detail string
	}{
		"before it begins": {func(context.Context, string, core.Principal, core.DownloadRequest, core.BeginDownload) error {
			return core.NewError(core.CodeInvalid, "there is no column donr")
		}, 400, "invalid", "there is no column donr"},
		"not offered": {func(context.Context, string, core.Principal, core.DownloadRequest, core.BeginDownload) error {
			return core.NewError(core.CodeForbidden, "this catalogue offers no downloads")
		}, 403, "forbidden", "this catalogue offers no downloads"},
		"not there": {func(context.Context, string, core.Principal, core.DownloadRequest, core.BeginDownload) error {
			return core.NewError(core.CodeNotFound, "the catalogue is not available")
		}, 404, "not_found", "the catalogue is not available"},
		"when it has begun":     {apitest.Writing(head, gone), 503, "unavailable", "the engine does not answer"},
		"after the first bytes": {apitest.Writing(head, gone, "id\n"), 503, "unavailable", "the engine does not answer"},
		"nothing happens": {func(context.Context, string, core.Principal, core.DownloadRequest, core.BeginDownload) error {
			return nil
		}, 500, "internal", "the download has neither begun nor failed"},
		"of no type":             {apitest.Writing(core.DownloadHead{FileName: "a"}, nil), 500, "internal", "the download began twice or without a media type"},
		"of a broken type":       {apitest.Writing(core.DownloadHead{ContentType: "text/csv\r\nX: y"}, nil), 500, "internal", "the download began twice or without a media type"},
		"begun twice":            {twice(head), 500, "internal", "the download began twice or without a media type"},
		"an error without words": {apitest.Writing(head, errors.New("secret"), "x"), 500, "internal", "an internal error occurred"},
	} {
		t.Run(name, func(t *testing.T) {
			h, p, _ := apitest.Searched(t, api.Config{}, apitest.Participants())
			p.Searches.DownloadFn = tt.download
			res, body := apitest.Do(t, h, params)
			apitest.WantProblem(t, res, body, tt.status, tt.code, tt.detail)
			if res.Header.Get("Content-Disposition") != "" || bytes.Contains(body, []byte("secret")) {
				t.Errorf("got %s, %v", body, res.Header)
			}
		})
	}
	t.Run("failed meanwhile", func(t *testing.T) {
		h, p, _ := apitest.Searched(t, api.Config{}, apitest.Plain("biosamples"))
		p.Searches.DownloadFn = func(context.Context, string, core.Principal, core.DownloadRequest, core.BeginDownload) error {
			p.Catalogues.Put(apitest.Biosamples())
			return core.NewError(core.CodeNotFound, "the catalogue is not available")
		}
		a := params
		a.Target = "/biosamples/download"
		apitest.WantFailure(t, h, a, apitest.BiosamplesFailure)
	})
}

// twice begins a download twice.
func twice(head core.DownloadHead) func(context.Context, string, core.Principal, core.DownloadRequest, core.BeginDownload) error {
	return func(_ context.Context, _ string, _ core.Principal, _ core.DownloadRequest, begin core.BeginDownload) error {
		if _, err := begin(head); err != nil {
			return err
		}
		_, err := begin(head)
		return err
	}
}

// fetch downloads over a connection.
func fetch(t *testing.T, addr string) (*http.Response, []byte, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/participants/download", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return res, body, err
}

// TestDownloadOfMany goes in pieces, and its client sees when it is not whole.
func TestDownloadOfMany(t *testing.T) {
	head := core.DownloadHead{ContentType: core.MediaTSV, FileName: "a.tsv"}
	row := strings.Repeat("x", 999) + "\n"
	rows := make([]string, 200)
	for i := range rows {
		rows[i] = row
	}
	p := apitest.Working()
	p.Catalogues.Put(apitest.Participants())
	var log bytes.Buffer
	s, addr := apitest.Start(t, p, api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	t.Run("whole", func(t *testing.T) {
		p.Searches.DownloadFn = apitest.Writing(head, nil, rows...)
		res, body, err := fetch(t, addr)
		if err != nil || res.StatusCode != 200 || len(body) != 200_000 || res.ContentLength != -1 || res.Header.Get("Content-Disposition") == "" {
			t.Errorf("got %d bytes, %v, %v", len(body), err, res)
		}
	})
	t.Run("one piece", func(t *testing.T) {
		p.Searches.DownloadFn = apitest.Writing(head, nil, strings.Join(rows, ""))
		if _, body, err := fetch(t, addr); err != nil || string(body) != strings.Join(rows, "") {
			t.Errorf("got %d bytes, %v", len(body), err)
		}
	})
	t.Run("cut", func(t *testing.T) {
		p.Searches.DownloadFn = apitest.Writing(head, core.NewError(core.CodeUnavailable, "the engine does not answer"), rows...)
		res, body, err := fetch(t, addr)
		if !errors.Is(err, io.ErrUnexpectedEOF) || res.StatusCode != 200 || len(body) == 0 || bytes.Contains(body, []byte("engine")) {
			t.Errorf("got %d bytes, %v, %v", len(body), err, res)
		}
	})
	t.Run("cut in HTTP/1.0", func(t *testing.T) {
		for _, fails := range []error{nil, core.NewError(core.CodeUnavailable, "the engine does not answer")} {
			p.Searches.DownloadFn = apitest.Writing(head, fails, rows...)
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			if _, err := io.WriteString(conn, "POST /download HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, bufio.NewReader(conn))
			if fails == nil && err != nil || fails != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("that ends with %v ends with %v", fails, err)
			}
			_ = conn.Close()
		}
	})
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := strings.Count(log.String(), `err="the engine does not answer"`); got != 2 {
		t.Errorf("logged %d times: %s", got, log.String())
	}
}

// TestDownloadEndsWithItsClient: the context of a download ends when its client disconnects.
func TestDownloadEndsWithItsClient(t *testing.T) {
	p := apitest.Working()
	p.Catalogues.Put(apitest.Participants())
	_, addr := apitest.Start(t, p, api.Config{})
	ended := make(chan error, 1)
	begun := make(chan struct{})
	p.Searches.DownloadFn = func(ctx context.Context, _ string, _ core.Principal, _ core.DownloadRequest, begin core.BeginDownload) error {
		w, err := begin(core.DownloadHead{ContentType: core.MediaTSV})
		if err != nil {
			return err
		}
		_, err = w.Write(make([]byte, 64<<10))
		close(begun)
		<-ctx.Done()
		if err == nil {
			_, err = w.Write([]byte("x"))
		}
		ended <- err
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+addr+"/download", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Header.Get("Content-Disposition"); got != `attachment; filename="download"` {
		t.Errorf("disposition %s", got)
	}
	<-begun
	cancel()
	_ = res.Body.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("writing ended with %v", err)
	}
}
