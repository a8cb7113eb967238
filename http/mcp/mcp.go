package mcp

import (
	"bytes"
	"context"
	_ "embed"
	"io"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/http/media"
	"tutti/http/search"
	"tutti/internal/core"
)

//go:embed openapi.yaml
var document []byte

// Path is the path of the endpoint, without the base path.
const Path = "/mcp"

// contentTypeEvents is the other media type that clients of the protocol accept.
const contentTypeEvents = "text/event-stream"

// Ports are the dependencies of a Surface; all are required.
type Ports struct {
	Catalogues   core.Catalogues
	GraphQL      search.GraphQL
	Repositories indexing.Repositories
	Data         search.Data
}

// Config describes the server.
type Config struct {
	// Version is that of tutti.
	Version string
	// Auth reports whether tokens are checked, and Issuer is the issuer of accepted JSON Web Tokens, "" for none or any.
	Auth   bool
	Issuer string
	// PublicURL is the URL of the server with its base path; the request's own when "".
	PublicURL string
	// RequestsPerMinute is how many messages one caller may send in a minute, also all at once. Default: no limit.
	RequestsPerMinute int
	// Metrics measures calls of tools; nil measures nothing.
	Metrics *Metrics
}

// authorizes reports whether a client can get a token itself: the issuer is a URL that it can ask.
func (c Config) authorizes() bool { return c.Auth && strings.HasPrefix(c.Issuer, "http") }

// publicName returns the host name of PublicURL, "" for none.
func (c Config) publicName() string {
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// Surface serves the Model Context Protocol by streamable HTTP, without sessions.
type Surface struct {
	ports Ports
	cfg   Config
	tools []tool
	limit *limiter
}

var _ api.Surface = (*Surface)(nil)

// New returns a Surface that uses ports.
func New(ports Ports, cfg Config) *Surface {
	return &Surface{ports: ports, cfg: cfg, tools: newTools(), limit: newLimiter(cfg.RequestsPerMinute)}
}

// OpenAPI implements api.Surface.
func (s *Surface) OpenAPI() []byte { return document }

// Register implements api.Surface. The SDK's own protection from DNS rebinding rejects proxies on the same machine, so it is off, and
// CheckOrigin replaces it.
func (s *Surface) Register(r *api.Router) {
	handler := sdk.NewStreamableHTTPHandler(serverOf, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, PropagateRequestCancellation: true,
		MaxRequestBodyBytes: -1, // the router limits bodies
	})
	offers := []string{media.JSON, contentTypeEvents}
	r.HandleMedia(http.MethodPost, Path, offers, func(w http.ResponseWriter, req *http.Request) error {
		if err := r.CheckOrigin(req, s.cfg.publicName()); err != nil {
			return err
		}
		if err := s.limit.take(api.LimitCaller(req).ID, r.Now()); err != nil {
			return err
		}
		body, err := readMessage(req)
		if err != nil {
			return err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		// The SDK rejects clients that do not accept both, although the response is always JSON.
		req.Header.Set("Accept", strings.Join(offers, ", "))
		c := &call{Surface: s, r: req}
		response := recorder{header: http.Header{}, status: http.StatusOK}
		handler.ServeHTTP(&response, req.WithContext(context.WithValue(req.Context(), callKey{}, c)))
		if err := c.noted(); core.CodeOf(err) == core.CodeUnauthenticated && s.cfg.authorizes() {
			return err // clients authorize themselves when they get 401, not when a tool fails
		} else if err != nil {
			api.NoteError(req, err)
		}
		return response.send(w)
	}, api.StrictParams(), api.OptionalToken())
	s.registerMetadata(r)
}

// readMessage returns the body of a request, one message.
func readMessage(r *http.Request) ([]byte, error) {
	if _, err := media.Declared(r.Header, media.JSON); err != nil {
		return nil, err
	}
	body, err := api.ReadBody(r)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		// A batch would execute any number of queries at once.
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: "the body is an array; batches are not supported", Hint: "send each message in its own request",
		}
	}
	return body, nil
}

// recorder holds a response of the SDK, whose errors are plain text.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

// send writes the response to a client; it returns an error that the SDK wrote as text.
func (w *recorder) send(to http.ResponseWriter) error {
	sent := w.header.Get("Content-Type")
	if w.status >= http.StatusBadRequest && !strings.HasPrefix(sent, media.JSON) {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the message was rejected: " + strings.TrimSpace(w.body.String()),
			Hint: "connect a client of the Model Context Protocol, with streamable HTTP",
		}
	}
	if w.body.Len() == 0 {
		to.WriteHeader(w.status)
		return nil
	}
	api.WriteWhole(to, w.status, sent, w.body.Bytes())
	return nil
}
