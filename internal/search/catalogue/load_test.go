package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
	"tutti/internal/search/catalogue"
	"tutti/internal/tools/testkit"
)

// Problems as clients see them.
func missing(index string) core.CatalogueProblem {
	return core.CatalogueProblem{Code: core.CatalogueIndexNotFound, Message: "the index " + index + " does not exist"}
}

func forbidden() core.CatalogueProblem {
	return core.CatalogueProblem{Code: core.CataloguePermissionDenied, Message: "the index does not let this server read its mapping"}
}

func silent() core.CatalogueProblem {
	return core.CatalogueProblem{Code: core.CatalogueConnectionError, Message: "the index does not answer"}
}

func unread() core.CatalogueProblem {
	return core.CatalogueProblem{Code: core.CatalogueMappingFetch, Message: "the mapping of the index could not be read"}
}

func notUnderstood() core.CatalogueProblem {
	return core.CatalogueProblem{Code: core.CatalogueMappingFetch, Message: "the mapping of the index cannot be parsed"}
}

func unbuilt(message string) core.CatalogueProblem {
	return core.CatalogueProblem{Code: core.CatalogueSchemaBuild, Message: message}
}

func unknown() core.CatalogueProblem {
	return core.CatalogueProblem{Code: core.CatalogueUnknown, Message: "the catalogue could not be loaded"}
}

const (
	noFields = "the mapping of the index has no fields to search"
	noName   = "the configured index name of the catalogue is not valid"
)

// TestProblems: every cause has its code, and messages never contain the engine's text.
func TestProblems(t *testing.T) {
	cause := errors.New("http://u:secret@host:9200/ said no")
	wrapped := func(code core.Code, sentinel error) fixed {
		return fixed{err: fmt.Errorf("reading: %w", core.WrapError(code, "secret", fmt.Errorf("%w: %w", sentinel, cause)))}
	}
	coded := func(code core.Code) fixed { return fixed{err: core.WrapError(code, "secret", cause)} }
	tests := []struct {
		name string
		m    fixed
		want core.CatalogueProblem
	}{
		{"missing", wrapped(core.CodeIndexBlocked, core.ErrIndexMissing), missing("a")},
		{"forbidden", wrapped(core.CodeIndexBlocked, core.ErrIndexForbidden), forbidden()},
		{"unreachable", wrapped(core.CodeUnavailable, core.ErrIndexUnreachable), silent()},
		{"a time-out", fixed{err: fmt.Errorf("asking: %w", context.DeadlineExceeded)}, silent()},
		{"an answer that is none", coded(core.CodeUnavailable), unread()},
		{"overloaded", coded(core.CodeOverloaded), unread()},
		{"blocked", coded(core.CodeIndexBlocked), unread()},
		{"too large", coded(core.CodeTooLarge), unread()},
		{"not JSON", fixed{raw: "<html>"}, notUnderstood()},
		{"nothing", fixed{}, notUnderstood()},
		{"another JSON", fixed{raw: `{"properties":[]}`}, notUnderstood()},
		{"a field that is two things", fixed{raw: `{"properties":{"a.b":{"type":"long"},"a":{"properties":{"b":{"type":"ip"}}}}}`}, notUnderstood()},
		{"an impossible name", fixed{err: core.NewError(core.CodeInvalid, "the name must be lower case")}, unbuilt(noName)},
		{"a request that the engine refused", coded(core.CodeInvalid), unread()},
		{"contradicting indices", fixed{err: core.NewError(core.CodeConflict, `the field "k" is two things`)}, unbuilt(`the field "k" is two things`)},
		{"no fields", fixed{raw: `{"dynamic":"strict"}`}, unbuilt(noFields)},
		{"a fault of tutti", coded(core.CodeInternal), unknown()},
		{"an error of nobody", fixed{err: cause}, unknown()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refused(t, minimal("a"), tt.m, tt.want) })
	}
	t.Run("a fault of the configuration", func(t *testing.T) {
		d := minimal("a")
		d.Err = core.WrapError(core.CodeInvalid, "base.json does not name its index", cause)
		refused(t, d, fixed{raw: `{"properties":{"k":{"type":"keyword"}}}`}, unbuilt("base.json does not name its index"))
	})
	t.Run("the end of the context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if m, problem := catalogue.Load(ctx, minimal("a"), fixed{err: cause}); m != nil || problem == nil || *problem != silent() {
			t.Errorf("got %v, %v", m, problem)
		}
	})
}

// TestProblemsOfElasticsearch takes the same causes through the real client.
func TestProblemsOfElasticsearch(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	refusal := func(status int, kind string) http.HandlerFunc {
		return answer(status, `{"error":{"type":"`+kind+`","reason":"secret"},"status":`+fmt.Sprint(status)+`}`)
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
		_ = conn.Close()
	}
	tests := []struct {
		name    string
		index   string
		handler http.HandlerFunc
		want    core.CatalogueProblem
	}{
		{"no such index", "a", refusal(404, "index_not_found_exception"), missing("a")},
		{"no credentials", "a", refusal(401, "security_exception"), forbidden()},
		{"no privilege", "a", refusal(403, "security_exception"), forbidden()},
		{"a proxy's 403", "a", answer(403, "<html>"), forbidden()},
		{"hanging", "a", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, silent()},
		{"cut", "a", cut, silent()},
		{"a server error", "a", answer(500, ""), unread()},
		{"no master", "a", refusal(503, "cluster_block_exception"), silent()},
		{"blocked", "a", refusal(403, "cluster_block_exception"), unread()},
		{"a proxy's 404", "a", answer(404, "<html>"), unread()},
		{"not JSON", "a", answer(200, "<html>"), unread()},
		{"no mapping", "a", answer(200, `{"a-1":{"mappings":{"properties":{"k":5}}}}`), notUnderstood()},
		{"an impossible name", "A B", answer(200, `{}`), unbuilt(noName)},
		{"a request that it refuses", "a", refusal(400, "illegal_argument_exception"), unread()},
		{"no name", "", answer(200, `{}`), unbuilt(noName)},
		{
			"contradicting indices", "a", answer(200, `{"a-1":{"mappings":{"properties":{"k":{"type":"long"}}}},"a-2":{"mappings":{"properties":{"k":{"type":"date"}}}}}`),
			unbuilt(`the field "k" is of type long in one index of the alias and of type date in another`),
		},
		{"no fields", "a", answer(200, `{"a-1":{"mappings":{}}}`), unbuilt(noFields)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.handler)
			defer server.Close()
			x := engineAt(t, server.URL)
			d := minimal("a")
			d.Index = tt.index
			refused(t, d, x, tt.want)
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		refused(t, minimal("a"), engineAt(t, "http://"+testkit.NewAddress(t)), silent())
	})
	t.Run("none", func(t *testing.T) {
		server := httptest.NewServer(answer(200, file(t, "song_elasticsearch.json")))
		defer server.Close()
		m, problem := catalogue.Load(t.Context(), minimal("a"), engineAt(t, server.URL))
		if problem != nil {
			t.Fatal(problem)
		}
		if f, known := m.Field("files.fileSize"); !known || f.Type != "long" || cmp.Diff([]string{"files"}, f.Nested) != "" {
			t.Errorf("got %+v, %t", f, known)
		}
	})
}

func engineAt(t *testing.T, url string) *elastic.Index {
	t.Helper()
	x, err := elastic.New(elastic.Config{Connection: elastic.Connection{URLs: []string{url}, Timeout: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func TestProblemsOfTheEmbeddedIndex(t *testing.T) {
	x, err := embedded.Open(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	refused(t, minimal("a"), x, missing("a"))
	refused(t, minimal("A B"), x, unbuilt(noName))
	if err := x.Ensure(t.Context(), index.Spec{Alias: "a"}); err != nil {
		t.Fatal(err)
	}
	refused(t, minimal("a"), x, unbuilt(noFields))
	if err := x.Ensure(t.Context(), index.Spec{Alias: "a", Known: mapping.Lyric()}); err != nil {
		t.Fatal(err)
	}
	m, problem := catalogue.Load(t.Context(), minimal("a"), x)
	if problem != nil {
		t.Fatal(problem)
	}
	if f, known := m.Field("isValid"); !known || f.Type != "boolean" {
		t.Errorf("got %+v, %t", f, known)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, minimal("a"), x, silent())
}
