package api_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"tutti/http/api"
	"tutti/internal/tools/apitest"
)

// TestQueryParametersAreThoseOfTheDocument: a route knows exactly the query parameters that the document describes for it. Of all others,
// also those of other routes, it rejects each or says that it is ignored. What it knows it reads: a value that cannot be right is rejected
// with the name of the parameter.
func TestQueryParametersAreThoseOfTheDocument(t *testing.T) {
	var log strings.Builder
	p := apitest.Working()
	p.Catalogues.Put(apitest.Plain("C"))
	h := apitest.NewHandler(t, p, api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	names := []string{"not declared"}
	each := func(do func(method, pattern string, described openapi3.Parameters)) {
		for pattern, item := range apitest.Document(t).Paths.Map() {
			for method, op := range item.Operations() {
				do(method, pattern, slices.DeleteFunc(slices.Clone(op.Parameters), func(p *openapi3.ParameterRef) bool { return p.Value.In != "query" }))
			}
		}
	}
	each(func(_, _ string, described openapi3.Parameters) {
		for _, p := range described {
			if !slices.Contains(names, p.Value.Name) {
				names = append(names, p.Value.Name)
			}
		}
	})
	for _, route := range h.Routes() {
		if item := apitest.Document(t).Paths.Value(route.Pattern); item == nil || item.GetOperation(route.Method) == nil {
			t.Errorf("the document does not describe %s %s, so its query parameters are unknown", route.Method, route.Pattern)
		}
	}
	unread := map[string]string{
		"GET /entities page": "Song takes any value", "GET /entities size": "Song takes any value",
		"GET /metrics name[]": "the names are those of the registry",
	}
	each(func(method, pattern string, described openapi3.Parameters) {
		if method == "POST" && strings.Contains(pattern, "/graphql") { // which reads only its body
			if len(described) > 0 {
				t.Errorf("%s %s describes parameters, and ignores all", method, pattern)
			}
			return
		}
		ask := func(query string) (status int, body string, ignored bool) {
			log.Reset()
			a := apitest.Ask{Method: method, Target: pathOf(pattern) + "?" + query}
			if method != "GET" {
				a.Body = "{}"
			}
			_, res, raw := apitest.Exchange(t, h, a)
			return res.StatusCode, string(raw), strings.Contains(log.String(), "an unknown query parameter is ignored")
		}
		known, required := map[string]*openapi3.Parameter{}, ""
		for _, p := range described {
			known[p.Value.Name] = p.Value
			if p.Value.Required {
				required = p.Value.Name
			}
		}
		for _, name := range names {
			query := url.QueryEscape(name) + "="
			status, body, ignored := ask(query + "x")
			rejected := status == 400 && strings.Contains(body, "unknown query parameter")
			if rejected && ignored || (rejected || ignored) == (known[name] != nil) {
				t.Errorf("%s %s?%s: described %t, rejected %t, logged as ignored %t", method, pattern, name, known[name] != nil, rejected, ignored)
			}
			where := method + " " + pattern + " " + name
			if known[name] == nil || unread[where] != "" {
				delete(unread, where)
				continue
			}
			wrong := query + "x&" + query + "x" // of a parameter with one value
			if known[name].Schema.Value.Type.Is("array") {
				wrong = query + ",x"
			}
			if required != "" && required != name {
				wrong += "&" + required + "=x"
			}
			if status, body, _ := ask(wrong); status != 400 || !strings.Contains(body, "query parameter "+name) {
				t.Errorf("%s %s?%s: %d %s: the parameter is not read", method, pattern, wrong, status, body)
			}
		}
	})
	for where := range unread {
		t.Errorf("%s is not described", where)
	}
}

// TestQueriesAreReadInOnePlace: no surface but the console, which has no parameters of clients, reads a query string past api.QueryOf, which
// has only the parameters of the route.
func TestQueriesAreReadInOnePlace(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		dir := filepath.Base(filepath.Dir(file))
		if dir == "api" || dir == "console" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, past := range []string{"URL.Query()", "ParseQuery(r.URL", "FormValue(", "ParseForm("} {
			if strings.Contains(string(text), past) {
				t.Errorf("%s: %s", file, past)
			}
		}
	}
}

// readsAll is a surface whose handlers read parameters that their routes do not have.
type readsAll struct{ read map[string]string }

func (readsAll) OpenAPI() []byte {
	return []byte("paths: {/lenient: {get: {parameters: [{name: unknown, in: path}, {name: known, in: query}]}}, /ignored: {get: {}}}")
}

func (s readsAll) Register(r *api.Router) {
	for path, query := range map[string]api.Parameters{
		"/lenient": api.LenientParams(), "/ignored": api.IgnoreParams(), "/undescribed": api.LenientParams(),
	} {
		r.Handle("GET", path, func(w http.ResponseWriter, req *http.Request) error {
			q, err := api.QueryOf(req)
			if err != nil {
				return err
			}
			if s.read["known"], err = q.Text("known"); err != nil {
				return err
			}
			if s.read["unknown"], err = q.Text("unknown"); err != nil {
				return err
			}
			return api.WriteJSON(w, 200, nil)
		}, query, api.Open())
	}
}

// TestIgnoredParametersAreNotRead: a handler does not see a parameter that is ignored, even if it reads it.
func TestIgnoredParametersAreNotRead(t *testing.T) {
	read := map[string]string{}
	router, err := api.New(api.Config{}, readsAll{read})
	if err != nil {
		t.Fatal(err)
	}
	for path, known := range map[string]string{"/lenient": "a", "/ignored": ""} {
		for _, method := range []string{"GET", "HEAD"} {
			_, res, body := apitest.Exchange(t, apitest.Handler{Router: router}, apitest.Ask{Method: method, Target: path + "?known=a&unknown=b"})
			if res.StatusCode != 200 || read["known"] != known || read["unknown"] != "" {
				t.Errorf("%s %s: %d %s, read %v", method, path, res.StatusCode, body, read)
			}
		}
	}
}

// TestQueryOfUndescribedRoute: a route that the document does not describe knows no parameters, not even that it has none.
func TestQueryOfUndescribedRoute(t *testing.T) {
	var log strings.Builder
	router, err := api.New(api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, readsAll{map[string]string{}})
	if err != nil {
		t.Fatal(err)
	}
	for target, status := range map[string]int{"/undescribed": 200, "/undescribed?known=a": 500} {
		_, res, body := apitest.Exchange(t, apitest.Handler{Router: router}, apitest.Ask{Method: "GET", Target: target})
		if res.StatusCode != status {
			t.Errorf("%s: %d %s", target, res.StatusCode, body)
		}
	}
	if want := "the OpenAPI document does not describe GET /undescribed"; !strings.Contains(log.String(), want) {
		t.Errorf("%q is not in the log: %s", want, log.String())
	}
}
