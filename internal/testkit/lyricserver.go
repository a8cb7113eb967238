package testkit

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strconv"
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
	*frame[LyricRoute, LyricPageCall]

	cfg LyricConfig
}

// NewLyric starts a server on a free port of 127.0.0.1. It must be closed.
func NewLyric(cfg LyricConfig) (*LyricServer, error) {
	if cfg.CategoryID == 0 {
		cfg.CategoryID = 1
	}
	f, err := newFrame[LyricRoute, LyricPageCall]("Lyric")
	if err != nil {
		return nil, err
	}
	s := &LyricServer{lyricStore: newLyricStore(), frame: f, cfg: cfg}
	f.serve(s)
	return s, nil
}

// URL returns the server's base URL.
func (s *LyricServer) URL() string { return "http://" + s.listener.Addr().String() + s.cfg.BasePath }

// CategoryID returns the id of the server's one category.
func (s *LyricServer) CategoryID() string { return strconv.Itoa(s.cfg.CategoryID) }

// ServeHTTP implements http.Handler.
func (s *LyricServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.handlers.enter() {
		return
	}
	defer s.handlers.leave()
	raw := rawPath(r)
	call := s.parse(r.Method, raw, r.URL.Query())
	s.count(raw, call)
	out := s.strike(w, r, func(w *faultWriter, status int) {
		s.refuse(w, status, http.StatusText(status), "told to fail")
	})
	if out == nil {
		return
	}
	if !s.authorized(r) {
		// The words are the operator's own: Lyric leaves the check to them.
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
		s.note(raw, call.route, call.id, nil)
	case LyricRoutePage:
		s.note(raw, call.route, "", &call.page)
	case LyricRouteCategory, LyricRouteAlive, LyricRouteOther:
		s.note(raw, call.route, "", nil)
	}
}

// send writes a whole answer.
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

// refuse sends Lyric's error document.
func (s *LyricServer) refuse(w *faultWriter, status int, name, message string) {
	s.sendJSON(w, status, struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}{name, message})
}

func (s *LyricServer) notFound(w *faultWriter, message string) {
	s.refuse(w, http.StatusNotFound, "Not Found", message)
}
