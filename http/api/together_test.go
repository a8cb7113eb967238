package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/http/server"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// writes counts what is written to its connections.
type writes struct {
	net.Listener
	n atomic.Int64
}

func (l *writes) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &written{c, &l.n}, err
}

type written struct {
	net.Conn
	n *atomic.Int64
}

func (c *written) Write(b []byte) (int, error) {
	c.n.Add(1)
	return c.Conn.Write(b)
}

// TestAnswersInOnePiece: an answer of a page is sent at once, head and body, and every answer is whole, on one connection.
func TestAnswersInOnePiece(t *testing.T) {
	var body []byte
	p := apitest.Working()
	p.Catalogues.Put(apitest.Participants())
	p.Searches = &apitest.Searches{ExecuteFn: func(context.Context, string, core.Principal, core.GraphQLRequest) (core.GraphQLResponse, error) {
		return core.GraphQLResponse{Body: bytes.Clone(body)}, nil
	}}
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &writes{Listener: inner}
	s := server.New(apitest.NewHandler(t, p, api.Config{}), server.Config{})
	s.Serve(l)
	defer func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for _, size := range []int{0, 1, 2000, 3 << 10, 3<<10 + 1, 3700, 3800, 3900, 4000, 4096, 5000, 9000, 16 << 10, 16<<10 + 1, 40 << 10, 100 << 10, 5000} {
		body = []byte(strings.Repeat("x", size))
		l.n.Store(0)
		res, err := client.Post("http://"+s.Addr().String()+"/participants/graphql", "application/json", strings.NewReader(`{"query":"{a}"}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !bytes.Equal(got, body) || res.Header.Get("Content-Length") != strconv.Itoa(size) {
			t.Errorf("of %d bytes came %d, announced as %s: %v", size, len(got), res.Header.Get("Content-Length"), err)
		}
		if n := l.n.Load(); size <= 16<<10 && n != 1 {
			t.Errorf("an answer of %d bytes was sent in %d pieces", size, n)
		}
	}
}

// halves sends half of the first longer write, and says that it took too long.
type halves struct {
	net.Listener
	n atomic.Int64
}

func (l *halves) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &halved{c, &l.n}, err
}

type halved struct {
	net.Conn
	n *atomic.Int64
}

func (c *halved) Write(b []byte) (int, error) {
	if len(b) < 4096 || c.n.Add(1) > 1 {
		return c.Conn.Write(b)
	}
	n, _ := c.Conn.Write(b[:len(b)/2])
	return n, os.ErrDeadlineExceeded
}

// TestNothingFollowsHalfAnAnswer on its connection.
func TestNothingFollowsHalfAnAnswer(t *testing.T) {
	for _, size := range []int{9000, 40_000} {
		p := apitest.Working()
		p.Catalogues.Put(apitest.Participants())
		p.Searches = &apitest.Searches{ExecuteFn: func(context.Context, string, core.Principal, core.GraphQLRequest) (core.GraphQLResponse, error) {
			return core.GraphQLResponse{Body: bytes.Repeat([]byte("x"), size)}, nil
		}}
		inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := server.New(apitest.NewHandler(t, p, api.Config{}), server.Config{})
		s.Serve(&halves{Listener: inner})
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		const question = "POST /participants/graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"query\":\"{a}\"}"
		if _, err := io.WriteString(c, question+question); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		got, err := io.ReadAll(c)
		if errors.Is(err, os.ErrDeadlineExceeded) || bytes.Count(got, []byte("HTTP/1.1 ")) != 1 {
			t.Errorf("of %d bytes came %d with %d heads: %v", size, len(got), bytes.Count(got, []byte("HTTP/1.1 ")), err)
		}
		_ = c.Close()
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
