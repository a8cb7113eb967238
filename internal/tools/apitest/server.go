package apitest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/http/server"
	"tutti/internal/tools/testkit"
)

// Start serves p until the test ends and returns the address.
func Start(t *testing.T, p *Ports, cfg api.Config) (*server.Server, string) {
	t.Helper()
	s := server.New(NewHandler(t, p, cfg), server.Config{})
	if err := s.Start(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s, s.Addr().String()
}

// Wire sends raw bytes and reads one answer.
func Wire(t *testing.T, addr, raw string) (*http.Response, []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return Over(t, conn, raw)
}

// Over sends raw bytes over a connection, reads one answer and closes it.
func Over(t *testing.T, conn net.Conn, raw string) (*http.Response, []byte) {
	t.Helper()
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(testkit.HangLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(raw, " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}
