package api

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"tutti/internal/base/span"
	"tutti/internal/core"
)

// DefaultMaxBodyBytes is the largest request body that is read unless Config says otherwise.
const DefaultMaxBodyBytes = 10 << 20

const (
	// HeaderSignature carries the HMAC-SHA256 of a notification's body, as sha256=<hex>.
	HeaderSignature = "X-Signature-256"
	// requestHeaders are the request headers that a page of another origin may set in addition to the safelisted ones.
	requestHeaders = "Authorization, Content-Type, If-None-Match, Last-Event-ID, X-Request-Id, " + HeaderSignature + ", " + graphQLHeaders + ", " + mcpHeaders
	// graphQLHeaders are the headers that GraphQL clients set by default: their name and version, and one that forces a preflight.
	graphQLHeaders = "Apollo-Require-Preflight, Apollographql-Client-Name, Apollographql-Client-Version"
	// mcpHeaders are the headers that clients of the Model Context Protocol set (streamable HTTP).
	mcpHeaders = "Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id"
	// responseHeaders are the response headers that a page of another origin may read in addition to the safelisted ones.
	responseHeaders = "X-Request-Id, Content-Disposition, Location, Retry-After, ETag, " + headerChallenge
)

// Config configures a Router. The zero value is the default.
type Config struct {
	// BasePath prefixes every route, such as "/tutti"; "" or "/" for none. A final slash is dropped.
	BasePath string
	// MaxBodyBytes is the largest request body in bytes. Default DefaultMaxBodyBytes.
	MaxBodyBytes int64
	// Bodies bounds the bytes of bodies over 64 KiB that are received, and of smaller ones beyond 16 MiB of them. A request waits for
	// up to 30 s and then fails with 503. Default: no bound.
	Bodies core.Memory
	// Authenticator verifies tokens. Default: authentication is off.
	Authenticator Authenticator
	// TrustedProxies are the addresses from which X-Forwarded-For is read, to distinguish anonymous callers. Default: none.
	TrustedProxies []netip.Prefix
	// CheckHost rejects a Host that is neither loopback nor in Hosts with 421 (DNS rebinding), except on /ping, /ready and /metrics.
	// It must be set when authentication is off.
	CheckHost bool
	// Hosts are the allowed host names besides loopback ones, without port, in any case; "*" allows all.
	Hosts []string
	// CORSOrigins are the origins, such as https://portal.example.org, whose pages may use every route from a browser. "*" lets the
	// pages of all other origins read, without credentials. Default: none, so that a browser allows only pages of this server to read
	// responses.
	CORSOrigins []string
	// Version is the program's version as in the OpenAPI document. Default "dev".
	Version string
	// Logger receives one line per request. Default: nothing is logged.
	Logger *slog.Logger
	// Metrics measures requests; nil measures nothing.
	Metrics *Metrics
	// Tracer starts the spans of requests; nil for none.
	Tracer *span.Tracer
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c Config) validate() error {
	if c.MaxBodyBytes < 0 {
		return core.NewError(core.CodeInvalid, "the body limit must not be negative")
	}
	if c.BasePath != "" && (c.BasePath[0] != '/' || strings.ContainsAny(c.BasePath, "?#%{}* ")) {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("base path %q is not a plain absolute path", c.BasePath))
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.BasePath = strings.TrimRight(c.BasePath, "/")
	c.MaxBodyBytes = cmp.Or(c.MaxBodyBytes, DefaultMaxBodyBytes)
	if c.Bodies == nil {
		c.Bodies = Unbounded{}
	}
	c.Version = cmp.Or(c.Version, "dev")
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
