package standin

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tutti/internal/core"
)

// ReceivedPath is the path of a sink's count of received documents.
const ReceivedPath = "/_received"

// Sink is an engine that stores nothing and responds at once: it implements the part of Elasticsearch's HTTP API that tutti uses, and
// counts.
type Sink struct {
	// delay is the duration of each bulk request.
	delay    time.Duration
	received atomic.Int64
	down     atomic.Bool
	bodies   sync.Pool // *[]byte, of bulk requests and of their responses
	listener net.Listener
	server   *http.Server
	served   sync.WaitGroup

	mu sync.Mutex
	// mappings are those of the created aliases.
	mappings map[string]json.RawMessage
	// kept are the newest documents by id; nil when they are not kept.
	kept map[string][]byte
}

// NewSink starts a sink on a free port of 127.0.0.1. With keep it stores each document. The caller must close it.
func NewSink(delay time.Duration, keep bool) (*Sink, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "starting a sink", err)
	}
	s := &Sink{delay: delay, listener: listener, mappings: map[string]json.RawMessage{}}
	if keep {
		s.kept = map[string][]byte{}
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.served.Go(func() { _ = s.server.Serve(listener) }) // ends with ErrServerClosed
	return s, nil
}

// URL returns the base URL.
func (s *Sink) URL() string { return "http://" + s.listener.Addr().String() }

// Close closes the listener and all connections.
func (s *Sink) Close() {
	_ = s.server.Close()
	s.served.Wait()
}

// SwitchOff makes the sink close every connection that sends a request; off false makes it respond again.
func (s *Sink) SwitchOff(off bool) { s.down.Store(off) }

// Document returns the newest document with an id, nil for none.
func (s *Sink) Document(id string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[id]
}

// ServeSink runs an engine that responds at once, or to every bulk request after delay: it prints its address to out, and stops when in
// ends.
func ServeSink(delay time.Duration, in io.Reader, out io.Writer) error {
	s, err := NewSink(delay, false)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := fmt.Fprintln(out, AddressPrefix+s.URL()); err != nil {
		return fmt.Errorf("printing the address: %w", err)
	}
	return untilClosed(in)
}

// ServeHTTP implements http.Handler.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.down.Load() {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	}
	first, last := "", r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if i := strings.IndexByte(r.URL.Path[1:], '/'); i >= 0 {
		first = r.URL.Path[1 : i+1]
	}
	switch {
	case r.URL.Path == "/":
		reply(w, http.StatusOK, `{"cluster_name":"sink","version":{"number":"8.19.21"},"tagline":"You Know, for Search"}`)
	case last == "_bulk":
		s.serveBulk(w, r)
	case last == "_alias":
		s.serveAlias(w, first)
	case first == "_alias": // asked for by earlier releases
		s.serveAlias(w, last)
	case last == "_settings":
		reply(w, http.StatusOK, `{"`+first+`-1":{"settings":{"index":{"uuid":"sink","number_of_shards":"1"}}}}`)
	case last == "_mapping" && r.Method == http.MethodGet:
		s.serveMapping(w, first)
	case first == "" && r.Method == http.MethodPut:
		s.create(w, r)
	default:
		body, ok := s.fixedResponse(r.Method, last)
		if !ok {
			reply(w, http.StatusBadRequest, fmt.Sprintf(`{"error":{"type":"illegal_argument_exception","reason":"%s %s is not known to a sink"},"status":400}`, r.Method, r.URL.Path))
			return
		}
		reply(w, http.StatusOK, body)
	}
}

// fixedResponse returns the constant response to a call by the last segment of its path.
func (s *Sink) fixedResponse(method, last string) (string, bool) {
	switch last {
	case ReceivedPath[1:]:
		return fmt.Sprint(s.received.Load()), true
	case "_mapping":
		return `{"acknowledged":true}`, true
	case "_refresh":
		return `{"_shards":{"failed":0}}`, true
	case "_count":
		return fmt.Sprintf(`{"count":%d,"_shards":{"failed":0}}`, s.received.Load()), true
	case "_pit":
		if method == http.MethodDelete {
			return `{"succeeded":true,"num_freed":1}`, true
		}
		return `{"id":"point"}`, true
	case "_search":
		return `{"pit_id":"point","timed_out":false,"hits":{"total":{"value":0,"relation":"eq"},"hits":[]}}`, true
	case "_mget":
		return `{"docs":[{"found":false}]}`, true
	case "health":
		return `{"status":"green"}`, true
	default:
		return "", false
	}
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the client may have disconnected
}

// create creates the requested aliases with their mapping.
func (s *Sink) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Aliases  map[string]json.RawMessage `json:"aliases"`
		Mappings json.RawMessage            `json:"mappings"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		reply(w, http.StatusBadRequest, `{"error":{"type":"parse_exception","reason":"not JSON"},"status":400}`)
		return
	}
	s.mu.Lock()
	for alias := range body.Aliases {
		s.mappings[alias] = body.Mappings
	}
	s.mu.Unlock()
	reply(w, http.StatusOK, `{"acknowledged":true,"shards_acknowledged":true}`)
}

func (s *Sink) mapping(alias string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.mappings[alias]
	return m, ok
}

func (s *Sink) serveAlias(w http.ResponseWriter, alias string) {
	if _, ok := s.mapping(alias); !ok {
		reply(w, http.StatusNotFound, `{"error":"alias [`+alias+`] missing","status":404}`)
		return
	}
	reply(w, http.StatusOK, `{"`+alias+`-1":{"aliases":{"`+alias+`":{"is_write_index":true}}}}`)
}

func (s *Sink) serveMapping(w http.ResponseWriter, alias string) {
	m, ok := s.mapping(alias)
	if !ok {
		reply(w, http.StatusNotFound, `{"error":{"type":"index_not_found_exception","reason":"no such index"},"status":404}`)
		return
	}
	reply(w, http.StatusOK, `{"`+alias+`-1":{"mappings":`+string(m)+`}}`)
}
