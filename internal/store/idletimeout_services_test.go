//go:build services

package store_test

import (
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// TestPostgresIdleTimeout: a call times out when the network drops every answer without closing the connection.
func TestPostgresIdleTimeout(t *testing.T) {
	u, err := url.Parse(storetest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	var silent atomic.Bool
	u.Host = droppingProxy(t, u.Host, &silent)
	s := storetest.OpenConfig(t, store.Config{URL: u.String(), IdleTimeout: 500 * time.Millisecond})
	silent.Store(true)
	if err := s.Ready(t.Context()); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("the query returned %v", err)
	}
}

// droppingProxy returns the address of a proxy to target that drops target's answers while silent is true.
func droppingProxy(t *testing.T, target string, silent *atomic.Bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(server, client)
				_ = server.Close()
			}()
			go func() {
				_, _ = io.Copy(dropper{client, silent}, server)
				_ = client.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

type dropper struct {
	to     io.Writer
	silent *atomic.Bool
}

func (s dropper) Write(b []byte) (int, error) {
	if s.silent.Load() {
		return len(b), nil
	}
	return s.to.Write(b)
}
