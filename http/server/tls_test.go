package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/http/api"
	"tutti/http/server"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
	"tutti/internal/tools/testkit"
)

// secured serves p over TLS until the test ends, and returns the server, its address and the authorities that trust it.
func secured(t *testing.T, p *apitest.Ports) (running *server.Server, addr string, trust *x509.CertPool) {
	t.Helper()
	files := newPair(t, time.Hour)
	certificate, err := server.NewCertificate(t.Context(), files.certFile, files.keyFile, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	running = server.New(apitest.NewHandler(t, p, api.Config{}), server.Config{})
	running.UseTLS(certificate)
	if err := running.Start(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.HangLimit)
		defer cancel()
		if err := running.Stop(ctx); err != nil {
			t.Error(err)
		}
		if err := certificate.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	trust = x509.NewCertPool()
	trust.AddCert(files.leaf(t))
	return running, running.Addr().String(), trust
}

// TestTLS: HTTP/2 and HTTP/1.1 are spoken over TLS 1.2 and later, and nothing else.
func TestTLS(t *testing.T) {
	_, addr, trust := secured(t, apitest.Working())
	for name, tc := range map[string]struct {
		config  *tls.Config
		http2   bool
		version uint16
	}{
		"HTTP/2":           {&tls.Config{}, true, tls.VersionTLS13},
		"HTTP/1.1":         {&tls.Config{}, false, tls.VersionTLS13},
		"HTTP/2, TLS 1.2":  {&tls.Config{MaxVersion: tls.VersionTLS12}, true, tls.VersionTLS12},
		"HTTP/1.1 by name": {&tls.Config{NextProtos: []string{"http/1.1"}}, false, tls.VersionTLS13},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.RootCAs = trust
			transport := &http.Transport{TLSClientConfig: tc.config, ForceAttemptHTTP2: tc.http2}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: testkit.HangLimit}
			for _, target := range []string{"/ping", "/openapi.json", "/introspection/sqon", "/studies/none/analysis"} {
				res, err := client.Get("https://" + addr + target)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || len(body) == 0 || int64(len(body)) != res.ContentLength {
					t.Errorf("%s: %d bytes of %d, %v", target, len(body), res.ContentLength, err)
				}
				if major := 1 + map[bool]int{true: 1}[tc.http2]; res.ProtoMajor != major || res.TLS.Version != tc.version {
					t.Errorf("%s: %s over version %x", target, res.Proto, res.TLS.Version)
				}
			}
		})
	}
	t.Run("bounds of HTTP/2", func(t *testing.T) {
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: trust, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(testkit.HangLimit))
		frame := func(kind byte) []byte { // the next one of a type that is no acknowledgement
			for {
				header := make([]byte, 9) // RFC 9113, section 4.1
				if _, err := io.ReadFull(conn, header); err != nil {
					t.Fatalf("no frame of type %d: %v", kind, err)
				}
				payload := make([]byte, int(header[1])<<8|int(header[2]))
				if _, err := io.ReadFull(conn, payload); err != nil {
					t.Fatal(err)
				}
				if header[3] == kind && header[4] == 0 {
					return payload
				}
			}
		}
		settings := map[byte]uint32{}
		for entry := range slices.Chunk(frame(4), 6) {
			settings[entry[1]] = binary.BigEndian.Uint32(entry[2:])
		}
		// SETTINGS_MAX_CONCURRENT_STREAMS and SETTINGS_INITIAL_WINDOW_SIZE
		if settings[3] != 32 || settings[4] != 256<<10 {
			t.Errorf("settings %v, want 32 streams and a window of 256 KiB", settings)
		}
		if n := 65535 + binary.BigEndian.Uint32(frame(8)); n != 256<<10 { // WINDOW_UPDATE
			t.Errorf("the window of the connection is %d bytes, want 256 KiB", n)
		}
	})
	t.Run("TLS 1.1", func(t *testing.T) {
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}) //nolint:gosec // to be refused
		if err == nil {
			_ = conn.Close()
			t.Error("taken")
		} else if !strings.Contains(err.Error(), "protocol version not supported") {
			t.Error(err)
		}
	})
	t.Run("not encrypted", func(t *testing.T) {
		res, body := apitest.Wire(t, addr, "GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if p := apitest.WantProblem(t, res, body, 400, "invalid", "the request is not encrypted"); p.Hint != "this port speaks HTTPS: begin the address with https://" {
			t.Errorf("hint %q", p.Hint)
		}
	})
}

// TestRefusalsOverTLSAreProblems: what net/http refuses before any handler sees it is a problem on HTTP/1 over TLS too, and the
// addresses in problems are those of HTTPS.
func TestRefusalsOverTLSAreProblems(t *testing.T) {
	p := apitest.Working()
	p.Metadata.StudiesFn = func() ([]string, error) { return nil, core.NewError(core.CodeUnavailable, "the store is away") }
	_, addr, trust := secured(t, p)
	send := func(raw string) (*http.Response, []byte) {
		t.Helper()
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: trust})
		if err != nil {
			t.Fatal(err)
		}
		return apitest.Over(t, conn, raw)
	}
	for raw, status := range map[string]int{
		"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n":                                            400,
		"GET /ping HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n": 431,
		"GET /ping HTTP/1.1\r\nHost: localhost\r\nExpect: foo\r\n\r\n":                            417,
	} {
		res, body := send(raw)
		code := map[int]string{400: "invalid", 431: "header_too_large", 417: "invalid"}[status]
		apitest.WantProblem(t, res, body, status, code, "")
	}
	res, body := send("GET /studies/all HTTP/1.1\r\nHost: portal.example\r\nConnection: close\r\n\r\n")
	if url := apitest.MemberOf(t, body, "requestUrl"); res.StatusCode != 503 || url != "https://portal.example/studies/all" {
		t.Errorf("%d, requestUrl %v", res.StatusCode, url)
	}
}

// TestSilentHandshakes: a client that does not negotiate delays no other and no stop.
func TestSilentHandshakes(t *testing.T) {
	server, addr, trust := secured(t, apitest.Working())
	for range 8 {
		silent, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = silent.Close() }()
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport, Timeout: testkit.HangLimit}).Get("https://" + addr + "/ping")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if err := server.Stop(t.Context()); err != nil { // without a deadline: it would wait for them for ever
		t.Error(err)
	}
}

// TestSilentHandshakeDelaysNoOther: a client is served beside one that does not negotiate, which loses its connection after 10 s.
func TestSilentHandshakeDelaysNoOther(t *testing.T) {
	files := newPair(t, time.Hour)
	trust := x509.NewCertPool()
	trust.AddCert(files.leaf(t))
	synctest.Test(t, func(t *testing.T) {
		certificate, err := server.NewCertificate(t.Context(), files.certFile, files.keyFile, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		reg := prometheus.NewRegistry()
		s := server.New(apitest.NewHandler(t, apitest.Working(), api.Config{}), server.Config{Metrics: server.NewMetrics(reg)})
		s.UseTLS(certificate)
		l := newPipes()
		s.Serve(l)
		defer func() {
			if err := errors.Join(s.Stop(context.Background()), certificate.Stop(context.Background())); err != nil {
				t.Error(err)
			}
		}()
		began := time.Now()
		silent := l.dial()
		synctest.Wait()
		var below net.Conn
		accepted := make(chan net.Conn, 1)
		go func() { accepted <- l.dial() }()
		select {
		case below = <-accepted:
		case <-time.After(time.Second):
			t.Fatal("the second connection was not accepted")
		}
		_ = below.SetDeadline(began.Add(5 * time.Second))
		now := files.leaf(t).NotBefore.UTC // not the bubble's time
		conn := tls.Client(below, &tls.Config{RootCAs: trust, ServerName: "localhost", Time: now})
		if _, err := io.WriteString(conn, "GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != 200 || time.Since(began) != 0 {
			t.Errorf("the other client got %v, %v after %s", res, err, time.Since(began))
		}
		_ = below.Close()
		_ = silent.SetReadDeadline(began.Add(time.Minute))
		if n, err := silent.Read(make([]byte, 1)); err != io.EOF || time.Since(began) != 10*time.Second { //nolint:errorlint // as net.Pipe
			t.Errorf("the silent client read %d bytes, %v after %s", n, err, time.Since(began))
		}
		plain := l.dial()
		_ = plain.SetDeadline(time.Now().Add(time.Minute))
		go func() { _, _ = io.WriteString(plain, "GET /ping HTTP/1.1\r\n\r\n") }()
		if answer, err := io.ReadAll(plain); err != nil {
			t.Errorf("a client without TLS read %q, %v", answer, err)
		}
		synctest.Wait()
		if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP tutti_http_connections Connections that are open.
# TYPE tutti_http_connections gauge
tutti_http_connections 0
`), "tutti_http_connections"); err != nil {
			t.Error(err)
		}
	})
}

// TestCutDownloadsOverTLS: the client sees that a download is not whole, in each version of HTTP.
func TestCutDownloadsOverTLS(t *testing.T) {
	p := apitest.Working()
	p.Catalogues.Put(apitest.Participants())
	_, addr, trust := secured(t, p)
	rows := slices.Repeat([]string{strings.Repeat("x", 999) + "\n"}, 200)
	head := core.DownloadHead{ContentType: core.MediaTSV, FileName: "a.tsv"}
	oldest := func() error {
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: trust})
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if err := conn.SetDeadline(time.Now().Add(testkit.HangLimit)); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, "POST /download HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, conn)
		return err
	}
	newer := func(http2 bool) func() error {
		return func() error {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, ForceAttemptHTTP2: http2}
			defer transport.CloseIdleConnections()
			res, err := (&http.Client{Transport: transport, Timeout: testkit.HangLimit}).Post("https://"+addr+"/download", "application/json", strings.NewReader("{}"))
			if err != nil {
				return err
			}
			defer func() { _ = res.Body.Close() }()
			_, err = io.Copy(io.Discard, res.Body)
			return err
		}
	}
	for name, fetch := range map[string]func() error{"HTTP/1.0": oldest, "HTTP/1.1": newer(false), "HTTP/2": newer(true)} {
		t.Run(name, func(t *testing.T) {
			p.Searches.DownloadFn = apitest.Writing(head, nil, rows...)
			if err := fetch(); err != nil {
				t.Errorf("a whole one: %v", err)
			}
			p.Searches.DownloadFn = apitest.Writing(head, core.NewError(core.CodeUnavailable, "the engine does not answer"), rows...)
			if err := fetch(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("one that is cut: %v", err)
			}
		})
	}
}

// TestEventsOverHTTP2 arrive as they are written, while the answer goes on.
func TestEventsOverHTTP2(t *testing.T) {
	p := apitest.Working()
	first, more := make(chan struct{}), make(chan struct{})
	p.WatchFn = func(_ context.Context, _ string, each func(core.JobChange) error) error {
		job := apitest.QueuedJob("a")
		if err := each(core.JobChange{Revision: 1, Job: &job}); err != nil {
			return err
		}
		if err := each(core.JobChange{}); err != nil {
			return err
		}
		close(first)
		<-more
		job.State = core.JobSucceeded
		return each(core.JobChange{Revision: 2, Job: &job})
	}
	_, addr, trust := secured(t, p)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get("https://" + addr + "/jobs/a/events")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	<-first
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"state":"queued"`) {
	}
	close(more)
	for lines.Scan() && !strings.Contains(lines.Text(), `"state":"succeeded"`) {
	}
	if lines.Err() != nil || !strings.Contains(lines.Text(), "succeeded") || res.ProtoMajor != 2 {
		t.Errorf("%s: %q, %v", res.Proto, lines.Text(), lines.Err())
	}
}
