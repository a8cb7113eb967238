package console

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/internal/core"
)

const (
	// cookieName names the cookie that holds the token. Only the console reads it: the API's routes ignore cookies, so that no page of
	// another origin can use them.
	cookieName = "tutti_console"
	// maxToken is the longest token that browsers store in a cookie, with its name and attributes.
	maxToken = 3800
	// policy is the Content-Security-Policy of every page: everything from this server, nothing inline, no eval, no framing.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

// setPolicy sets the security headers of a page.
func setPolicy(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// guard checks who may use a page: the token is that of the cookie, unless a header has one. Requests that change anything must come from
// the console itself, also if server.cors.origins lists other origins.
func (s *site) guard(who api.Access, h api.HandlerFunc) http.HandlerFunc {
	protection := http.NewCrossOriginProtection()
	next := api.RequireAccess(who, func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			api.Fail(w, r, err)
		}
	})
	return func(w http.ResponseWriter, r *http.Request) {
		setPolicy(w.Header())
		w.Header().Add("Vary", "Cookie")
		if err := protection.Check(r); err != nil {
			api.Fail(w, r, &core.Error{
				Code: core.CodeForbidden, Message: "this request came from a page of another site", Err: err,
				Hint: "open the console itself and try again there; if a proxy changes the Host header, let it keep the one of the browser",
			})
			return
		}
		if cookie, err := r.Cookie(cookieName); err == nil && cookie.Value != "" && r.Header.Get(api.HeaderAuthorization) == "" {
			r.Header.Set(api.HeaderAuthorization, "Bearer "+cookie.Value)
		}
		next(w, r)
	}
}

// nextPath returns the page to show after signing in: a path of the console or the query page of a catalogue, else the overview. Of the page
// to sign in it is the one that follows it.
func (s *site) nextPath(given string) string {
	u, err := url.Parse(given)
	if err == nil && s.isSignIn(u) {
		given = u.Query().Get("next")
		u, err = url.Parse(given)
	}
	if err != nil || u.Scheme != "" || u.Host != "" || s.isSignIn(u) {
		return s.base + "/"
	}
	if strings.HasPrefix(given, s.base+pathConsole+"/") {
		return given
	}
	path, ok := strings.CutPrefix(u.EscapedPath(), s.base+"/")
	if !ok || strings.HasPrefix(path, "/") || path != "graphql" && !strings.HasSuffix(path, "/graphql") {
		return s.base + "/"
	}
	return s.base + "/" + path
}

// isSignIn reports whether a URL without a host is that of the page to sign in.
func (s *site) isSignIn(u *url.URL) bool {
	return u.Host == "" && strings.TrimSuffix(u.Path, "/") == s.link("sign-in")
}

// signInView is the content of the page to sign in.
type signInView struct {
	Base string
	// Next is the page to show afterwards.
	Next string
	// Off is set if authentication is off.
	Off bool
}

func (s *sessionPages) signInPage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	s.render(w, r, http.StatusOK, "signin", page{Title: "Sign in", Content: signInView{Base: s.base, Next: s.nextPath(q.Get("next")), Off: !s.auth}})
	return nil
}

// signIn checks the token of a form and stores it in a cookie that scripts cannot read and that other sites cannot send.
func (s *sessionPages) signIn(w http.ResponseWriter, r *http.Request) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	token := strings.TrimSpace(f.Get("token"))
	if token == "" {
		return &core.Error{Code: core.CodeUnauthenticated, Message: "the token is empty", Hint: "paste an API key or a JWT"}
	}
	if len(token) > maxToken {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the token is too long for a cookie",
			Hint: "use an API key, or a token with fewer claims",
		}
	}
	r.Header.Set(api.HeaderAuthorization, "Bearer "+token)
	api.RequireAccess(api.Token(), func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, s.cookie(r, token, 0))
		s.see(w, s.nextPath(f.Get("next")), "")
	})(w, r)
	return nil
}

func (s *sessionPages) signOut(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, s.cookie(r, "", -1))
	s.see(w, s.link("sign-in"), "signed-out")
	return nil
}

// cookie returns the cookie of a token; a negative age deletes it, 0 lets it end with the browser's session.
func (s *sessionPages) cookie(r *http.Request, token string, age int) *http.Cookie {
	c := &http.Cookie{
		Name: cookieName, Value: token, Path: s.base + "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: isSecure(r),
	}
	if age < 0 {
		c.Expires = time.Unix(1, 0)
	}
	return c
}

// isSecure reports whether the browser uses TLS, perhaps to a proxy.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// readForm reads the form of a request.
func readForm(r *http.Request) (url.Values, error) {
	const form = "application/x-www-form-urlencoded"
	if r.ContentLength == 0 {
		return url.Values{}, nil
	}
	if _, err := media.Declared(r.Header, form); err != nil {
		return nil, err
	}
	body, err := api.ReadBody(r)
	if err != nil {
		return nil, err
	}
	f, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the form is malformed", err)
	}
	return f, nil
}
