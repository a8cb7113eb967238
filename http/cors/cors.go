package cors

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tutti/internal/core"
)

// maxAge is how long a browser may cache the response to a preflight, in seconds.
const maxAge = "600"

// anyOrigin in Config.Origins allows the pages of every origin to read.
const anyOrigin = "*"

// Config configures a Policy.
type Config struct {
	// Origins are the origins, such as https://portal.example.org, whose pages may use every route, with credentials. "*" allows the
	// pages of all other origins to read, without credentials. Default: none.
	Origins []string
	// RequestHeaders are the request headers that a page may set, ResponseHeaders the response headers that it may read, both in addition
	// to the safelisted ones, with commas between.
	RequestHeaders, ResponseHeaders string
	// Methods lists the methods that a preflight allows at an escaped path.
	Methods func(path string) []string
	// Fail responds with an error.
	Fail func(w http.ResponseWriter, r *http.Request, err error)
}

// Policy decides what pages of other origins may do (CONTRACT section 0; WHATWG Fetch, "CORS protocol"). Pages of listed origins
// may use every route, with credentials. "*" allows the pages of all other origins to read, without credentials; they cannot change
// anything, since a request from a machine that needs no token has all rights of that machine.
type Policy struct {
	cfg    Config
	listed []string
	any    bool
}

// New returns a Policy. A string in Config.Origins that is not an origin is CodeInvalid.
func New(cfg Config) (Policy, error) {
	p := Policy{cfg: cfg}
	for _, given := range cfg.Origins {
		if given == anyOrigin {
			p.any = true
			continue
		}
		origin, ok := parseOrigin(given)
		if !ok {
			return Policy{}, &core.Error{
				Code: core.CodeInvalid, Message: fmt.Sprintf("%q is not an origin", given),
				Hint: "an origin is a scheme, a host and, unless it is the default, a port, such as " +
					"https://portal.example.org; * means all origins",
			}
		}
		p.listed = append(p.listed, origin)
	}
	return p, nil
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

func (p Policy) enabled() bool { return p.any || len(p.listed) > 0 }

// mayRead reports whether pages of an origin may read responses.
func (p Policy) mayRead(origin string) bool { return p.any || p.mayChange(origin) }

// mayChange reports whether pages of an origin may use methods that are not safe, and send credentials.
func (p Policy) mayChange(origin string) bool { return slices.Contains(p.listed, origin) }

// Share sets the headers that allow a page of another origin to read a response, including errors.
func (p Policy) Share(next http.Handler) http.Handler {
	if !p.enabled() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		switch {
		case origin == "":
		case p.mayChange(origin):
			header.Set("Access-Control-Allow-Origin", origin)
			header.Set("Access-Control-Allow-Credentials", "true")
			header.Set("Access-Control-Expose-Headers", p.cfg.ResponseHeaders)
		case p.mayRead(origin):
			header.Set("Access-Control-Allow-Origin", anyOrigin)
			header.Set("Access-Control-Expose-Headers", p.cfg.ResponseHeaders)
		}
		next.ServeHTTP(w, r)
	})
}

// ServePreflight answers the preflight requests of browsers. Other OPTIONS requests go to the routes, which reject them.
func (p Policy) ServePreflight(next http.Handler) http.Handler {
	if !p.enabled() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		var methods []string
		if r.Method == http.MethodOptions && origin != "" && r.Header.Get("Access-Control-Request-Method") != "" {
			methods = p.cfg.Methods(r.URL.EscapedPath())
		}
		if len(methods) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		if !p.mayRead(origin) {
			p.cfg.Fail(w, r, originError(nil, hintOrigin))
			return
		}
		if !p.mayChange(origin) {
			methods = slices.DeleteFunc(methods, func(m string) bool {
				return m != http.MethodGet && m != http.MethodHead
			})
		}
		if len(methods) == 0 {
			p.cfg.Fail(w, r, originError(nil, hintOrigin))
			return
		}
		header := w.Header()
		header.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		header.Set("Access-Control-Allow-Headers", p.cfg.RequestHeaders)
		header.Set("Access-Control-Max-Age", maxAge)
		w.WriteHeader(http.StatusNoContent)
	})
}

// Check rejects unsafe requests that a browser sends for pages of origins that are not listed.
func (p Policy) Check(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := protection.Check(r)
		if err != nil && !p.mayChange(r.Header.Get("Origin")) {
			p.cfg.Fail(w, r, originError(err, hintOrigin+"; if it is this server's own, let the proxy in front of it keep the browser's Host header"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// CheckKnown rejects a request that a browser sends for a page of an origin that is neither listed nor has a host for which known returns
// true; host is "" for an origin that is none. Check compares the origin only with the Host header, which is the attacker's own name after
// DNS rebinding. Requests without Origin are not from a browser.
func (p Policy) CheckKnown(r *http.Request, known func(host string) bool) error {
	for _, given := range r.Header.Values("Origin") {
		u, err := url.Parse(given)
		host := ""
		if err == nil {
			host = u.Host
		}
		if !p.mayChange(given) && !known(host) {
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
