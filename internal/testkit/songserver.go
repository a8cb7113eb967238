package testkit

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// SongConfig configures a SongServer. Its zero value is a server that asks for no token.
type SongConfig struct {
	// Token is the bearer token that calls must carry, Username and Password the basic auth; empty for none.
	Token              string
	Username, Password string
	// BasePath is put before every route, such as "/song".
	BasePath string
	// Lenient answers an analysis that is asked for under another study, instead of refusing it.
	Lenient bool
	// TotalsFirst puts a page's counts before its analyses.
	TotalsFirst bool
	// Gzip compresses answers for clients that accept it.
	Gzip bool
	// BeforePage is called before a page is put together, with no lock held, and may change the server's data. n
	// counts the calls for pages from 0.
	BeforePage func(s *SongServer, n int, call PageCall)
	// BeforeRecord is called before an analysis is looked up by its id, with no lock held.
	BeforeRecord func(s *SongServer, id string)
}

// Route names a kind of call.
type Route string

// Routes of a SongServer.
const (
	RouteStudies Route = "studies"
	RoutePage    Route = "page"
	RouteRecord  Route = "record"
	RouteAlive   Route = "alive"
	RouteOther   Route = "other"
)

// PageCall is one call for a page.
type PageCall struct {
	Study         string
	States        []string
	Offset, Limit int
}

// SongServer is an in-process server that speaks Song's protocol on a loopback address and can be told to fail. Its
// data and its faults may be changed at any time.
type SongServer struct {
	*songStore
	*faults

	cfg      SongConfig
	listener net.Listener
	server   *http.Server
	closing  chan struct{}
	served   chan struct{}
	handlers gate
	once     sync.Once
	buffers  sync.Pool // *[]byte, of pages

	counts   sync.Mutex
	routes   map[Route]int
	records  map[string]int
	pages    []PageCall
	rawPaths []string
}

// NewSong starts a server on a free port of 127.0.0.1. It must be closed.
func NewSong(cfg SongConfig) (*SongServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a Song server: %w", err)
	}
	s := &SongServer{
		songStore: newSongStore(), faults: &faults{}, cfg: cfg, listener: listener,
		closing: make(chan struct{}), served: make(chan struct{}),
		routes: map[Route]int{}, records: map[string]int{},
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(listener) // ends with ErrServerClosed
	}()
	return s, nil
}

// URL gives the server's base URL.
func (s *SongServer) URL() string { return "http://" + s.listener.Addr().String() + s.cfg.BasePath }

// Close ends the server, its connections, and every call that a fault holds up, and waits for them.
func (s *SongServer) Close() {
	s.once.Do(func() {
		close(s.closing)
		_ = s.server.Close()
		<-s.served
		s.handlers.close()
	})
}

// Requests counts the calls of a route.
func (s *SongServer) Requests(route Route) int {
	s.counts.Lock()
	defer s.counts.Unlock()
	return s.routes[route]
}

// RecordRequests counts the calls for the analysis of an id.
func (s *SongServer) RecordRequests(id string) int {
	s.counts.Lock()
	defer s.counts.Unlock()
	return s.records[id]
}

// PageCalls gives every call for a page, in order.
func (s *SongServer) PageCalls() []PageCall {
	s.counts.Lock()
	defer s.counts.Unlock()
	return slices.Clone(s.pages)
}

// RawPaths gives the path of every call as it came over the wire, percent-encoding included, without the query.
func (s *SongServer) RawPaths() []string {
	s.counts.Lock()
	defer s.counts.Unlock()
	return slices.Clone(s.rawPaths)
}

// ServeHTTP implements http.Handler.
func (s *SongServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.handlers.enter() {
		return
	}
	defer s.handlers.leave()
	raw, _, _ := strings.Cut(r.RequestURI, "?")
	call := s.parse(raw, r.URL.Query())
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
		s.refuse(out, r, http.StatusUnauthorized, "unauthorized.token", "Invalid token")
		return
	}
	s.dispatch(out, r, call)
}

func (s *SongServer) failed(w *faultWriter, r *http.Request, fault *Fault) {
	w.fault = nil
	if fault.Body == "" && fault.ContentType == "" && fault.Status >= http.StatusBadRequest {
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		s.refuse(w, r, fault.Status, "unknown.error", "told to fail")
		return
	}
	fault.answer(w)
}

func (s *SongServer) authorized(r *http.Request) bool {
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

// songCall is a call that was understood.
type songCall struct {
	route Route
	id    string
	page  PageCall
}

// parse reads a call from the path as received; no segment is decoded before the path is split.
func (s *SongServer) parse(raw string, query url.Values) songCall {
	rest, ok := strings.CutPrefix(raw, s.cfg.BasePath+"/")
	if !ok {
		return songCall{route: RouteOther}
	}
	segments := strings.Split(rest, "/")
	for i, segment := range segments {
		decoded, err := url.PathUnescape(segment)
		if err != nil {
			return songCall{route: RouteOther}
		}
		segments[i] = decoded
	}
	switch {
	case len(segments) == 1 && segments[0] == "isAlive":
		return songCall{route: RouteAlive}
	case len(segments) == 2 && segments[0] == "studies" && segments[1] == "all":
		return songCall{route: RouteStudies}
	case len(segments) != 4 || segments[0] != "studies" || segments[2] != "analysis":
		return songCall{route: RouteOther}
	case segments[3] == "paginated":
		return songCall{route: RoutePage, page: pageCall(segments[1], query)}
	default:
		return songCall{route: RouteRecord, id: segments[3], page: PageCall{Study: segments[1]}}
	}
}

// pageCall reads the query of a call for a page, with Song's own defaults. A limit of -1 is one that is no number.
func pageCall(study string, query url.Values) PageCall {
	number := func(name string, otherwise int) int {
		if !query.Has(name) {
			return otherwise
		}
		n, err := strconv.Atoi(query.Get(name))
		if err != nil || n < 0 {
			return -1
		}
		return n
	}
	states := []string{"PUBLISHED"}
	if query.Has("analysisStates") {
		states = strings.Split(query.Get("analysisStates"), ",")
	}
	return PageCall{Study: study, States: states, Offset: number("offset", 0), Limit: number("limit", 20)}
}

func (s *SongServer) count(raw string, call songCall) {
	s.counts.Lock()
	defer s.counts.Unlock()
	s.routes[call.route]++
	s.rawPaths = append(s.rawPaths, raw)
	switch call.route {
	case RouteRecord:
		s.records[call.id]++
	case RoutePage:
		s.pages = append(s.pages, call.page)
	case RouteStudies, RouteAlive, RouteOther:
	}
}

func (s *SongServer) dispatch(w *faultWriter, r *http.Request, call songCall) {
	if r.Method != http.MethodGet {
		s.refuse(w, r, http.StatusMethodNotAllowed, "unknown.error", "Request method not supported")
		return
	}
	switch call.route {
	case RouteAlive:
		s.send(w, r, []byte("true"))
	case RouteStudies:
		body, err := json.Marshal(s.Studies())
		if err != nil {
			s.refuse(w, r, http.StatusInternalServerError, "unknown.error", err.Error())
			return
		}
		s.send(w, r, body)
	case RoutePage:
		s.servePage(w, r, call.page)
	case RouteRecord:
		s.serveRecord(w, r, call.page.Study, call.id)
	case RouteOther:
		s.refuse(w, r, http.StatusNotFound, "unknown.error", "No handler found")
	}
}

func (s *SongServer) servePage(w *faultWriter, r *http.Request, call PageCall) {
	if s.cfg.BeforePage != nil {
		s.cfg.BeforePage(s, s.Requests(RoutePage)-1, call)
	}
	if !s.hasStudy(call.Study) {
		s.noStudy(w, r, call.Study)
		return
	}
	if call.Offset < 0 || call.Limit < 0 {
		s.refuse(w, r, http.StatusBadRequest, "malformed.parameter", "limit and offset are numbers from 0")
		return
	}
	bodies, total := s.page(call.Study, call.States, call.Offset, call.Limit)
	counts := fmt.Sprintf(`"totalAnalyses":%d,"currentTotalAnalyses":%d`, total, len(bodies))
	size := len(counts) + 32
	for _, body := range bodies {
		size += len(body) + 1
	}
	buffer, _ := s.buffers.Get().(*[]byte)
	if buffer == nil {
		buffer = new([]byte)
	}
	defer s.buffers.Put(buffer)
	out := append(slices.Grow((*buffer)[:0], size), '{')
	if s.cfg.TotalsFirst {
		out = append(append(out, counts...), ',')
	}
	out = append(out, `"analyses":[`...)
	for i, body := range bodies {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, body...)
	}
	out = append(out, ']')
	if !s.cfg.TotalsFirst {
		out = append(append(out, ','), counts...)
	}
	*buffer = append(out, '}')
	s.send(w, r, *buffer)
}

func (s *SongServer) serveRecord(w *faultWriter, r *http.Request, study, id string) {
	if s.cfg.BeforeRecord != nil {
		s.cfg.BeforeRecord(s, id)
	}
	if !s.hasStudy(study) {
		s.noStudy(w, r, study)
		return
	}
	a, ok := s.Analysis(id)
	switch {
	case !ok:
		s.refuse(w, r, http.StatusNotFound, "analysis.id.not.found",
			fmt.Sprintf("[AnalysisService::analysis.id.not.found] - The analysisId '%s' was not found", id))
	case a.Study != study && !s.cfg.Lenient:
		s.refuse(w, r, http.StatusBadRequest, "entity.not.related.to.study",
			fmt.Sprintf("[AnalysisService::entity.not.related.to.study] - The analysisId '%s' is not related to the studyId '%s'", id, study))
	default:
		s.send(w, r, a.Body)
	}
}

func (s *SongServer) noStudy(w *faultWriter, r *http.Request, study string) {
	s.refuse(w, r, http.StatusNotFound, "study.id.does.not.exist",
		fmt.Sprintf("[StudyService::study.id.does.not.exist] - The studyId '%s' does not exist", study))
}

// refuse sends Song's error document, which ends in a stack trace of some kilobytes.
func (s *SongServer) refuse(w *faultWriter, r *http.Request, status int, errorID, message string) {
	now := time.Now().UTC()
	trace := make([]string, 120)
	for i := range trace {
		trace[i] = fmt.Sprintf("org.springframework.web.servlet.DispatcherServlet.doDispatch%03d(DispatcherServlet.java:%d)", i, 1000+i)
	}
	body, err := json.Marshal(struct {
		ErrorID        string   `json:"errorId"`
		HTTPStatusCode int      `json:"httpStatusCode"`
		HTTPStatusName string   `json:"httpStatusName"`
		RequestURL     string   `json:"requestUrl"`
		Datetime       string   `json:"datetime"`
		Timestamp      int64    `json:"timestamp"`
		Message        string   `json:"message"`
		DebugMessage   string   `json:"debugMessage"`
		StackTrace     []string `json:"stackTrace"`
	}{
		errorID, status, strings.ToUpper(strings.ReplaceAll(http.StatusText(status), " ", "_")),
		"http://" + r.Host + r.RequestURI, now.Format(time.RFC3339Nano), now.UnixMilli(), message, "N/A", trace,
	})
	if err != nil {
		body = []byte("{}")
	}
	w.status = status
	s.send(w, r, body)
}
