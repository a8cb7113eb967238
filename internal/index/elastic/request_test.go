package elastic_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/index/elastic"
	"tutti/internal/tools/testkit"
)

const oneIndexed = `{"errors":false,"items":[{"index":{"status":201}}]}`

func TestBulkRequest(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		var got *http.Request
		var body []byte
		url := serving(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.Clone(context.Background())
			reader := io.Reader(r.Body)
			if r.Header.Get("Content-Encoding") == "gzip" {
				zip, err := gzip.NewReader(r.Body)
				if err != nil {
					t.Error(err)
					return
				}
				reader = zip
			}
			var err error
			if body, err = io.ReadAll(reader); err != nil {
				t.Error(err)
			}
			_, _ = w.Write([]byte(oneIndexed))
		})
		x := open(t, url+"/behind/a/proxy/", func(c *elastic.Config) { c.Compress = compressed })
		for range 2 { // the second one with pooled buffers
			whole := batch(x, "songs", put("not sent", 1, `{}`), put("a", 1, `{"a":"b"}`), put("nor this", 1, `{}`))
			b := whole.Slice(1, 2)
			if _, err := x.Write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(body, b.Payload()) {
				t.Errorf("compressed %t: sent %q, want %q", compressed, body, b.Payload())
			}
		}
		if got.Method != http.MethodPost || got.URL.Path != "/behind/a/proxy/songs/_bulk" {
			t.Errorf("sent to %s %s", got.Method, got.URL.Path)
		}
		if got.URL.Query().Get("require_alias") != "true" || got.URL.Query().Get("timeout") != "2000ms" {
			t.Errorf("sent with %s", got.URL.RawQuery)
		}
		if got.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("sent as %s", got.Header.Get("Content-Type"))
		}
	}
}

// TestOnlyDeletions: a request of deletions alone also has a write that is never applied, so that the cluster creates no index with the
// name of a missing alias. The batch's bytes and results do not have it.
func TestOnlyDeletions(t *testing.T) {
	var body []byte
	url := serving(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		_, _ = w.Write([]byte(`{"errors":true,"items":[{"delete":{"status":200}},{"delete":{"status":404}},` +
			`{"index":{"status":409,"error":{"type":"version_conflict_engine_exception","reason":"no document"}}}]}`))
	})
	x := open(t, url)
	whole := batch(x, "songs", remove("a", 1), remove("b", 1), put("not sent", 1, `{}`))
	before := bytes.Clone(whole.Body)
	b := whole.Slice(0, 2)
	results, err := x.Write(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if removed := (core.Result{Outcome: core.OutcomeRemoved}); !slices.Equal(results, []core.Result{removed, removed}) {
		t.Errorf("got %+v", results)
	}
	rest, ok := bytes.CutPrefix(body, b.Payload())
	if !ok || !bytes.HasPrefix(rest, []byte(`{"index":{"_id":"tutti-check","if_seq_no":`)) || bytes.Count(rest, []byte("\n")) != 2 {
		t.Errorf("sent %q, want %q and one write", body, b.Payload())
	}
	if !bytes.Equal(whole.Body, before) {
		t.Errorf("the batch's bytes are %q now", whole.Body)
	}
}

func TestNothingIsSentForNothing(t *testing.T) {
	x := open(t, serving(t, func(http.ResponseWriter, *http.Request) { t.Error("a request without items") }))
	if results, err := x.Write(t.Context(), core.Batch{Index: "a"}); err != nil || len(results) != 0 {
		t.Errorf("got %v, %v", results, err)
	}
}

func TestCredentials(t *testing.T) {
	tests := []struct {
		name string
		cfg  func(*elastic.Config)
		want string
	}{
		{"none", func(*elastic.Config) {}, ""},
		{"basic", func(c *elastic.Config) { c.Username, c.Password = "u", "p" }, "Basic dTpw"},
		{"encoded key", func(c *elastic.Config) { c.APIKey = "aWQ6a2V5" }, "APIKey aWQ6a2V5"},
		{"raw key", func(c *elastic.Config) { c.APIKey = "id:key" }, "APIKey aWQ6a2V5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			url := serving(t, func(w http.ResponseWriter, r *http.Request) {
				got = r.Header.Get("Authorization")
				_, _ = w.Write([]byte(`{}`))
			})
			if err := open(t, url, tt.cfg).Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("sent %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCAFile(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{}`))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, server.URL, func(c *elastic.Config) { c.TLS.CAFile = file }).Ping(t.Context()); err != nil {
		t.Error(err)
	}
	wantError(t, open(t, server.URL).Ping(t.Context()), core.CodeUnavailable, "the index does not answer: its certificate is signed by an unknown authority")
}

func TestConfigFaults(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	urls := []string{"http://127.0.0.1:1"}
	tests := []struct {
		cfg     elastic.Config
		message string
	}{
		{elastic.Config{}, "the index needs at least one URL"},
		{elastic.Config{Connection: elastic.Connection{URLs: []string{"127.0.0.1:9200"}}}, "a URL of the index is not of the form http(s)://host[:port]"},
		{elastic.Config{Connection: elastic.Connection{URLs: urls, Username: "u"}}, "the index needs a username and a password, or neither"},
		{
			elastic.Config{Connection: elastic.Connection{URLs: urls, Username: "u", Password: "p", APIKey: "k"}},
			"the index takes an API key or a username, not both",
		},
		{elastic.Config{Connection: elastic.Connection{URLs: urls}, Replicas: -1}, "the shards and replicas of the index must not be negative"},
		{elastic.Config{Connection: elastic.Connection{URLs: urls, TLS: tlsconfig.Files{Key: "index", CAFile: empty + "x"}}}, "index.caFile: " + empty + "x cannot be read: no such file or directory"},
		{elastic.Config{Connection: elastic.Connection{URLs: urls, TLS: tlsconfig.Files{Key: "index", CAFile: empty}}}, "index.caFile: " + empty + " is not a certificate: no PEM block begins with -----BEGIN CERTIFICATE-----"},
	}
	for _, tt := range tests {
		_, err := elastic.New(tt.cfg)
		wantError(t, err, core.CodeInvalid, tt.message)
	}
}

// TestNamesThatMeanMore keeps names away from the cluster that stand for several indices or for another path.
func TestNamesThatMeanMore(t *testing.T) {
	x := open(t, serving(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked", r.URL) }))
	for _, name := range []string{"*", "a,b", "a/b", "../x", "..", "_all", "A", "a b", "a?x", "a#", "a%2F", strings.Repeat("a", 241)} {
		if _, err := x.Count(t.Context(), name, core.IndexScope{}); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// TestBytesGoBackToTheirOwner answers before the body was read, as an overloaded cluster or a proxy does, and reads on
// only after Write has returned and its caller used the buffer for something else. Nothing of that may be sent.
func TestBytesGoBackToTheirOwner(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	returned, received := make(chan struct{}), make(chan []byte, 1)
	var serve sync.WaitGroup
	serve.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		reader := bufio.NewReader(conn)
		for line := ""; line != "\r\n" && err == nil; {
			line, err = reader.ReadString('\n')
		}
		answer := oneIndexed
		_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 51\r\n\r\n"+answer)
		if err != nil {
			t.Error(err)
		}
		<-returned
		rest, _ := io.ReadAll(reader) // ends with the connection
		received <- rest
	})
	x := open(t, "http://"+listener.Addr().String())
	b := batch(x, "a", put("v", 1, `{"a":"`+strings.Repeat("x", 16<<20)+`"}`))
	if _, err := x.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	b.Body[0] = '!'
	for n := 1; n < len(b.Body); n *= 2 { // at once: the transport goes on for some milliseconds only
		copy(b.Body[n:], b.Body[:n])
	}
	close(returned)
	if got := <-received; bytes.IndexByte(got, '!') >= 0 {
		t.Error("bytes of the next batch were sent in this one")
	} else if len(got) == len(b.Body) {
		t.Error("the body was sent whole, so that the test shows nothing")
	}
	serve.Wait()
	_ = listener.Close()
}

// TestHanging: a request to a cluster that does not answer ends after the timeout, or earlier when its context ends.
func TestHanging(t *testing.T) {
	hang := make(chan struct{})
	url := serving(t, func(_ http.ResponseWriter, r *http.Request) { <-hang })
	t.Cleanup(func() { close(hang) })
	x := open(t, url, func(c *elastic.Config) { c.Timeout = 50 * time.Millisecond })
	_, err := x.Write(t.Context(), batch(x, "a", put("v", 1, `{}`)))
	wantError(t, err, core.CodeUnavailable, "the index does not answer")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	x = open(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = x.Write(ctx, batch(x, "a", put("v", 1, `{}`)))
	wantError(t, err, core.CodeUnavailable, "the index does not answer")
}

// TestCutAnswers cuts the connection inside the head and inside the body of the answer.
func TestCutAnswers(t *testing.T) {
	for _, part := range []string{"", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 51\r\n\r\n{\"errors\":false,\"ite"} {
		url := serving(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, part)
			_ = conn.Close()
		})
		x := open(t, url)
		_, err := x.Write(t.Context(), batch(x, "a", put("v", 1, `{}`)))
		if core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("after %q: got %v", part, err)
		}
	}
}

// TestNothingIsSentTwice: what was sent on a connection that then broke may have been written.
func TestNothingIsSentTwice(t *testing.T) {
	var requests atomic.Int32
	url := serving(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if requests.Add(1) > 1 {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
			return
		}
		_, _ = w.Write([]byte(oneIndexed))
	})
	x := open(t, url)
	b := batch(x, "a", put("v", 1, `{}`))
	if _, err := x.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	_, err := x.Write(t.Context(), b)
	wantError(t, err, core.CodeUnavailable, "the index does not answer")
	if got := requests.Load(); got != 2 {
		t.Errorf("%d requests for two writes", got)
	}
}

// TestErrorsHoldNoPassword: what is logged of an error must not hold the URL with its password.
func TestErrorsHoldNoPassword(t *testing.T) {
	x := open(t, "http://user:secret@"+testkit.NewAddress(t))
	if err := x.Ping(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// TestOtherNodes goes around a node that does not answer.
func TestOtherNodes(t *testing.T) {
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	x := open(t, dead.URL, func(c *elastic.Config) { c.URLs = append(c.URLs, answering(t, 200, oneIndexed)) })
	failed := 0
	for range 6 {
		if _, err := x.Write(t.Context(), batch(x, "a", put("v", 1, `{}`))); err != nil {
			failed++
		}
	}
	if failed > 1 {
		t.Errorf("%d of 6 writes failed", failed)
	}
}

func TestClose(t *testing.T) {
	x, err := elastic.New(elastic.Config{Connection: elastic.Connection{URLs: []string{"http://127.0.0.1:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	wantError(t, x.Ping(t.Context()), core.CodeUnavailable, "the index has been closed")
	_, err = x.Write(t.Context(), batch(x, "a", put("v", 1, `{}`)))
	wantError(t, err, core.CodeUnavailable, "the index has been closed")
}
