package direct

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"tutti/internal/core"
)

// Connections is the number of connections to a server, with one request at a time on each.
const Connections = 8

// Load sends requests to a server as fast as it responds. Requests are prepared and responses barely parsed, to use little of the CPUs
// that it shares with the server.
type Load struct {
	address string
}

// NewLoad returns a Load on the server at base.
func NewLoad(base string) (Load, error) {
	u, err := url.Parse(base)
	if err != nil {
		return Load{}, core.WrapError(core.CodeInternal, "parsing the server's address", err)
	}
	return Load{address: u.Host}, nil
}

// Request returns the bytes of a request, whose body is JSON.
func (l Load) Request(method, path string, body []byte) []byte {
	return l.Typed(method, path, "application/json", body)
}

// Typed returns the bytes of a request with a body of a content type.
func (l Load) Typed(method, path, contentType string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, l.address)
	if body != nil {
		fmt.Fprintf(&b, "Content-Type: %s\r\nContent-Length: %d\r\n", contentType, len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// Result holds the responses per second, and the duration of each in milliseconds.
type Result struct {
	PerSecond float64
	Ms        []float64
}

// Run is RunConnections with Connections connections.
func (l Load) Run(ctx context.Context, lasts time.Duration, next func(connection, i int) []byte) (Result, error) {
	return l.RunConnections(ctx, Connections, lasts, next)
}

// RunConnections opens a number of connections, and runs the load over them for the duration lasts, at least one request each. next returns
// the i-th request of a connection, nil at the end. A status other than success is an error.
func (l Load) RunConnections(ctx context.Context, connections int, lasts time.Duration, next func(connection, i int) []byte) (Result, error) {
	conns := make([]net.Conn, connections)
	for c := range conns {
		var err error
		if conns[c], err = (&net.Dialer{}).DialContext(ctx, "tcp", l.address); err != nil {
			return Result{}, core.WrapError(core.CodeUnavailable, "connecting to the server", err)
		}
		defer func() { _ = conns[c].Close() }()
	}
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var wg sync.WaitGroup
	times, errs := make([][]float64, connections), make([]error, connections)
	began := time.Now()
	for c := range connections {
		wg.Go(func() { times[c], errs[c] = load(ctx, conns[c], func(i int) []byte { return next(c, i) }) })
	}
	wg.Wait()
	took := time.Since(began)
	var all Result
	for c := range connections {
		if errs[c] != nil {
			return all, errs[c]
		}
		all.Ms = append(all.Ms, times[c]...)
	}
	all.PerSecond = float64(len(all.Ms)) / took.Seconds()
	return all, nil
}

// load sends requests over a connection until ctx ends, and returns the milliseconds of each.
func load(ctx context.Context, conn net.Conn, next func(i int) []byte) (ms []float64, err error) {
	reader := bufio.NewReaderSize(conn, 64<<10)
	for i := 0; i == 0 || ctx.Err() == nil; i++ {
		request := next(i)
		if request == nil {
			return ms, nil
		}
		began := time.Now()
		if _, err := conn.Write(request); err != nil {
			return ms, core.WrapError(core.CodeUnavailable, "calling the server", err)
		}
		if err := readAnswer(reader); err != nil {
			return ms, err
		}
		ms = append(ms, time.Since(began).Seconds()*1e3)
	}
	return ms, nil
}

// readAnswer reads a response with a Content-Length, or in chunks.
func readAnswer(r *bufio.Reader) error {
	status, length := 0, -1
	chunked := false
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return core.WrapError(core.CodeUnavailable, "reading a response", err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if first {
			if len(line) > 11 {
				status, _ = strconv.Atoi(string(line[9:12]))
			}
			continue
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, _ = strconv.Atoi(string(value))
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = string(value) == "chunked"
		}
	}
	success := status/100 == 2
	if chunked && success {
		return discardChunks(r)
	}
	if !success || length < 0 {
		rest, _ := io.ReadAll(io.LimitReader(r, int64(min(max(0, length), 300))))
		return core.NewError(core.CodeUnavailable, fmt.Sprintf("the server returned %d: %s", status, rest))
	}
	if _, err := r.Discard(length); err != nil {
		return core.WrapError(core.CodeUnavailable, "reading a response", err)
	}
	return nil
}

// discardChunks reads the body of a chunked response.
func discardChunks(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return core.WrapError(core.CodeUnavailable, "reading a response", err)
		}
		size, err := strconv.ParseInt(string(bytes.TrimRight(line, "\r\n")), 16, 32)
		if err != nil {
			return core.WrapError(core.CodeUnavailable, "reading a response's chunk", err)
		}
		if _, err := r.Discard(int(size) + len("\r\n")); err != nil {
			return core.WrapError(core.CodeUnavailable, "reading a response", err)
		}
		if size == 0 {
			return nil
		}
	}
}
