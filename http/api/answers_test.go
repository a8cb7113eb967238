package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/tools/apitest"
)

// pathOf fills the parameters of a pattern.
func pathOf(pattern string) string {
	return strings.NewReplacer("{repositoryCode}", "song.ca", "{organization}", "S", "{id}", "A", "{asset}", "page.css",
		"{name}", "variant_call", "{version}", "1", "{study}", "S", "{catalogueId}", "C", "{tag}", "T").Replace(pattern)
}

// methodsOf returns the methods of every path, HEAD beside GET. A literal segment shares its path with a parameter: what is
// routed for /x/{id} is routed for /x/retry.
func methodsOf(h apitest.Handler) map[string][]string {
	methods := map[string][]string{}
	for _, at := range h.Routes() {
		path := pathOf(at.Pattern)
		for _, r := range h.Routes() {
			got, want := strings.Split(path, "/"), strings.Split(r.Pattern, "/")
			if len(got) != len(want) || !apitest.Fits(want, got) || slices.Contains(methods[path], r.Method) {
				continue
			}
			methods[path] = append(methods[path], r.Method)
			if r.Method == "GET" {
				methods[path] = append(methods[path], "HEAD")
			}
		}
	}
	return methods
}

func TestEveryPathRefusesOtherMethods(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for path, methods := range methodsOf(h) {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"} {
			if slices.Contains(methods, method) {
				continue
			}
			t.Run(method+path, func(t *testing.T) {
				// What is sent along does not matter.
				header := http.Header{"Accept": {"image/webp"}, "Content-Type": {"text/plain"}}
				res, body := apitest.Do(t, h, apitest.Ask{Method: method, Target: path + "?nobody=1", Header: header})
				apitest.WantProblem(t, res, body, 405, "method_not_allowed", "does not support this method")
				allow := strings.Split(res.Header.Get("Allow"), ", ")
				slices.Sort(allow)
				if want := slices.Sorted(slices.Values(methods)); !slices.Equal(allow, want) {
					t.Errorf("allow: got %v, want %v", allow, want)
				}
			})
		}
	}
}

func TestEveryRouteRefusesWhatItCannotAnswer(t *testing.T) {
	p := apitest.Working()
	p.Catalogues.Put(apitest.Plain("C"))
	h := apitest.NewHandler(t, p, api.Config{MaxBodyBytes: 8})
	for _, route := range h.Routes() {
		t.Run(route.Method+route.Pattern, func(t *testing.T) {
			responses := apitest.Document(t).Paths.Value(route.Pattern).GetOperation(route.Method).Responses
			a := apitest.Ask{Method: route.Method, Target: pathOf(route.Pattern)}

			// Prometheus' formats are answered to everybody, as promhttp has it.
			if (responses.Status(406) == nil) != (route.Pattern == "/metrics") {
				t.Errorf("406 is described: %t", responses.Status(406) != nil)
			}
			if responses.Status(406) != nil {
				a.Header = http.Header{"Accept": {"audio/ogg, */*;q=0"}}
				res, body := apitest.Do(t, h, a)
				apitest.WantProblem(t, res, body, 406, "not_acceptable", "this path answers")
			}

			a.Header, a.Body = nil, strings.Repeat("x", 9)
			res, body := apitest.Do(t, h, a)
			apitest.WantProblem(t, res, body, 413, "too_large", "8 bytes")

			if responses.Status(415) != nil {
				taken := apitest.Document(t).Paths.Value(route.Pattern).GetOperation(route.Method).RequestBody.Value.Content
				for name, header := range map[string]http.Header{
					"text":       {"Content-Type": {"text/plain"}},
					"form":       {"Content-Type": {"application/x-www-form-urlencoded"}},
					"broken":     {"Content-Type": {"application/json;;"}},
					"compressed": {"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}},
				} {
					if taken[header.Get("Content-Type")] != nil {
						continue
					}
					a.Header, a.Body = header, "{}"
					res, body := apitest.Do(t, h, a)
					if apitest.WantProblem(t, res, body, 415, "unsupported_media_type", "is not declared as "); t.Failed() {
						t.Errorf("%s", name)
					}
				}
			}
		})
	}
}

// TestEveryRouteRefusesWhatNoHandlerSees: net/http itself refuses, so that a target too long is 431 like any header.
func TestEveryRouteRefusesWhatNoHandlerSees(t *testing.T) {
	_, addr := apitest.Start(t, apitest.Working(), api.Config{})
	for _, route := range apitest.NewHandler(t, apitest.Working(), api.Config{}).Routes() {
		t.Run(route.Method+route.Pattern, func(t *testing.T) {
			head := route.Method + " " + pathOf(route.Pattern)
			res, body := apitest.Wire(t, addr, head+"?x="+strings.Repeat("x", 80<<10)+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
			apitest.WantProblem(t, res, body, 431, "header_too_large", "65536 bytes")
			res, body = apitest.Wire(t, addr, head+" HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 80<<10)+"\r\n\r\n")
			apitest.WantProblem(t, res, body, 431, "header_too_large", "65536 bytes")
			res, body = apitest.Wire(t, addr, head+"%zz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			apitest.WantProblem(t, res, body, 400, "invalid", "malformed")
		})
	}
}

// TestEveryGetAnswersHeadAlike: the same status and headers, at once and without a body.
func TestEveryGetAnswersHeadAlike(t *testing.T) {
	p := apitest.Working()
	p.WatchFn = apitest.NewChanges(apitest.JobChange(1, "succeeded")).Watch
	h := apitest.NewHandler(t, p, api.Config{})
	for path, methods := range methodsOf(h) {
		if !slices.Contains(methods, "HEAD") {
			continue
		}
		t.Run(path, func(t *testing.T) {
			p.WatchFn = apitest.NewChanges(apitest.JobChange(1, "succeeded")).Watch
			get := apitest.Open(t, h, "GET", path, nil)
			<-get.Done
			p.WatchFn = apitest.NewChanges(apitest.JobChange(1, "succeeded")).Watch
			head := apitest.Open(t, h, "HEAD", path, nil)
			<-head.Done
			if get.W.Code != head.W.Code || get.W.Code >= 500 {
				t.Errorf("GET %d, HEAD %d", get.W.Code, head.W.Code)
			}
			for name := range get.W.Header() {
				if name != "X-Request-Id" && get.W.Header().Get(name) != head.W.Header().Get(name) {
					t.Errorf("%s: GET %q, HEAD %q", name, get.W.Header().Get(name), head.W.Header().Get(name))
				}
			}
		})
	}
}
