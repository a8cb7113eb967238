package demo_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/tools/demo"
)

// started runs a demo until the end of the test and returns its URL.
func started(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := demo.Run(ctx, demo.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Out: in, Logger: slog.New(slog.DiscardHandler)})
		ended <- errors.Join(err, in.Close())
	}()
	base := ""
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Still running") {
		if m := regexp.MustCompile(`(http://\S+)/api-docs$`).FindStringSubmatch(lines.Text()); m != nil {
			base = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return base
}

// TestExamplesOfEveryOperation sends the examples of Swagger's page, in the order of the OpenAPI document: no response is an error,
// unless the example's summary or the operation's description names its status.
func TestExamplesOfEveryOperation(t *testing.T) {
	base := started(t)
	e := examples{t: t, base: base, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}}
	_, text := e.send(http.MethodGet, "/openapi.json", nil, "")
	e.document = gjson.Parse(text)
	sent := 0
	e.document.Get("paths").ForEach(func(path, item gjson.Result) bool {
		item.ForEach(func(method, operation gjson.Result) bool {
			t.Run(operation.Get("operationId").String(), func(t *testing.T) {
				e.t = t
				sent += e.operation(strings.ToUpper(method.String()), path.String(), operation)
			})
			return true
		})
		return true
	})
	if sent < 60 {
		t.Errorf("%d requests were found", sent)
	}
}

// statusError are the error responses to examples, all named in the operation's description: the demo's jobs have ended, its analysis
// is published, it has several catalogues, no index was rebuilt, and no token is checked.
var statusError = map[string]int{
	"CancelJob": 409, "DeleteFiles": 400, "RollbackRebuild": 404, "DropPreviousIndex": 404,
	"DescribeAuthorization": 404, "DescribeMCPAuthorization": 404, "GetOnlyCatalogue": 404, "QueryOnlyCatalogue": 404, "QueryOnlyCatalogueByGet": 404, "QueryOnlyCatalogueTagged": 404, "DownloadDocumentsOfOnlyCatalogue": 404,
}

type examples struct {
	t        *testing.T
	base     string
	client   *http.Client
	document gjson.Result
}

// resolved resolves a reference within the document.
func (e *examples) resolved(value gjson.Result) gjson.Result {
	if ref := value.Get("$ref").String(); ref != "" {
		return e.document.Get(strings.ReplaceAll(strings.TrimPrefix(ref, "#/"), "/", "."))
	}
	return value
}

// operation sends the examples of an operation's parameters with each of its bodies.
func (e *examples) operation(method, path string, operation gjson.Result) (sent int) {
	query, header := url.Values{}, http.Header{}
	for _, parameter := range operation.Get("parameters").Array() {
		parameter = e.resolved(parameter)
		name, example := parameter.Get("name").String(), parameter.Get("example")
		switch parameter.Get("in").String() {
		case "path":
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(example.String()))
		case "header":
			header.Set(name, example.String())
		default:
			values := []gjson.Result{example}
			if example.IsArray() {
				values = example.Array()
			}
			for _, value := range values {
				query.Add(name, value.String())
			}
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	said := func(status int, summary string) bool {
		return strings.Contains(summary, strconv.Itoa(status)) || status == statusError[operation.Get("operationId").String()] &&
			strings.Contains(operation.Get("description").String(), strconv.Itoa(status))
	}
	try := func(body, summary string) {
		sent++
		status, answer := e.send(method, path, header, body)
		if status >= 400 && !said(status, summary) || status < 400 && gjson.Get(answer, "errors").Exists() {
			e.t.Errorf("%s %s %s: %d %.500s", method, path, body, status, answer)
		}
	}
	content := e.resolved(operation.Get("requestBody")).Get("content")
	if !content.Exists() {
		try("", "")
	}
	content.ForEach(func(mediaType, media gjson.Result) bool {
		header.Set("Content-Type", mediaType.String())
		text := func(body gjson.Result) string {
			switch mediaType.String() {
			case "application/x-www-form-urlencoded":
			case "text/plain", "application/x-ndjson":
				return body.String()
			default:
				return body.Raw
			}
			form := url.Values{}
			body.ForEach(func(name, value gjson.Result) bool {
				form.Set(name.String(), value.String())
				return true
			})
			return form.Encode()
		}
		if one := media.Get("example"); one.Exists() {
			try(text(one), "")
		}
		media.Get("examples").ForEach(func(_, example gjson.Result) bool {
			try(text(example.Get("value")), example.Get("summary").String())
			return true
		})
		return true
	})
	return sent
}

func (e *examples) send(method, path string, header http.Header, body string) (int, string) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), method, e.base+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	if header != nil {
		req.Header = header.Clone()
	}
	resp, err := e.client.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}
