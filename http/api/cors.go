package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tutti/internal/core"
)

const (
	// HeaderSignature carries the HMAC-SHA256 of a notification's body, as sha256=<hex>.
	HeaderSignature = "X-Signature-256"
	// anyOrigin in Config.CORSOrigins allows the pages of every origin to read.
	anyOrigin = "*"
	// corsHeaders are the request headers that a page may set in addition to the safelisted ones.
	corsHeaders = "Authorization, Content-Type, If-None-Match, Last-Event-ID, X-Request-Id, " + HeaderSignature + ", " + corsGraphQL + ", " + corsMCP
	// corsGraphQL are the headers that GraphQL clients set by default: their name and version, and one that forces a preflight.
	corsGraphQL = "Apollo-Require-Preflight, Apollographql-Client-Name, Apollographql-Client-Version"
	// corsMCP are the headers that clients of the Model Context Protocol set (streamable HTTP).
	corsMCP = "Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id"
	// corsExposed are the response headers that a page may read in addition to the safelisted ones.
	corsExposed = "X-Request-Id, Content-Disposition, Location, Retry-After, ETag, " + headerChallenge
	// corsMaxAge is how long a browser may cache the response to a preflight, in seconds.
	corsMaxAge = "600"
)

// crossOrigin decides what pages of other origins may do (CONTRACT section 0; WHATWG Fetch, "CORS protocol"). Pages of listed origins
// may use every route, with credentials. "*" allows the pages of all other origins to read, without credentials; they cannot change
// anything, since a request from a machine that needs no token has all rights of that machine.
type crossOrigin struct {
	listed []string
	any    bool
	// methods lists the methods that a preflight allows at a path.
	methods func(path string) []string
}

// newCrossOrigin takes origins as in Config.CORSOrigins; a string that is not an origin is CodeInvalid.
func newCrossOrigin(origins []string, methods func(path string) []string) (crossOrigin, error) {
	c := crossOrigin{methods: methods}
	for _, given := range origins {
		if given == anyOrigin {
			c.any = true
			continue
		}
		origin, ok := parseOrigin(given)
		if !ok {
			return crossOrigin{}, &core.Error{
				Code: core.CodeInvalid, Message: fmt.Sprintf("%q is not an origin", given),
				Hint: "an origin is a scheme, a host and, unless it is the default, a port, such as " +
					"https://portal.example.org; * means all origins",
			}
		}
		c.listed = append(c.listed, origin)
	}
	return c, nil
}

// parseOrigin returns an origin as a browser writes it: lower case, without the default port of the scheme.
func parseOrigin(given string) (string, bool) {
	u, err := url.Parse(strings.ToLower(given))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", false
	}
	if strings.ContainsFunc(u.Host, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`*\%"<>^{|}`, c) }) {
		return "", false
	}
	if u.Scheme+"://"+u.Host != strings.ToLower(given) || strings.HasSuffix(u.Host, ":") {
		return "", false
	}
	if port := u.Port(); port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		u.Host = strings.TrimSuffix(u.Host, ":"+port)
	}
	return u.Scheme + "://" + u.Host, true
}

func (c crossOrigin) enabled() bool { return c.any || len(c.listed) > 0 }

// mayRead reports whether pages of an origin may read responses.
func (c crossOrigin) mayRead(origin string) bool { return c.any || c.mayChange(origin) }

// mayChange reports whether pages of an origin may use methods that are not safe, and send credentials.
func (c crossOrigin) mayChange(origin string) bool { return slices.Contains(c.listed, origin) }

// share sets the headers that allow a page of another origin to read a response, including errors.
func (c crossOrigin) share(next http.Handler) http.Handler {
	if !c.enabled() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		switch {
		case origin == "":
		case c.mayChange(origin):
			header.Set("Access-Control-Allow-Origin", origin)
			header.Set("Access-Control-Allow-Credentials", "true")
			header.Set("Access-Control-Expose-Headers", corsExposed)
		case c.mayRead(origin):
			header.Set("Access-Control-Allow-Origin", anyOrigin)
			header.Set("Access-Control-Expose-Headers", corsExposed)
		}
		next.ServeHTTP(w, r)
	})
}

// servePreflight answers the preflight requests of browsers. Other OPTIONS requests go to the routes, which reject them.
func (c crossOrigin) servePreflight(next http.Handler) http.Handler {
	if !c.enabled() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		var methods []string
		if r.Method == http.MethodOptions && origin != "" && r.Header.Get("Access-Control-Request-Method") != "" {
			methods = c.methods(r.URL.EscapedPath())
		}
		if len(methods) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		if !c.mayRead(origin) {
			Fail(w, r, originError(nil, hintOrigin))
			return
		}
		if !c.mayChange(origin) {
			methods = slices.DeleteFunc(methods, func(m string) bool {
				return m != http.MethodGet && m != http.MethodHead
			})
		}
		if len(methods) == 0 {
			Fail(w, r, originError(nil, hintOrigin))
			return
		}
		header := w.Header()
		header.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		header.Set("Access-Control-Allow-Headers", corsHeaders)
		header.Set("Access-Control-Max-Age", corsMaxAge)
		w.WriteHeader(http.StatusNoContent)
	})
}

// check rejects unsafe requests that a browser sends for pages of origins that are not listed.
func (c crossOrigin) check(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := protection.Check(r)
		if err != nil && !c.mayChange(r.Header.Get("Origin")) {
			Fail(w, r, originError(err, hintOrigin+"; if it is this server's own, let the proxy in front of it keep the browser's Host header"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// CheckOrigin rejects a request that a browser sends for a page of an origin that is neither listed nor a known name of this server: a
// loopback name, one of Config.Hosts, or one of names. The check of all unsafe requests compares the origin only with the Host header,
// which is the attacker's own name after DNS rebinding. Requests without Origin are not from a browser.
func (h *Router) CheckOrigin(r *http.Request, names ...string) error {
	for _, given := range r.Header.Values("Origin") {
		u, err := url.Parse(given)
		name := ""
		if err == nil {
			name = strings.ToLower(hostName(u.Host))
		}
		if !h.crossOrigin.mayChange(given) && !h.cfg.knownHost(name) && !slices.Contains(names, name) {
			return originError(err, hintOrigin)
		}
	}
	return nil
}

const hintOrigin = "add the origin to server.cors.origins"

func originError(err error, hint string) error {
	return &core.Error{
		Code: core.CodeForbidden, Message: "a page of another origin may not do this",
		Hint: hint, Err: err,
	}
}
