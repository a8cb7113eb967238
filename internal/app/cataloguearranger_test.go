package app_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"tutti/internal/app"
	"tutti/internal/base/setting"
	"tutti/internal/config"
	"tutti/internal/core"
)

// user and password are the credentials of the engine in an Arranger's environment.
const (
	arrangerUser     = "elastic"
	arrangerPassword = "pass word:1"
)

// arrangerFolder is a folder as Arranger's server has it, with an example of each of its files.
func arrangerFolder() folder {
	files := folder{}
	for name, content := range sound() {
		if rest, ours := strings.CutPrefix(name, "analyses/"); ours {
			files["donors/"+rest] = strings.Replace(content, `"catalogId":"analyses"`, `"catalogId":"donors"`, 1)
		}
	}
	files["files/base.json"] = based("file", aliasWord+"-files", "")
	return files
}

// environment is an Arranger's, with what a tutti needs to run beside others.
func (w *world) environment(dir, engine string, more ...string) []string {
	return append([]string{
		"CONFIGS_PATH=" + dir, "ES_HOST=" + engine, "NODE_ENV=production", "TUTTI_SERVER_LISTEN=127.0.0.1:0",
		setting.Variable("dataDir") + "=" + w.dir, setting.Variable("index.replicas") + "=0",
		setting.Variable("repositories.0.code") + "=" + builtInCode, setting.Variable("repositories.0.type") + "=local",
		setting.Variable("repositories.0.indexName") + "=" + w.alias,
	}, more...)
}

// startIn starts the world's tutti, configured by an environment only.
func (w *world) startIn(environ []string) {
	w.t.Helper()
	cfg, err := config.Load("", environ)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := app.New(cfg, app.Options{Logger: slog.New(slog.NewJSONHandler(w.logs, nil))})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := a.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.app, w.url = a, a.URL()
	w.t.Cleanup(func() {
		if err := a.Stop(context.WithoutCancel(w.t.Context())); err != nil {
			w.t.Errorf("stopping: %v", err)
		}
	})
	w.t.Cleanup(w.logState)
}

// secured returns an engine that requires a name and a password, and forbids the index of files until set allows it.
// Behind it is the world's own engine, where that is reached by an address.
func secured(t *testing.T, w *world) *cluster {
	t.Helper()
	c := newCluster(t)
	c.user, c.password = arrangerUser, arrangerPassword
	c.set(w.alias, mapped(`"studyId":{"type":"keyword"},"files":{"type":"nested","properties":{"fileSize":{"type":"long"}}}`))
	c.set(w.alias+"-files", refuses(http.StatusForbidden, "security_exception"))
	if w.engine.url() == "" {
		return c
	}
	real, err := url.Parse(w.engine.url())
	if err != nil {
		t.Fatal(err)
	}
	calls := &http.Transport{}
	t.Cleanup(calls.CloseIdleConnections)
	behind := forwardTo(real, calls)
	c.behind = behind
	c.set(w.alias, behind.ServeHTTP)
	return c
}

// forwardTo returns a proxy to target. A response may begin while the request's body is still forwarded; without full duplex net/http
// would close the body then, which breaks the connection to the target.
func forwardTo(target *url.URL, calls http.RoundTripper) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: calls,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	})
}

// TestCatalogueArranger: tutti runs with only the environment and the folder of an Arranger, with and without credentials that
// the engine accepts.
func TestCatalogueArranger(t *testing.T) {
	t.Parallel()
	t.Run("with its credentials", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, settings{})
		c, dir := secured(t, w), t.TempDir()
		arrangerFolder().write(w, dir)
		w.startIn(w.environment(dir, c.server.URL, "ES_USER="+arrangerUser, "ES_PASS="+arrangerPassword))
		w.awaitAvailable("donors")
		fields := w.fields("donors")
		if fields["studyId"].DisplayName != "Study" || fields["files.fileSize"].Unit != "bytes" || fields["files.fileSize"].Type != "long" {
			t.Errorf("the fields are %+v", fields)
		}
		w.awaitProblem("files", indexForbidden())
		failedCatalogue{documentType: "file", CatalogueProblem: indexForbidden()}.shown(w, "files")
		w.wantStatus(core.CataloguesDegraded)
		w.wantLogged("catalogues.dir from CONFIGS_PATH, index.url from ES_HOST, index.username from ES_USER, index.password from ES_PASS")
		w.wantLogged("NODE_ENV is production")
		c.set(w.alias+"-files", mapped(`"name":{"type":"keyword"}`))
		w.awaitAvailable("files")
		w.wantStatus(core.CataloguesHealthy)
	})
	for name, credentials := range map[string][]string{
		"without": nil, "with others": {"ES_USER=" + arrangerUser, "ES_PASS=wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings{})
			c, dir := secured(t, w), t.TempDir()
			arrangerFolder().write(w, dir)
			w.startIn(w.environment(dir, c.server.URL, credentials...))
			w.awaitProblem("donors", indexForbidden())
			w.awaitProblem("files", indexForbidden())
			w.wantStatus(core.CataloguesUnhealthy)
			for _, line := range w.logs.all() {
				if strings.Contains(line, "wrong") || strings.Contains(line, arrangerPassword) {
					t.Errorf("a password is logged: %s", line)
				}
			}
		})
	}
}

// wantLogged fails the test unless the log contains a text.
func (w *world) wantLogged(what string) {
	w.t.Helper()
	if !strings.Contains(strings.Join(w.logs.all(), ""), what) {
		w.t.Errorf("the log does not say %q", what)
	}
}
