package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"tutti/http/problem"
	"tutti/http/server"
	"tutti/internal/base/hostname"
	"tutti/internal/base/span"
	"tutti/internal/core"
)

const (
	// maxRequestID is how much of a client's X-Request-Id is kept, in characters.
	maxRequestID = 128
	// maxLoggedPath is how much of a path is logged, in bytes.
	maxLoggedPath = 512
	// maxLoggedName is how much of the name of a token's holder is logged, in bytes.
	maxLoggedName = 128
	// unmatchedRoute is the route label of a request without a route.
	unmatchedRoute = "unmatched"
)

// exchange is the state of one request that middleware and handlers share.
type exchange struct {
	router    *Router
	requestID string
	// principal is the name of the token's principal, empty for anonymous.
	principal string
	// err is the error that was returned as a problem, or that ended a stream, for the log.
	err error
	// streaming is when an unbounded response (a stream of events) began, zero for other responses.
	streaming time.Time
	// query has the parameters that the route has, once Parameters.Check has read them; nil before, and for an empty query string.
	query *Query
	// atEnd are called after the response.
	atEnd []func()
}

type exchangeKey struct{}

// exchangeOf returns the exchange of a request's context; every request that reaches a handler has one.
func exchangeOf(ctx context.Context) *exchange {
	if ex, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return ex
	}
	return &exchange{router: noRouter}
}

// noRouter is the router of requests that did not come through a Router.
var noRouter = &Router{cfg: Config{}.withDefaults()}

// configOf returns the configuration of a request's Router.
func configOf(r *http.Request) Config { return exchangeOf(r.Context()).router.cfg }

// RequestIDOf returns the X-Request-Id of a request.
func RequestIDOf(r *http.Request) string { return exchangeOf(r.Context()).requestID }

// NoteError stores an error of a request for its log line. Errors that a handler returns are stored without it.
func NoteError(r *http.Request, err error) { exchangeOf(r.Context()).err = err }

// BeginStreaming notes that an unbounded response, a stream of events, begins.
func BeginStreaming(r *http.Request) { exchangeOf(r.Context()).streaming = time.Now() }

// identify echoes or generates X-Request-Id and sets the headers of every response.
func (h *Router) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := sanitizeRequestID(r.Header.Get(server.HeaderRequestID))
		if id == "" {
			id = server.NewRequestID()
		}
		w.Header().Set(server.HeaderRequestID, id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		ctx := context.WithValue(r.Context(), exchangeKey{}, &exchange{router: h, requestID: id})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// sanitizeRequestID keeps the first maxRequestID printable ASCII characters of id, spaces excluded.
func sanitizeRequestID(id string) string {
	kept := strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return -1
		}
		return c
	}, id)
	return kept[:min(len(kept), maxRequestID)]
}

// responseWriter records the status and the size of a response.
type responseWriter struct {
	http.ResponseWriter
	status int
	size   int64
	// conn is the connection of the response; nil if the request did not come through a Server.
	conn *server.Conn
	// body is the body of the request; nil if it has none.
	body *pacedBody
}

// WriteHeader notes the first final status.
func (w *responseWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		w.beforeResponse()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts what is written.
func (w *responseWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
		w.beforeResponse()
	}
	n, err := w.ResponseWriter.Write(b)
	w.size += int64(n)
	return n, err
}

// beforeResponse prepares the body before the response begins.
func (w *responseWriter) beforeResponse() {
	if w.body != nil {
		w.body.beforeResponse(w.Header())
	}
}

// Unwrap lets a ResponseController reach the connection.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// observe writes the log line, the metric and the span of a request.
func (c Config) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		body, _ := r.Body.(*pacedBody)
		var s span.Span
		if c.Tracer != nil && !c.isMonitoring(r) {
			var ctx context.Context
			ctx, s = c.Tracer.Serve(r.Context(), methodLabel(r.Method), r.Header)
			r = r.WithContext(ctx)
		}
		rw := &responseWriter{ResponseWriter: w, conn: server.ConnOf(r.Context()), body: body}
		defer func() {
			for _, end := range exchangeOf(r.Context()).atEnd {
				end()
			}
			if rw.status == 0 {
				rw.status = http.StatusOK
			}
			d := time.Since(started)
			route := c.routeLabel(r)
			c.Metrics.observe(route, r.Method, rw.status, metricDuration(r, started, d))
			c.logRequest(r, route, rw, d)
			endSpan(s, r, route, rw.status)
		}()
		next.ServeHTTP(rw, r)
	})
}

// endSpan ends the span of a request.
func endSpan(s span.Span, r *http.Request, route string, status int) {
	if !s.Recorded() {
		return
	}
	ex := exchangeOf(r.Context())
	s.Rename(methodLabel(r.Method) + " " + route)
	s.Text("http.request.method", methodLabel(r.Method))
	s.Text("http.route", route)
	s.Int("http.response.status_code", int64(status))
	s.Text("request_id", ex.requestID)
	switch {
	case status >= http.StatusInternalServerError:
		s.Failed(cmp.Or(core.CodeOf(ex.err), core.CodeInternal))
	case ex.err != nil: // an error of the client is none of the server's
		s.Text("error.type", string(core.CodeOf(ex.err)))
	}
	s.End(nil)
}

// metricDuration returns the duration that the metric records for a request that took d: for a stream the time until it began, since
// its whole duration would distort every quantile.
func metricDuration(r *http.Request, started time.Time, d time.Duration) time.Duration {
	if streaming := exchangeOf(r.Context()).streaming; !streaming.IsZero() {
		return streaming.Sub(started)
	}
	return d
}

// routeLabel returns the pattern of r's route, without the base path.
func (c Config) routeLabel(r *http.Request) string {
	rctx := chi.RouteContext(r.Context())
	if rctx == nil || len(rctx.RoutePatterns) == 0 {
		return unmatchedRoute
	}
	return strings.TrimPrefix(rctx.RoutePattern(), c.BasePath)
}

func (c Config) logRequest(r *http.Request, route string, w *responseWriter, d time.Duration) {
	ex := exchangeOf(r.Context())
	level := slog.LevelInfo
	switch {
	case w.status == http.StatusInternalServerError:
		level = slog.LevelError
	case w.status > http.StatusInternalServerError:
		level = slog.LevelWarn
	case isMonitored(route):
		level = slog.LevelDebug
	}
	path := r.URL.EscapedPath()
	attrs := []slog.Attr{
		slog.String("method", methodLabel(r.Method)),
		slog.String("route", route),
		slog.String("path", path[:min(len(path), maxLoggedPath)]),
		slog.Int("status", w.status),
		slog.Int64("bytes", w.size),
		slog.Duration("duration", d),
		slog.String("request_id", ex.requestID),
	}
	if ex.principal != "" {
		attrs = append(attrs, slog.String("principal", strings.ToValidUTF8(ex.principal[:min(len(ex.principal), maxLoggedName)], "")))
	}
	if ex.err != nil {
		attrs = append(attrs, slog.Any("err", ex.err))
	}
	c.Logger.LogAttrs(r.Context(), level, "request", attrs...)
}

// recoverPanic turns a panic into a problem, or into an aborted connection if the response has begun.
func recoverPanic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v)
			}
			err := PanicError(v)
			if rw, ok := w.(*responseWriter); ok && rw.status != 0 {
				exchangeOf(r.Context()).err = err
				panic(http.ErrAbortHandler)
			}
			Fail(w, r, err)
		}()
		next.ServeHTTP(w, r)
	})
}

// PanicError returns the error of a recovered panic, with the stack for the log.
func PanicError(v any) error {
	return core.WrapError(core.CodeInternal, "an internal error occurred", fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
}

// checkHost rejects a foreign Host (CONTRACT section 6). Monitoring is exempt: Kubernetes' probes and Prometheus use a pod's
// address, which cannot be listed in advance, and these paths show nothing private.
func (c Config) checkHost(next http.Handler) http.Handler {
	if !c.CheckHost {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.isMonitoring(r) {
			next.ServeHTTP(w, r)
			return
		}
		if !c.knownHost(strings.ToLower(hostName(r.Host))) {
			Fail(w, r, &core.Error{
				Code: problem.CodeMisdirected, Message: "this server does not serve the name in the Host header",
				Hint: "use a loopback address, or add the name to server.hosts",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knownHost reports whether a name in lower case is a loopback name or one of Hosts.
func (c Config) knownHost(name string) bool {
	return hostname.Loopback(name) || slices.ContainsFunc(c.Hosts, func(host string) bool { return host == "*" || strings.EqualFold(hostName(host), name) })
}

// CheckOrigin rejects a request that a browser sends for a page of an origin that is neither listed nor a known name of this server: a
// loopback name, one of Config.Hosts, or one of names.
func (h *Router) CheckOrigin(r *http.Request, names ...string) error {
	return h.crossOrigin.CheckKnown(r, func(host string) bool {
		name := strings.ToLower(hostName(host))
		return h.cfg.knownHost(name) || slices.Contains(names, name)
	})
}

// isMonitoring reports whether r reads /ping, /ready or /metrics.
func (c Config) isMonitoring(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), c.BasePath)
	return ok && isMonitored(path)
}

// isMonitored reports whether a path, without the base path, is one that monitoring reads.
func isMonitored(path string) bool {
	return path == PathPing || path == PathReady || path == PathMetrics
}

// hostName returns host without its port, its brackets and a final dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(host, ".")
}

// limitBody rejects a body whose Content-Length is over the limit, and cuts one without Content-Length at the limit.
func limitBody(limit int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > limit {
				Fail(w, r, tooLarge(limit))
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, limit)
			next.ServeHTTP(w, r)
		})
	}
}

func tooLarge(limit int64) error {
	return core.NewError(core.CodeTooLarge, fmt.Sprintf("the body is over the limit of %d bytes", limit))
}
