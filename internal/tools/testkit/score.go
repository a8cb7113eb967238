package testkit

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// ScoreConfig configures a ScoreServer. Its zero value is a server that requires no token.
type ScoreConfig struct {
	// Token is the bearer token that calls must carry; empty for none.
	Token string
	// BasePath is the prefix of every route, such as "/score".
	BasePath string
	// BeforeObject is called before an object is looked up, without a lock held.
	BeforeObject func(id string)
}

// ScoreRoute names a kind of call of a ScoreServer.
type ScoreRoute string

// Routes of a ScoreServer.
const (
	RouteUpload      ScoreRoute = "upload"
	RouteDownload    ScoreRoute = "download"
	RouteScoreOthers ScoreRoute = "other"
)

// ScoreServer is an in-process server that answers Song's questions about objects as Score does, with fault injection. It refuses all
// other calls. Its objects and its faults may be changed at any time.
type ScoreServer struct {
	*serverBase[ScoreRoute, struct{}]

	cfg     ScoreConfig
	mu      sync.Mutex
	objects map[string]map[string]any
}

// NewScore starts a server on a free port of 127.0.0.1. The caller must close it.
func NewScore(cfg ScoreConfig) (*ScoreServer, error) {
	f, err := newServerBase[ScoreRoute, struct{}]("Score")
	if err != nil {
		return nil, err
	}
	s := &ScoreServer{serverBase: f, cfg: cfg, objects: map[string]map[string]any{}}
	f.serve(s)
	return s, nil
}

// URL returns the server's base URL.
func (s *ScoreServer) URL() string { return "http://" + s.listener.Addr().String() + s.cfg.BasePath }

// Put stores an object. size and md5 are JSON values: an int64 and a string or nil in a valid answer.
func (s *ScoreServer) Put(id string, size, md5 any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[id] = map[string]any{
		"objectKey": "data/" + id, "objectId": id, "uploadId": "u-" + id, "objectSize": size, "objectMd5": md5,
		"parts": []map[string]any{{"partNumber": 1, "partSize": size, "offset": 0, "url": nil, "md5": nil, "sourceMd5": md5}},
	}
}

// ServeHTTP implements http.Handler.
func (s *ScoreServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.handlers.add() {
		return
	}
	defer s.handlers.done()
	route, id := s.parse(r)
	s.countCall(rawPath(r), route, id, nil)
	out := s.applyFault(w, r, func(w *faultWriter, status int) { http.Error(w, `{"code":"told.to.fail"}`, status) })
	switch {
	case out == nil:
		return
	case s.cfg.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.cfg.Token:
		http.Error(out, `{"code":"unauthorized"}`, http.StatusUnauthorized)
		return
	case route == RouteScoreOthers:
		http.Error(out, "a call that Song does not make: "+r.Method+" "+r.RequestURI, http.StatusTeapot)
		return
	}
	if s.cfg.BeforeObject != nil {
		s.cfg.BeforeObject(id)
	}
	s.mu.Lock()
	object, ok := s.objects[id]
	s.mu.Unlock()
	out.Header().Set("Content-Type", "application/json")
	switch {
	case route == RouteUpload:
		_ = json.NewEncoder(out).Encode(ok) // the client may have disconnected
	case !ok:
		http.Error(out, `{"code":"object.not.found"}`, http.StatusNotFound)
	default:
		_ = json.NewEncoder(out).Encode(object) // the client may have disconnected
	}
}

// parse returns the kind of a call and the object that it is for.
func (s *ScoreServer) parse(r *http.Request) (ScoreRoute, string) {
	rest, ok := strings.CutPrefix(rawPath(r), s.cfg.BasePath+"/")
	if !ok || r.Method != http.MethodGet {
		return RouteScoreOthers, ""
	}
	route, id, _ := strings.Cut(rest, "/")
	switch {
	case id == "" || strings.Contains(id, "/"):
	case route == "upload" && r.URL.RawQuery == "":
		return RouteUpload, id
	case route == "download" && r.URL.RawQuery == "offset=0&length=-1&exclude-urls=true":
		return RouteDownload, id
	}
	return RouteScoreOthers, ""
}
