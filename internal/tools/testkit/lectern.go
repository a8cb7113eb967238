package testkit

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// LecternRoute names a kind of call of a LecternServer.
type LecternRoute string

// Routes of a LecternServer.
const (
	LecternRouteDictionaries LecternRoute = "dictionaries"
	LecternRouteOther        LecternRoute = "other"
)

// LecternServer is an in-process server that returns dictionaries as a Lectern does, with fault injection. Its dictionaries and its faults
// may be changed at any time.
type LecternServer struct {
	*serverBase[LecternRoute, struct{}]

	mu           sync.Mutex
	dictionaries []json.RawMessage
}

// NewLectern starts a server on a free port of 127.0.0.1. The caller must close it.
func NewLectern() (*LecternServer, error) {
	f, err := newServerBase[LecternRoute, struct{}]("Lectern")
	if err != nil {
		return nil, err
	}
	s := &LecternServer{serverBase: f}
	f.serve(s)
	return s, nil
}

// URL returns the server's base URL.
func (s *LecternServer) URL() string { return "http://" + s.listener.Addr().String() }

// Add adds a dictionary, a JSON object with name, version and schemas.
func (s *LecternServer) Add(dictionary string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dictionaries = append(s.dictionaries, json.RawMessage(dictionary))
}

// ServeHTTP implements http.Handler.
func (s *LecternServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.handlers.add() {
		return
	}
	defer s.handlers.done()
	raw, route := rawPath(r), LecternRouteOther
	if r.Method == http.MethodGet && strings.HasSuffix(raw, "/dictionaries") {
		route = LecternRouteDictionaries
	}
	s.countCall(raw, route, "", nil)
	fail := func(w *faultWriter, status int, message string) {
		w.status = status
		w.send("application/json; charset=utf-8", false, []byte(`{"error":"`+http.StatusText(status)+`","message":"`+message+`"}`))
	}
	out := s.applyFault(w, r, func(w *faultWriter, status int) { fail(w, status, "told to fail") })
	if out == nil {
		return
	}
	if route == LecternRouteOther {
		fail(out, http.StatusNotFound, "Cannot "+r.Method)
		return
	}
	query := r.URL.Query()
	name, version := query.Get("name"), query.Get("version")
	found := s.named(name, version)
	if len(found) == 0 && name != "" && version != "" {
		fail(out, http.StatusNotFound, "No dictionary with that name and version")
		return
	}
	body, err := json.Marshal(found)
	if err != nil {
		body = []byte("[]") // not reached: Add is called with JSON
	}
	out.send("application/json; charset=utf-8", false, body)
}

// named returns the dictionaries with a name and, if both are given, a version.
func (s *LecternServer) named(name, version string) []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []json.RawMessage{}
	for _, d := range s.dictionaries {
		if (name == "" || gjson.GetBytes(d, "name").String() == name) &&
			(name == "" || version == "" || gjson.GetBytes(d, "version").String() == version) {
			found = append(found, slices.Clone(d))
		}
	}
	return found
}
