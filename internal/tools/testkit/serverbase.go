package testkit

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// serverBase is shared by the servers of this package: a listener on a loopback address with a graceful end, faults, and counts of the calls.
// R names kinds of calls, P is a call for a page.
type serverBase[R ~string, P any] struct {
	*faults

	listener net.Listener
	server   *http.Server
	closing  chan struct{}
	served   chan struct{}
	handlers drainGroup
	once     sync.Once
	buffers  sync.Pool // *[]byte, of pages

	counts   sync.Mutex
	routes   map[R]int
	records  map[string]int
	pages    []P
	rawPaths []string
}

// newServerBase listens on a free port of 127.0.0.1. what names the server in an error.
func newServerBase[R ~string, P any](what string) (*serverBase[R, P], error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a %s server: %w", what, err)
	}
	return &serverBase[R, P]{
		faults: &faults{}, listener: listener, closing: make(chan struct{}), served: make(chan struct{}),
		routes: map[R]int{}, records: map[string]int{},
	}, nil
}

// serve starts serving.
func (f *serverBase[R, P]) serve(handler http.Handler) {
	f.server = &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(f.served)
		_ = f.server.Serve(f.listener) // ends with ErrServerClosed
	}()
}

// Close closes the server and its connections, ends calls delayed by faults, and waits for them.
func (f *serverBase[R, P]) Close() {
	f.once.Do(func() {
		close(f.closing)
		_ = f.server.Close()
		<-f.served
		f.handlers.drain()
	})
}

// Requests counts the calls of a route.
func (f *serverBase[R, P]) Requests(route R) int {
	f.counts.Lock()
	defer f.counts.Unlock()
	return f.routes[route]
}

// RecordRequests counts the calls for the record with an id.
func (f *serverBase[R, P]) RecordRequests(id string) int {
	f.counts.Lock()
	defer f.counts.Unlock()
	return f.records[id]
}

// PageCalls returns every call for a page, in order.
func (f *serverBase[R, P]) PageCalls() []P {
	f.counts.Lock()
	defer f.counts.Unlock()
	return slices.Clone(f.pages)
}

// RawPaths returns the path of every call as received, with percent-encoding, without the query.
func (f *serverBase[R, P]) RawPaths() []string {
	f.counts.Lock()
	defer f.counts.Unlock()
	return slices.Clone(f.rawPaths)
}

// countCall counts a call for a record (recordID), a page, or neither.
func (f *serverBase[R, P]) countCall(raw string, route R, recordID string, page *P) {
	f.counts.Lock()
	defer f.counts.Unlock()
	f.routes[route]++
	f.rawPaths = append(f.rawPaths, raw)
	if recordID != "" {
		f.records[recordID]++
	}
	if page != nil {
		f.pages = append(f.pages, *page)
	}
}

// applyFault applies the next fault to a call before it is answered; sendError sends a fault's status in the server's format. It returns the
// writer of the response, nil when the call has ended.
func (f *serverBase[R, P]) applyFault(w http.ResponseWriter, r *http.Request, sendError func(w *faultWriter, status int)) *faultWriter {
	out := &faultWriter{ResponseWriter: w, request: r, closing: f.closing}
	fault := f.take(r.RequestURI)
	if fault == nil {
		return out
	}
	out.fault = fault
	if fault.StallAfter == 0 && !fault.wait(r, f.closing) {
		return nil
	}
	if fault.Status == 0 {
		return out
	}
	out.fault = nil
	if fault.Body == "" && fault.ContentType == "" && fault.Status >= http.StatusBadRequest {
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		sendError(out, fault.Status)
		return nil
	}
	fault.answer(out)
	return nil
}

// rawPath returns a call's path as received.
func rawPath(r *http.Request) string {
	raw, _, _ := strings.Cut(r.RequestURI, "?")
	return raw
}

// drainGroup counts the running handlers, and admits none once it drains.
type drainGroup struct {
	mu       sync.Mutex
	draining bool
	active   sync.WaitGroup
}

// add reports whether a handler may start, which must then call done.
func (g *drainGroup) add() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining {
		return false
	}
	g.active.Add(1)
	return true
}

func (g *drainGroup) done() { g.active.Done() }

// drain admits no further handlers and waits for the running ones.
func (g *drainGroup) drain() {
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	g.active.Wait()
}
