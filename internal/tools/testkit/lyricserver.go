package testkit

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strconv"
)

// LyricConfig configures a LyricServer. Its zero value is a server of category 1 that requires no token.
type LyricConfig struct {
	// CategoryID is the id of the server's one category. Default 1.
	CategoryID int
	// Alias is another name of the category, empty for none.
	Alias string
	// CentralEntity is the category's central entity: the compound view lists only its records. Empty: records of every entity.
	CentralEntity string
	// Dictionary is the dictionary of the category as Lyric returns it, nil for a server without that route and without queries.
	Dictionary []byte
	// Token is the bearer token that calls must carry, Username and Password the basic auth; empty for none.
	Token              string
	Username, Password string
	// BasePath is the prefix of every route, such as "/lyric".
	BasePath string
	// MaxPageSize caps the size of pages, unlike Lyric itself; 0 for no cap.
	MaxPageSize int
	// PaginationLast puts a page's pagination after its records.
	PaginationLast bool
	// Gzip compresses responses for clients that accept it.
	Gzip bool
	// BeforePage is called before a page is built, without a lock held, and may change the server's data. n
	// counts the calls for pages from 0.
	BeforePage func(s *LyricServer, n int, call LyricPageCall)
	// BeforeTotal is called after the rows of a page were read and before they are counted, as Lyric does while it reads what they
	// contain.
	BeforeTotal func(s *LyricServer, call LyricPageCall)
}

// LyricRoute names a kind of call of a LyricServer.
type LyricRoute string

// Routes of a LyricServer.
const (
	LyricRouteCategory LyricRoute = "category"
	LyricRoutePage     LyricRoute = "page"
	LyricRouteRecord   LyricRoute = "record"
	// LyricRouteQuery is a page of the records of an organization that a SQON selects.
	LyricRouteQuery      LyricRoute = "query"
	LyricRouteDictionary LyricRoute = "dictionary"
	LyricRouteAlive      LyricRoute = "alive"
	LyricRouteOther      LyricRoute = "other"
)

// LyricPageCall is one call for a page. Page and PageSize are the values that the server used, 0 for values that are not a number
// from 1.
type LyricPageCall struct {
	// Organization is empty for the list of the whole category, Entity for all entities.
	Organization   string
	Entity         string
	View           string
	Page, PageSize int
}

// LyricServer is an in-process server that speaks Lyric's protocol on a loopback address, with fault injection. Its data and its faults
// may be changed at any time.
type LyricServer struct {
	*lyricStore
	*serverBase[LyricRoute, LyricPageCall]

	cfg LyricConfig
}

// NewLyric starts a server on a free port of 127.0.0.1. The caller must close it.
func NewLyric(cfg LyricConfig) (*LyricServer, error) {
	if cfg.CategoryID == 0 {
		cfg.CategoryID = 1
	}
	f, err := newServerBase[LyricRoute, LyricPageCall]("Lyric")
	if err != nil {
		return nil, err
	}
	s := &LyricServer{lyricStore: newLyricStore(), serverBase: f, cfg: cfg}
	f.serve(s)
	return s, nil
}

// URL returns the server's base URL.
func (s *LyricServer) URL() string { return "http://" + s.listener.Addr().String() + s.cfg.BasePath }

// CategoryID returns the id of the server's one category.
func (s *LyricServer) CategoryID() string { return strconv.Itoa(s.cfg.CategoryID) }

// ServeHTTP implements http.Handler.
func (s *LyricServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.handlers.add() {
		return
	}
	defer s.handlers.done()
	raw := rawPath(r)
	call := s.parse(r.Method, raw, r.URL.Query())
	s.count(raw, call)
	out := s.applyFault(w, r, func(w *faultWriter, status int) {
		s.sendError(w, status, http.StatusText(status), "told to fail")
	})
	if out == nil {
		return
	}
	if !s.authorized(r) {
		// Lyric leaves the check, and the message, to its operator.
		s.sendJSON(out, http.StatusUnauthorized, map[string]string{"message": "Unauthorized: invalid token"})
		return
	}
	s.dispatch(out, r, call)
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
	switch call.route {
	case LyricRouteRecord:
		s.countCall(raw, call.route, call.id, nil)
	case LyricRoutePage:
		s.countCall(raw, call.route, "", &call.page)
	case LyricRouteCategory, LyricRouteQuery, LyricRouteDictionary, LyricRouteAlive, LyricRouteOther:
		s.countCall(raw, call.route, "", nil)
	}
}

// send writes a complete response.
func (s *LyricServer) send(w *faultWriter, contentType string, body []byte) {
	w.send(contentType, s.cfg.Gzip, body)
}

const lyricJSON = "application/json; charset=utf-8"

func (s *LyricServer) sendJSON(w *faultWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		body = []byte("{}") // not reached
	}
	w.status = status
	s.send(w, lyricJSON, body)
}

// sendError sends Lyric's error document.
func (s *LyricServer) sendError(w *faultWriter, status int, name, message string) {
	s.sendJSON(w, status, struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}{name, message})
}

func (s *LyricServer) notFound(w *faultWriter, message string) {
	s.sendError(w, http.StatusNotFound, "Not Found", message)
}
