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

// frame is what the servers of this package have in common: a listener on a loopback address that ends whole, faults, and
// counts of the calls. R names kinds of call, P is a call for a page.
type frame[R ~string, P any] struct {
	*faults

	listener net.Listener
	server   *http.Server
	closing  chan struct{}
	served   chan struct{}
	handlers gate
	once     sync.Once
	buffers  sync.Pool // *[]byte, of pages

	counts   sync.Mutex
	routes   map[R]int
	records  map[string]int
	pages    []P
	rawPaths []string
}

// newFrame listens on a free port of 127.0.0.1. what names the server in an error.
func newFrame[R ~string, P any](what string) (*frame[R, P], error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a %s server: %w", what, err)
	}
	return &frame[R, P]{
		faults: &faults{}, listener: listener, closing: make(chan struct{}), served: make(chan struct{}),
		routes: map[R]int{}, records: map[string]int{},
	}, nil
}

// serve begins to answer.
func (f *frame[R, P]) serve(handler http.Handler) {
	f.server = &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(f.served)
		_ = f.server.Serve(f.listener) // ends with ErrServerClosed
	}()
}

// Close ends the server, its connections, and every call that a fault holds up, and waits for them.
func (f *frame[R, P]) Close() {
	f.once.Do(func() {
		close(f.closing)
		_ = f.server.Close()
		<-f.served
		f.handlers.close()
	})
}

// Requests counts the calls of a route.
func (f *frame[R, P]) Requests(route R) int {
	f.counts.Lock()
	defer f.counts.Unlock()
	return f.routes[route]
}

// RecordRequests counts the calls for the record of an id.
func (f *frame[R, P]) RecordRequests(id string) int {
	f.counts.Lock()
	defer f.counts.Unlock()
	return f.records[id]
}

// PageCalls returns every call for a page, in order.
func (f *frame[R, P]) PageCalls() []P {
	f.counts.Lock()
	defer f.counts.Unlock()
	return slices.Clone(f.pages)
}

// RawPaths returns the path of every call as it came over the wire, percent-encoding included, without the query.
func (f *frame[R, P]) RawPaths() []string {
	f.counts.Lock()
	defer f.counts.Unlock()
	return slices.Clone(f.rawPaths)
}

// note counts a call for a record (recordID) or a page, which may be neither.
func (f *frame[R, P]) note(raw string, route R, recordID string, page *P) {
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

// strike does to a call what the next fault says, before the call is answered; refuse sends a fault's status in the
// server's own words. It returns the writer of the answer, nil when there is none to give any more.
func (f *frame[R, P]) strike(w http.ResponseWriter, r *http.Request, refuse func(w *faultWriter, status int)) *faultWriter {
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
		refuse(out, fault.Status)
		return nil
	}
	fault.answer(out)
	return nil
}

// rawPath returns a call's path as it came over the wire.
func rawPath(r *http.Request) string {
	raw, _, _ := strings.Cut(r.RequestURI, "?")
	return raw
}
