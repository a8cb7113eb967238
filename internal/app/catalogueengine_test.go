package app_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// cluster answers the requests to Elasticsearch that catalogues need: it returns mappings, and refuses all else as a cluster that is
// still starting does, or has another answer it.
type cluster struct {
	server *httptest.Server

	mu sync.Mutex
	// answers are those to GET /<index>/_mapping, by index; an index without one is missing.
	answers map[string]http.HandlerFunc
	// user and password are required when user is set.
	user, password string
	// behind, when set before the first request, answers all requests but those for mappings.
	behind http.Handler
}

// answers returns an answer of a cluster.
func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may have gone
	}
}

// refuses returns a cluster's error response, whose reason must not reach a client.
func refuses(status int, kind string) http.HandlerFunc {
	return answers(status, fmt.Sprintf(`{"error":{"type":%q,"reason":"a secret of the engine"},"status":%d}`, kind, status))
}

// mapped returns the mapping of one index with properties.
func mapped(properties string) http.HandlerFunc {
	return answers(http.StatusOK, `{"physical-1":{"mappings":{"properties":{`+properties+`}}}}`)
}

// newCluster starts a cluster, which is stopped at the end of the test.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{answers: map[string]http.HandlerFunc{}}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

// set says what the cluster answers of an index.
func (c *cluster) set(name string, answer http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[name] = answer
}

// ServeHTTP answers a request.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	name, asked := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/_mapping")
	answer, wanted, password := c.answers[name], c.user, c.password
	c.mu.Unlock()
	user, given, _ := r.BasicAuth()
	switch {
	case wanted != "" && (user != wanted || given != password):
		refuses(http.StatusUnauthorized, "security_exception")(w, r)
	case !asked && c.behind != nil:
		c.behind.ServeHTTP(w, r)
	case !asked:
		refuses(http.StatusServiceUnavailable, "cluster_block_exception")(w, r)
	case answer == nil:
		refuses(http.StatusNotFound, "index_not_found_exception")(w, r)
	default:
		answer(w, r)
	}
}

// silentAddress returns the address of a server that accepts every connection and sends nothing.
func silentAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var taken sync.WaitGroup
	taken.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			taken.Go(func() {
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		taken.Wait()
	})
	return "http://" + listener.Addr().String()
}

// built returns the configuration of a tutti with only the built-in repository, on an engine at a URL, with a folder of
// catalogues.
func built(engine, dir string) func(w *world) string {
	return func(w *world) string {
		return fmt.Sprintf(`
server: {listen: "127.0.0.1:0", shutdownTimeout: %s}
dataDir: %q
index: {url: %q, replicas: 0}
repositories: [{code: %s, type: local, indexName: %s}]
%s`, w.set.shutdownTimeout, w.dir, engine, builtInCode, w.alias, catalogueDir(dir))
	}
}

// newBuilt returns a world with that configuration, whose tutti is not started.
func newBuilt(t *testing.T, engine string, files folder) *builtIn {
	t.Helper()
	dir := t.TempDir()
	b := &builtIn{world: newWorld(t, settings{configuration: built(engine, dir)})}
	files.write(b.world, dir)
	return b
}
