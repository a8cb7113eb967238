package testkit

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SongConfig configures a SongServer. Its zero value is a server that requires no token.
type SongConfig struct {
	// Token is the bearer token that calls must carry, Username and Password the basic auth; empty for none.
	Token              string
	Username, Password string
	// BasePath is the prefix of every route, such as "/song".
	BasePath string
	// Lenient returns an analysis that is requested under another study, instead of an error.
	Lenient bool
	// AllStates lists analyses in every state, whatever the states of a call for a page, as behind a gateway that drops the parameter.
	AllStates bool
	// TotalsFirst puts a page's counts before its analyses.
	TotalsFirst bool
	// Gzip compresses responses for clients that accept it.
	Gzip bool
	// BeforePage is called before a page is built, without a lock held, and may change the server's data. n
	// counts the calls for pages from 0.
	BeforePage func(s *SongServer, n int, call PageCall)
	// BeforeRecord is called before an analysis is looked up by its id, without a lock held.
	BeforeRecord func(s *SongServer, id string)
}

// Route names a kind of call.
type Route string

// Routes of a SongServer.
const (
	RouteStudies Route = "studies"
	RoutePage    Route = "page"
	RouteRecord  Route = "record"
	RouteSchemas Route = "schemas"
	RouteAlive   Route = "alive"
	RouteOther   Route = "other"
)

// PageCall is one call for a page.
type PageCall struct {
	Study         string
	States        []string
	Offset, Limit int
}

// SongServer is an in-process server that speaks Song's protocol on a loopback address, with fault injection. Its data and its faults
// may be changed at any time.
type SongServer struct {
	*songStore
	*serverBase[Route, PageCall]

	cfg SongConfig
}

// NewSong starts a server on a free port of 127.0.0.1. The caller must close it.
func NewSong(cfg SongConfig) (*SongServer, error) {
	f, err := newServerBase[Route, PageCall]("Song")
	if err != nil {
		return nil, err
	}
	s := &SongServer{songStore: newSongStore(), serverBase: f, cfg: cfg}
	f.serve(s)
	return s, nil
}

// URL returns the server's base URL.
func (s *SongServer) URL() string { return "http://" + s.listener.Addr().String() + s.cfg.BasePath }

// ServeHTTP implements http.Handler.
func (s *SongServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.handlers.add() {
		return
	}
	defer s.handlers.done()
	raw := rawPath(r)
	call := s.parse(raw, r.URL.Query())
	s.count(raw, call)
	out := s.applyFault(w, r, func(w *faultWriter, status int) { s.sendError(w, r, status, "unknown.error", "told to fail") })
	if out == nil {
		return
	}
	if !s.authorized(r) {
		s.sendError(out, r, http.StatusUnauthorized, "unauthorized.token", "Invalid token")
		return
	}
	s.dispatch(out, r, call)
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

// songCall is a parsed call.
type songCall struct {
	route Route
	id    string
	page  PageCall
}

// parse parses a call from the path as received; no segment is decoded before the path is split.
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
	case len(segments) == 1 && segments[0] == "schemas":
		return songCall{route: RouteSchemas}
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

// pageCall parses the query of a call for a page, with Song's defaults. A limit that is not a number becomes -1.
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
	switch call.route {
	case RouteRecord:
		s.countCall(raw, call.route, call.id, nil)
	case RoutePage:
		s.countCall(raw, call.route, "", &call.page)
	case RouteStudies, RouteSchemas, RouteAlive, RouteOther:
		s.countCall(raw, call.route, "", nil)
	}
}

// send writes a complete JSON response.
func (s *SongServer) send(w *faultWriter, body []byte) { w.send("application/json", s.cfg.Gzip, body) }

func (s *SongServer) dispatch(w *faultWriter, r *http.Request, call songCall) {
	if r.Method != http.MethodGet {
		s.sendError(w, r, http.StatusMethodNotAllowed, "unknown.error", "Request method not supported")
		return
	}
	switch call.route {
	case RouteAlive:
		s.send(w, []byte("true"))
	case RouteStudies:
		body, err := json.Marshal(s.Studies())
		if err != nil {
			s.sendError(w, r, http.StatusInternalServerError, "unknown.error", err.Error())
			return
		}
		s.send(w, body)
	case RouteSchemas:
		s.serveSchemas(w, r)
	case RoutePage:
		s.servePage(w, r, call.page)
	case RouteRecord:
		s.serveRecord(w, r, call.page.Study, call.id)
	case RouteOther:
		s.sendError(w, r, http.StatusNotFound, "unknown.error", "No handler found")
	}
}

// serveSchemas serves a page of the versions of analysis types, by version.
func (s *SongServer) serveSchemas(w *faultWriter, r *http.Request) {
	call := pageCall("", r.URL.Query())
	all := s.Schemas()
	begin := min(max(call.Offset, 0), len(all))
	body, err := json.Marshal(map[string]any{
		"limit": call.Limit, "offset": call.Offset, "count": len(all), "resultSet": all[begin:min(begin+max(call.Limit, 0), len(all))],
	})
	if err != nil {
		s.sendError(w, r, http.StatusInternalServerError, "unknown.error", err.Error())
		return
	}
	s.send(w, body)
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
		s.sendError(w, r, http.StatusBadRequest, "malformed.parameter", "limit and offset are numbers from 0")
		return
	}
	states := call.States
	if s.cfg.AllStates {
		states = []string{"PUBLISHED", "UNPUBLISHED", "SUPPRESSED"}
	}
	bodies, total := s.page(call.Study, states, call.Offset, call.Limit)
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
	s.send(w, *buffer)
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
		s.sendError(w, r, http.StatusNotFound, "analysis.id.not.found",
			fmt.Sprintf("[AnalysisService::analysis.id.not.found] - The analysisId '%s' was not found", id))
	case a.Study != study && !s.cfg.Lenient:
		s.sendError(w, r, http.StatusBadRequest, "entity.not.related.to.study",
			fmt.Sprintf("[AnalysisService::entity.not.related.to.study] - The analysisId '%s' is not related to the studyId '%s'", id, study))
	default:
		s.send(w, a.Body)
	}
}

func (s *SongServer) noStudy(w *faultWriter, r *http.Request, study string) {
	s.sendError(w, r, http.StatusNotFound, "study.id.does.not.exist",
		fmt.Sprintf("[StudyService::study.id.does.not.exist] - The studyId '%s' does not exist", study))
}

// sendError sends Song's error document, which ends in a stack trace of some kilobytes.
func (s *SongServer) sendError(w *faultWriter, r *http.Request, status int, errorID, message string) {
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
	s.send(w, body)
}
