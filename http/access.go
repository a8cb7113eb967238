package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tutti/internal/core"
)

// access says who may use a route while tokens are asked for (CONTRACT section 6).
type access struct {
	kind accessKind
	// param names the path parameter that decides: the organization of accessOrganization, the repository of accessSigned.
	param string
}

type accessKind int

const (
	// accessOpen: anybody, without a token; one that is shown is not looked at.
	accessOpen accessKind = iota
	// accessLenientToken: anybody, without a token. Whose one is shown is told to the handler; one that proves nothing, or cannot
	// be checked now, is nobody's.
	accessLenientToken
	// accessOptionalToken: anybody, without a token; one that is shown must be valid, so that who believes to be somebody never gets
	// the answer for nobody. What is seen is narrowed by whom the handler asks.
	accessOptionalToken
	// accessToken: anybody with a valid token; what it sees is narrowed by the handler.
	accessToken
	// accessSystem: the system's write scope.
	accessSystem
	// accessOrganization: the write scope of the organization in the path, or the system's.
	accessOrganization
	// accessSigned: the signature of the body, checked by the handler, where the repository in the path asks for one; else
	// the system's write scope.
	accessSigned
)

func open() access         { return access{kind: accessOpen} }
func lenientToken() access { return access{kind: accessLenientToken} }
func token() access        { return access{kind: accessToken} }
func system() access       { return access{kind: accessSystem} }

// optionalToken asks nobody for a token, and for a valid one of those who show one.
func optionalToken() access { return access{kind: accessOptionalToken} }

// signed asks for what the repository that a path parameter names asks for.
func signed(param string) access { return access{kind: accessSigned, param: param} }

// writerOf asks for the write scope of the organization that a path parameter names.
func writerOf(param string) access { return access{kind: accessOrganization, param: param} }

const (
	headerAuthorization = "Authorization"
	headerChallenge     = "WWW-Authenticate"
	bearer              = "Bearer"
	hintToken           = "send the header Authorization: Bearer <API key or JWT>"
)

type callerKey struct{}

// callerOf returns whose token the request of a context shows, a Principal that may do nothing on an open route and where none
// is shown. false means that nobody is asked.
func callerOf(ctx context.Context) (core.Principal, bool) {
	p, ok := ctx.Value(callerKey{}).(core.Principal)
	return p, ok
}

// requireAccess lets those through to next who may use a route. It is the one place that looks at tokens: every route passes it
// before anything of the request is read, and before anything that it names is looked for.
func (h *Handler) requireAccess(who access, next http.HandlerFunc) http.HandlerFunc {
	if h.ports.Authenticator == nil {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		caller := core.Principal{}
		if h.needsToken(r, who) {
			var err error
			if caller, err = h.authenticate(r); err != nil && who.kind != accessLenientToken {
				h.fail(w, r, err)
				return
			}
			exchangeOf(r.Context()).principal = caller.Name
		}
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, caller))
		if err := h.checkAccess(r, who); err != nil {
			h.fail(w, r, err)
			return
		}
		next(w, r)
	}
}

// needsToken reports whether a request of a route needs a token at all.
func (h *Handler) needsToken(r *http.Request, who access) bool {
	switch who.kind {
	case accessOpen:
		return false
	case accessLenientToken, accessOptionalToken:
		return len(r.Header.Values(headerAuthorization)) > 0
	case accessSigned:
		return !h.isSigned(r, who)
	default:
		return true
	}
}

// isSigned reports whether the repository of a notification asks for a signature, which then decides.
func (h *Handler) isSigned(r *http.Request, who access) bool {
	repository, err := pathParam(r, who.param, who.param)
	return err == nil && h.ports.Notifications.Signed(repository)
}

// checkAccess refuses a caller whose scopes do not cover a route.
func (h *Handler) checkAccess(r *http.Request, who access) error {
	switch who.kind {
	case accessOpen, accessLenientToken, accessOptionalToken, accessToken:
		return nil
	case accessSigned:
		if h.isSigned(r, who) {
			return nil
		}
	case accessOrganization:
		organization, err := pathParam(r, who.param, who.param)
		if err != nil {
			return err
		}
		return h.requireWrite(r, organization)
	case accessSystem:
	}
	return h.requireSystem(r)
}

// authenticate returns whose token a request shows.
func (h *Handler) authenticate(r *http.Request) (core.Principal, error) {
	given := r.Header.Values(headerAuthorization)
	if len(given) == 0 {
		return core.Principal{}, &accessError{challenge: bearer, cause: &core.Error{
			Code: core.CodeUnauthenticated, Message: "this needs a token", Hint: hintToken,
		}}
	}
	token, ok := bearerToken(given[0])
	if len(given) > 1 || !ok {
		return core.Principal{}, &accessError{challenge: bearer, cause: &core.Error{
			Code: core.CodeUnauthenticated, Message: "the header Authorization is not a bearer token",
			Hint: "send it once, as Bearer, a space and an API key or JWT",
		}}
	}
	p, err := h.ports.Authenticator.Authenticate(r.Context(), token)
	if e, ok := errors.AsType[*core.Error](err); ok && e.Code == core.CodeUnauthenticated {
		return core.Principal{}, &accessError{challenge: bearer + ` error="invalid_token"`, cause: e}
	}
	if err != nil {
		return core.Principal{}, fmt.Errorf("checking a token: %w", err)
	}
	return p, nil
}

// bearerToken returns the token of an Authorization header (RFC 6750, section 2.1); the scheme may be in any case.
func bearerToken(header string) (string, bool) {
	scheme, rest, _ := strings.Cut(header, " ")
	token := strings.Trim(rest, " ")
	if !strings.EqualFold(scheme, bearer) || strings.TrimRight(token, "=") == "" {
		return "", false
	}
	foreign := strings.ContainsFunc(strings.TrimRight(token, "="), func(c rune) bool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		return !letter && !strings.ContainsRune("-._~+/", c)
	})
	return token, !foreign
}

// requireSystem refuses a caller without the system's write scope; nil when nobody is asked.
func (h *Handler) requireSystem(r *http.Request) error {
	if caller, bound := h.restrictedCaller(r); bound {
		return h.forbidden(caller, h.ports.Authenticator.SystemScope())
	}
	return nil
}

// requireWrite refuses a caller who may not index, submit and publish in an organization; nil when nobody is asked.
func (h *Handler) requireWrite(r *http.Request, organization string) error {
	if caller, bound := h.restrictedCaller(r); bound && !caller.MayWrite(organization) {
		return h.forbidden(caller, h.ports.Authenticator.WriteScope(organization))
	}
	return nil
}

// requireRead refuses a caller who may not read what an organization has not published; nil when nobody is asked.
func (h *Handler) requireRead(r *http.Request, organization string) error {
	if caller, bound := h.restrictedCaller(r); bound && !caller.MayRead(organization) {
		return h.forbidden(caller, h.ports.Authenticator.ReadScope(organization))
	}
	return nil
}

// requireQuery refuses a caller whom auth.defaultAccess keeps from a catalogue that has no access rule.
func (h *Handler) requireQuery(r *http.Request, c *core.Catalogue) error {
	caller, _ := callerOf(r.Context())
	if c.DefaultAccess.Allows(caller) {
		return nil
	}
	hint := "the catalogue has no access.json, so auth.defaultAccess decides who reads it: " + string(c.DefaultAccess)
	switch {
	case h.ports.Authenticator == nil:
		return &core.Error{Code: core.CodeForbidden, Message: "this catalogue is closed", Hint: hint}
	case caller.ID == "":
		return &accessError{challenge: bearer, cause: &core.Error{
			Code: core.CodeUnauthenticated, Message: "this catalogue needs a token", Hint: hintToken + "; " + hint,
		}}
	default:
		err := h.forbidden(caller, h.ports.Authenticator.SystemScope())
		err.cause.Hint += "; " + hint
		return err
	}
}

// restrictedCaller returns the caller whose scopes bound what it may do and see; false where nobody is asked, and for the system.
// Without a caller in the context, which a route that is not guarded would have, nothing is allowed.
func (h *Handler) restrictedCaller(r *http.Request) (core.Principal, bool) {
	if h.ports.Authenticator == nil {
		return core.Principal{}, false
	}
	caller, _ := callerOf(r.Context())
	return caller, !caller.System
}

// forbidden refuses a caller and names the scope that it lacks, which tells nothing of what there is.
func (h *Handler) forbidden(caller core.Principal, scope string) *accessError {
	challenge := bearer + ` error="insufficient_scope"`
	if isScopeToken(scope) {
		challenge += fmt.Sprintf(`, scope="%s"`, scope)
	}
	hint := "ask for a token with this scope"
	if all := h.ports.Authenticator.SystemScope(); all != scope {
		hint += ", or with " + all
	}
	if len(caller.Scopes) == 0 {
		hint += "; this one has none"
	}
	return &accessError{challenge: challenge, cause: &core.Error{
		Code: core.CodeForbidden, Message: fmt.Sprintf("this needs the scope %q", scope), Hint: hint,
	}}
}

// isScopeToken reports whether a scope can stand in a challenge (RFC 6749, section 3.3): an organization may be called
// anything.
func isScopeToken(scope string) bool {
	return !strings.ContainsFunc(scope, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' })
}

// accessError refuses a caller, with the challenge that says what is missing (RFC 6750, section 3).
type accessError struct {
	cause     *core.Error
	challenge string
}

// Error returns the text of the cause.
func (e *accessError) Error() string { return e.cause.Error() }

// Unwrap returns the Error that has the code.
func (e *accessError) Unwrap() error { return e.cause }

// challengeOf returns what WWW-Authenticate says beside an error, "" for nothing.
func challengeOf(err error) string {
	if e, ok := errors.AsType[*accessError](err); ok {
		return e.challenge
	}
	if core.CodeOf(err) == core.CodeUnauthenticated {
		return bearer
	}
	return ""
}
