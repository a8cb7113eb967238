package elastic_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/index/elastic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open makes an engine for a cluster at url.
func open(tb testing.TB, url string, change ...func(*elastic.Config)) *elastic.Index {
	tb.Helper()
	cfg := elastic.Config{Connection: elastic.Connection{URLs: []string{url}, Timeout: 30 * time.Second}} // the default of the configuration
	for _, f := range change {
		f(&cfg)
	}
	x, err := elastic.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := x.Close(); err != nil {
			tb.Error(err)
		}
	})
	return x
}

// batch encodes writes for x.
func batch(x *elastic.Index, alias string, writes ...core.Write) core.Batch {
	b := core.Batch{Index: alias}
	for _, w := range writes {
		item := core.BatchItem{Op: w.Op, ID: w.ID, Version: w.Version, Start: len(b.Body)}
		b.Body, item.DocStart, item.DocEnd = x.Encode(b.Body, w)
		item.End = len(b.Body)
		b.Items = append(b.Items, item)
	}
	return b
}

func put(id string, version core.Version, doc string) core.Write {
	return core.Write{ID: id, Version: version, Document: []byte(doc)}
}

func remove(id string, version core.Version) core.Write {
	return core.Write{Op: core.OpDelete, ID: id, Version: version}
}

// answering starts a cluster that answers every request alike.
func answering(tb testing.TB, status int, body string, header ...string) string {
	tb.Helper()
	return serving(tb, func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

// Answers to GET /.
const (
	elasticsearch8 = `{"cluster_name":"c1","version":{"number":"8.19.2"},"tagline":"You Know, for Search"}`
	openSearch2    = `{"cluster_name":"c1","version":{"distribution":"opensearch","number":"2.19.3"}}`
)

// identified returns a handler that answers GET / with root, does not return the versions of the nodes, and passes on all other requests.
func identified(root string, handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			_, _ = w.Write([]byte(root))
		case "/_nodes/_all/http":
			w.WriteHeader(http.StatusForbidden)
		default:
			handler(w, r)
		}
	}
}

// serving starts an Elasticsearch 8 whose requests other than those that identify it are answered by handler.
func serving(tb testing.TB, handler http.HandlerFunc) string {
	tb.Helper()
	return listening(tb, identified(elasticsearch8, handler))
}

// listening starts a server.
func listening(tb testing.TB, handler http.HandlerFunc) string {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	return server.URL
}

// logged is a log that tests may read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func wantError(t *testing.T, err error, code core.Code, message string) {
	t.Helper()
	if core.CodeOf(err) != code || core.MessageOf(err) != message {
		t.Errorf("got %q %q, want %q %q (%v)", core.CodeOf(err), core.MessageOf(err), code, message, err)
	}
}

func wantHint(t *testing.T, err error, hint string) {
	t.Helper()
	if core.HintOf(err) != hint {
		t.Errorf("the hint of %v is %q, want %q", err, core.HintOf(err), hint)
	}
}
