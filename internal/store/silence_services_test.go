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
	"tutti/internal/store/storetest"
)

// TestSilentPostgres: a network that swallows every answer without closing a connection ends a call after some silence.
func TestSilentPostgres(t *testing.T) {
	u, err := url.Parse(storetest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	var silent atomic.Bool
	u.Host = swallowing(t, u.Host, &silent)
	s := storetest.OpenConfig(t, store.Config{URL: u.String(), Silence: 500 * time.Millisecond})
	silent.Store(true)
	if err := s.Ready(t.Context()); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("asking gave %v", err)
	}
}

// swallowing returns the address of a proxy to target, which drops what target says while silent is true.
func swallowing(t *testing.T, target string, silent *atomic.Bool) string {
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
				_, _ = io.Copy(swallower{client, silent}, server)
				_ = client.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

type swallower struct {
	to     io.Writer
	silent *atomic.Bool
}

func (s swallower) Write(b []byte) (int, error) {
	if s.silent.Load() {
		return len(b), nil
	}
	return s.to.Write(b)
}
