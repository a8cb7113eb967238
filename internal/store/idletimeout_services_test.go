//go:build services

package store_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
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

// TestPostgresNetworkDropsPackets: a call fails within a few times connect_timeout when the network drops all packets, also while the pool has
// connections that were not used for a while: each of them is tried.
func TestPostgresNetworkDropsPackets(t *testing.T) {
	u, err := url.Parse(storetest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	relay := storetest.NewRelay(t, u.Host)
	u.Host = relay.Addr()
	query := u.Query()
	query.Set("connect_timeout", "1")
	u.RawQuery = query.Encode()
	s := storetest.OpenConfig(t, store.Config{URL: u.String()})
	hold := make(chan struct{})
	var opened, done sync.WaitGroup
	opened.Add(3)
	for range 3 {
		done.Go(func() {
			if err := s.Update(t.Context(), func(context.Context, *store.Tx) error {
				opened.Done()
				<-hold
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	opened.Wait()
	close(hold)
	done.Wait()
	time.Sleep(1100 * time.Millisecond) // from then on a connection is pinged before it is used
	relay.Block()
	began := time.Now()
	if err := s.Ready(t.Context()); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("the query returned %v", err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it failed after %s", took)
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
