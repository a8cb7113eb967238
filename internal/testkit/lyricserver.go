package testkit

import (
	"compress/gzip"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// LyricConfig configures a LyricServer. Its zero value is a server of category 1 that asks for no token.
type LyricConfig struct {
	// CategoryID is the id of the server's one category. Default 1.
	CategoryID int
	// Alias is another name of the category, empty for none.
	Alias string
	// CentralEntity is the entity that the category is about: the compound view lists its records alone. Empty: those of
	// every entity.
	CentralEntity string
	// Token is the bearer token that calls must carry, Username and Password the basic auth; empty for none.
	Token              string
	Username, Password string
	// BasePath is put before every route, such as "/lyric".
	BasePath string
	// MaxPageSize caps the size of pages, as Lyric itself does not; 0 for no cap.
	MaxPageSize int
	// PaginationLast puts what a page says of itself behind its records.
	PaginationLast bool
	// Gzip compresses answers for clients that accept it.
	Gzip bool
	// BeforePage is called before a page is put together, with no lock held, and may change the server's data. n
	// counts the calls for pages from 0.
	BeforePage func(s *LyricServer, n int, call LyricPageCall)
}

// LyricRoute names a kind of call of a LyricServer.
type LyricRoute string

// Routes of a LyricServer.
const (
	LyricRouteCategory LyricRoute = "category"
	LyricRoutePage     LyricRoute = "page"
	LyricRouteRecord   LyricRoute = "record"
	LyricRouteAlive    LyricRoute = "alive"
	LyricRouteOther    LyricRoute = "other"
)

// LyricPageCall is one call for a page. Page and PageSize are those that the server went by, 0 for what is no number
// from 1.
type LyricPageCall struct {
	// Organization is empty for the list of the whole category.
	Organization   string
	View           string
	Page, PageSize int
}

// LyricServer is an in-process server that speaks Lyric's protocol on a loopback address and can be told to fail. Its
// data and its faults may be changed at any time.
type LyricServer struct {
	*lyricStore
	*faults

	cfg      LyricConfig
	listener net.Listener
	server   *http.Server
	closing  chan struct{}
	served   chan struct{}
	handlers gate
	once     sync.Once
	buffers  sync.Pool // *[]byte, of pages

	counts   sync.Mutex
	routes   map[LyricRoute]int
	records  map[string]int
	pages    []LyricPageCall
	rawPaths []string
}

// NewLyric starts a server on a free port of 127.0.0.1. It must be closed.
func NewLyric(cfg LyricConfig) (*LyricServer, error) {
	if cfg.CategoryID == 0 {
		cfg.CategoryID = 1
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a Lyric server: %w", err)
	}
	s := &LyricServer{
		lyricStore: newLyricStore(), faults: &faults{}, cfg: cfg, listener: listener,
		closing: make(chan struct{}), served: make(chan struct{}),
		routes: map[LyricRoute]int{}, records: map[string]int{},
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(listener) // ends with ErrServerClosed
	}()
	return s, nil
}

// URL gives the server's base URL.
func (s *LyricServer) URL() string { return "http://" + s.listener.Addr().String() + s.cfg.BasePath }

// CategoryID gives the id of the server's one category.
func (s *LyricServer) CategoryID() string { return strconv.Itoa(s.cfg.CategoryID) }

// Close ends the server, its connections, and every call that a fault holds up, and waits for them.
func (s *LyricServer) Close() {
	s.once.Do(func() {
		close(s.closing)
		_ = s.server.Close()
		<-s.served
		s.handlers.close()
	})
}

// Requests counts the calls of a route.
func (s *LyricServer) Requests(route LyricRoute) int {
	s.counts.Lock()
	defer s.counts.Unlock()
	return s.routes[route]
}

// RecordRequests counts the calls for the record of an id.
func (s *LyricServer) RecordRequests(systemID string) int {
	s.counts.Lock()
	defer s.counts.Unlock()
	return s.records[systemID]
}

// PageCalls gives every call for a page, in order.
func (s *LyricServer) PageCalls() []LyricPageCall {
	s.counts.Lock()
	defer s.counts.Unlock()
	return slices.Clone(s.pages)
}

// RawPaths gives the path of every call as it came over the wire, percent-encoding included, without the query.
func (s *LyricServer) RawPaths() []string {
	s.counts.Lock()
	defer s.counts.Unlock()
	return slices.Clone(s.rawPaths)
}

// ServeHTTP implements http.Handler.
func (s *LyricServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.handlers.enter() {
		return
	}
	defer s.handlers.leave()
	raw, _, _ := strings.Cut(r.RequestURI, "?")
	call := s.parse(r.Method, raw, r.URL.Query())
	s.count(raw, call)
	out := &faultWriter{ResponseWriter: w, request: r, closing: s.closing}
	if fault := s.take(r.RequestURI); fault != nil {
		out.fault = fault
		if fault.StallAfter == 0 && !fault.wait(r, s.closing) {
			return
		}
		if fault.Status != 0 {
			s.failed(out, r, fault)
			return
		}
	}
	if !s.authorized(r) {
		// The words are the operator's own: Lyric leaves the check to them.
		s.sendJSON(out, r, http.StatusUnauthorized, map[string]string{"message": "Unauthorized: invalid token"})
		return
	}
	s.dispatch(out, r, call)
}

func (s *LyricServer) failed(w *faultWriter, r *http.Request, fault *Fault) {
	w.fault = nil
	if fault.Body == "" && fault.ContentType == "" && fault.Status >= http.StatusBadRequest {
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		s.refuse(w, r, fault.Status, http.StatusText(fault.Status), "told to fail")
		return
	}
	fault.answer(w)
}

func (s *LyricServer) authorized(r *http.Request) bool {
	switch {
	case s.cfg.Token != "":
		return subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.cfg.Token)) == 1
	case s.cfg.Username != "":
		username, password, ok := r.BasicAuth()
		return ok && username == s.cfg.Username && password == s.cfg.Password
	default:
		return true
	}
}

func (s *LyricServer) count(raw string, call lyricCall) {
	s.counts.Lock()
	defer s.counts.Unlock()
	s.routes[call.route]++
	s.rawPaths = append(s.rawPaths, raw)
	switch call.route {
	case LyricRouteRecord:
		s.records[call.id]++
	case LyricRoutePage:
		s.pages = append(s.pages, call.page)
	case LyricRouteCategory, LyricRouteAlive, LyricRouteOther:
	}
}

// send writes an answer, and does to it what the fault says.
func (s *LyricServer) send(w *faultWriter, r *http.Request, contentType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	status := max(w.status, http.StatusOK)
	if w.fault != nil && w.fault.Truncate > 0 {
		body = body[:min(len(body), w.fault.Truncate)]
	}
	if s.cfg.Gzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		packed := gzip.NewWriter(w)
		_, _ = packed.Write(body) // the client may have gone
		_ = packed.Close()
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	at := len(body)
	if w.fault != nil {
		at = w.breakAt(len(body))
	}
	_, _ = w.Write(body[:at])
	if at < len(body) {
		w.broken(body[at:])
	}
}

const lyricJSON = "application/json; charset=utf-8"

func (s *LyricServer) sendJSON(w *faultWriter, r *http.Request, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		body = []byte("{}") // not reached
	}
	w.status = status
	s.send(w, r, lyricJSON, body)
}

// refuse sends Lyric's error document.
func (s *LyricServer) refuse(w *faultWriter, r *http.Request, status int, name, message string) {
	s.sendJSON(w, r, status, struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}{name, message})
}

func (s *LyricServer) notFound(w *faultWriter, r *http.Request, message string) {
	s.refuse(w, r, http.StatusNotFound, "Not Found", message)
}
