package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/internal/tools/testkit"
)

// withServer returns settings with more keys of server.
func withServer(keys string) settings {
	return settings{configuration: func(w *world) string {
		plain := *w
		plain.set.configuration = nil
		return strings.Replace(plain.yaml(), "server: {", "server: {"+keys+", ", 1)
	}}
}

// TestConnectionLimitsAreConfigured: each of the keys takes effect, and /metrics counts refused connections.
func TestConnectionLimitsAreConfigured(t *testing.T) {
	for limit, keys := range map[string]string{
		"address": "maxConnectionsPerAddress: 2",
		"total":   "maxConnections: 2, maxConnectionsPerAddress: 1, trustedProxies: [127.0.0.0/8]",
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			w := startWorld(t, withServer(keys))
			w.client.CloseIdleConnections()
			w.eventually(wait, func() (bool, string) {
				n := w.metric("tutti_http_connections")
				return n == 0, fmt.Sprintf("%v connections of the start are open", n)
			})
			addr := strings.TrimPrefix(w.url, "http://")
			for range 2 {
				conn := connected(t, addr)
				// The server asks for the body once a handler reads it.
				if _, err := fmt.Fprintf(conn, "POST /notifications/%s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n", code); err != nil {
					t.Fatal(err)
				}
				asked := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
				if _, err := io.ReadFull(conn, asked); err != nil || !strings.Contains(string(asked), " 100 ") {
					t.Fatalf("%q, %v", asked, err)
				}
			}
			for path, want := range map[string]int{"/jobs": http.StatusServiceUnavailable, "/ping": http.StatusOK} {
				conn := connected(t, addr)
				if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
					t.Fatal(err)
				}
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				_ = res.Body.Close()
				if res.StatusCode != want {
					t.Errorf("%s got %d, want %d", path, res.StatusCode, want)
				}
			}
			if n := w.metric("tutti_http_connections_refused_total", "limit", limit); n < 2 {
				t.Errorf("%v connections were over the limit", n)
			}
		})
	}
}

// connected returns a connection that is closed with the test.
func connected(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testkit.HangLimit)); err != nil {
		t.Fatal(err)
	}
	return conn
}
