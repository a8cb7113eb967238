package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tutti/internal/core"
)

// Access is the authorization rule of a route; it applies only with an Authenticator (CONTRACT section 6).
type Access struct {
	kind accessKind
	// param names the path parameter that decides: the organization of accessOrganization, the repository of accessSigned.
	param string
	// signed reports whether the notifications of the repository of accessSigned must be signed.
	signed func(repository string) bool
}

type accessKind int

const (
	// accessOpen: no token is needed, and one that is sent is ignored.
	accessOpen accessKind = iota
	// accessLenientToken: no token is needed. The handler gets the principal of a valid one; an invalid one, or one that cannot be
	// checked now, counts as none.
	accessLenientToken
	// accessOptionalToken: no token is needed, but one that is sent must be valid: invalid tokens are rejected, not treated as
	// anonymous. The handler's ports apply the access filter.
	accessOptionalToken
	// accessToken: any valid token; the handler applies the access filter.
	accessToken
	// accessSystem: the system's write scope.
	accessSystem
	// accessOrganization: the write scope of the organization in the path, or the system's.
	accessOrganization
	// accessSigned: the signature of the body, checked by the handler, if the repository in the path requires one; otherwise
	// the system's write scope.
	accessSigned
)

// Open requires no token and ignores the request's.
func Open() Access { return Access{kind: accessOpen} }

// LenientToken requires no token and ignores an invalid one.
func LenientToken() Access { return Access{kind: accessLenientToken} }

// Token requires a valid token; the handler applies the access filter.
func Token() Access { return Access{kind: accessToken} }

// System requires the system's write scope.
func System() Access { return Access{kind: accessSystem} }

// OptionalToken requires no token but rejects an invalid one.
func OptionalToken() Access { return Access{kind: accessOptionalToken} }

// Signed requires a signature if required returns true for the repository that a path parameter names, else the system's scope.
func Signed(param string, required func(repository string) bool) Access {
	return Access{kind: accessSigned, param: param, signed: required}
}

// WriterOf requires the write scope of the organization that a path parameter names.
func WriterOf(param string) Access { return Access{kind: accessOrganization, param: param} }

const (
	// HeaderAuthorization carries the token of a request.
	HeaderAuthorization = "Authorization"
	headerChallenge     = "WWW-Authenticate"
	bearer              = "Bearer"
	hintToken           = "send the header Authorization: Bearer <API key or JWT>"
)

// Authenticator verifies bearer tokens and names scopes.
type Authenticator interface {
	// Authenticate returns CodeUnauthenticated, with a message that is safe to show, for an invalid token, and
	// CodeUnavailable when it cannot be checked now.
	Authenticate(ctx context.Context, token string) (core.Principal, error)
	// SystemScope, WriteScope and ReadScope return the names of the scopes that grant everything, and writing and reading in an
	// organization.
	SystemScope() string
	WriteScope(organization string) string
	ReadScope(organization string) string
}

type callerKey struct{}

// CallerOf returns the principal of the request's token; the zero Principal on an open route and for a request without a token.
// false means that authentication is off.
func CallerOf(ctx context.Context) (core.Principal, bool) {
	p, ok := ctx.Value(callerKey{}).(core.Principal)
	return p, ok
}

// RequireAccess calls next only for callers that may use a route. It is the only place that checks tokens. On every route it runs
// before the body is read and before anything that the request names is looked up.
func RequireAccess(who Access, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if authenticatorOf(r) == nil {
			next(w, r)
			return
		}
		caller := core.Principal{}
		if needsToken(r, who) {
			var err error
			if caller, err = authenticate(r); err != nil && who.kind != accessLenientToken {
				Fail(w, r, err)
				return
			}
			exchangeOf(r.Context()).principal = caller.Name
		}
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, caller))
		if err := checkAccess(r, who); err != nil {
			Fail(w, r, err)
			return
		}
		next(w, r)
	}
}

// authenticatorOf returns the Authenticator of a request, nil when authentication is off.
func authenticatorOf(r *http.Request) Authenticator { return configOf(r).Authenticator }

// needsToken reports whether the token of a request must be checked.
func needsToken(r *http.Request, who Access) bool {
	switch who.kind {
	case accessOpen:
		return false
	case accessLenientToken, accessOptionalToken:
		return len(r.Header.Values(HeaderAuthorization)) > 0
	case accessSigned:
		return !isSigned(r, who)
	default:
		return true
	}
}

// isSigned reports whether the repository of a notification requires a signature, which then replaces the token.
func isSigned(r *http.Request, who Access) bool {
	repository, err := PathParam(r, who.param, who.param)
	return err == nil && who.signed(repository)
}

// checkAccess rejects a caller whose scopes do not cover a route.
func checkAccess(r *http.Request, who Access) error {
	switch who.kind {
	case accessOpen, accessLenientToken, accessOptionalToken, accessToken:
		return nil
	case accessSigned:
		if isSigned(r, who) {
			return nil
		}
	case accessOrganization:
		organization, err := PathParam(r, who.param, who.param)
		if err != nil {
			return err
		}
		return RequireWrite(r, organization)
	case accessSystem:
	}
	return RequireSystem(r)
}

// authenticate returns the principal of a request's token.
func authenticate(r *http.Request) (core.Principal, error) {
	given := r.Header.Values(HeaderAuthorization)
	if len(given) == 0 {
		return core.Principal{}, tokenRequired()
	}
	token, ok := bearerToken(given[0])
	if len(given) > 1 || !ok {
		return core.Principal{}, &accessError{challenge: bearer, cause: &core.Error{
			Code: core.CodeUnauthenticated, Message: "the header Authorization is not a bearer token",
			Hint: "send it once, as Bearer, a space and an API key or JWT",
		}}
	}
	p, err := authenticatorOf(r).Authenticate(r.Context(), token)
	if e, ok := errors.AsType[*core.Error](err); ok && e.Code == core.CodeUnauthenticated {
		return core.Principal{}, &accessError{challenge: bearer + ` error="invalid_token"`, cause: e}
	}
	if err != nil {
		return core.Principal{}, fmt.Errorf("checking a token: %w", err)
	}
	return p, nil
}

func tokenRequired() error {
	return &accessError{challenge: bearer, cause: &core.Error{
		Code: core.CodeUnauthenticated, Message: "a token is required", Hint: hintToken,
	}}
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

// RequireToken rejects a caller without a token on a route where tokens are optional; nil when authentication is off.
func RequireToken(r *http.Request) error {
	if caller, on := CallerOf(r.Context()); on && caller.ID == "" {
		return tokenRequired()
	}
	return nil
}

// RequireSystem rejects a caller without the system's write scope; nil when authentication is off.
func RequireSystem(r *http.Request) error {
	if caller, bound := RestrictedCaller(r); bound {
		return forbidden(r, caller, authenticatorOf(r).SystemScope())
	}
	return nil
}

// RequireWrite rejects a caller that may not index, submit and publish in an organization; nil when authentication is off.
func RequireWrite(r *http.Request, organization string) error {
	if caller, bound := RestrictedCaller(r); bound && !caller.MayWrite(organization) {
		return forbidden(r, caller, authenticatorOf(r).WriteScope(organization))
	}
	return nil
}

// RequireRead rejects a caller that may not read an organization's unpublished analyses; nil when authentication is off.
func RequireRead(r *http.Request, organization string) error {
	if caller, bound := RestrictedCaller(r); bound && !caller.MayRead(organization) {
		return forbidden(r, caller, authenticatorOf(r).ReadScope(organization))
	}
	return nil
}

// RequireQuery rejects a caller that auth.defaultAccess excludes from a catalogue without an access rule.
func RequireQuery(r *http.Request, c *core.Catalogue) error {
	caller, _ := CallerOf(r.Context())
	if c.DefaultAccess.Allows(caller) {
		return nil
	}
	hint := "the catalogue has no access.json, so auth.defaultAccess decides who reads it: " + string(c.DefaultAccess)
	switch {
	case authenticatorOf(r) == nil:
		return &core.Error{Code: core.CodeForbidden, Message: "this catalogue is closed", Hint: hint}
	case caller.ID == "":
		return &accessError{challenge: bearer, cause: &core.Error{
			Code: core.CodeUnauthenticated, Message: "this catalogue needs a token", Hint: hintToken + "; " + hint,
		}}
	default:
		err := forbidden(r, caller, authenticatorOf(r).SystemScope())
		err.cause.Hint += "; " + hint
		return err
	}
}

// RestrictedCaller returns the caller if its scopes restrict it; false when authentication is off, and for the system. Without a
// caller in the context (a route without RequireAccess) nothing is allowed.
func RestrictedCaller(r *http.Request) (core.Principal, bool) {
	if authenticatorOf(r) == nil {
		return core.Principal{}, false
	}
	caller, _ := CallerOf(r.Context())
	return caller, !caller.System
}

// HidesDocuments reports whether some documents of a catalogue are hidden from the caller: an access rule restricts everyone except the
// system; without a rule the default access may deny the caller.
func HidesDocuments(r *http.Request, c *core.Catalogue) bool {
	caller, authenticated := CallerOf(r.Context())
	if !c.Restricted {
		return !c.DefaultAccess.Allows(caller)
	}
	if !authenticated {
		return true
	}
	_, bound := RestrictedCaller(r)
	return bound
}

// forbidden returns an error that names the missing scope; it does not reveal whether the resource exists.
func forbidden(r *http.Request, caller core.Principal, scope string) *accessError {
	challenge := bearer + ` error="insufficient_scope"`
	if isScopeToken(scope) {
		challenge += fmt.Sprintf(`, scope="%s"`, scope)
	}
	hint := "use a token with this scope"
	if all := authenticatorOf(r).SystemScope(); all != scope {
		hint += ", or with " + all
	}
	if len(caller.Scopes) == 0 {
		hint += "; this one has none"
	}
	return &accessError{challenge: challenge, cause: &core.Error{
		Code: core.CodeForbidden, Message: fmt.Sprintf("the scope %q is required", scope), Hint: hint,
	}}
}

// isScopeToken reports whether a scope can stand in a challenge (RFC 6749, section 3.3): an organization may be called
// anything.
func isScopeToken(scope string) bool {
	return !strings.ContainsFunc(scope, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' })
}

// accessError is an authentication or authorization error with its WWW-Authenticate challenge (RFC 6750, section 3).
type accessError struct {
	cause     *core.Error
	challenge string
}

// Error returns the text of the cause.
func (e *accessError) Error() string { return e.cause.Error() }

// Unwrap returns the Error that has the code.
func (e *accessError) Unwrap() error { return e.cause }

// challengeOf returns the value of WWW-Authenticate for an error, "" for none.
func challengeOf(err error) string {
	if e, ok := errors.AsType[*accessError](err); ok {
		return e.challenge
	}
	if core.CodeOf(err) == core.CodeUnauthenticated {
		return bearer
	}
	return ""
}
