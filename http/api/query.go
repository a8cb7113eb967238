package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"tutti/internal/base/spelling"
	"tutti/internal/core"
)

// maxNameBytes is the number of bytes of an unknown parameter's name that are compared and shown.
const maxNameBytes = 64

// maxChoices is the maximum number of values of a parameter with fixed choices.
const maxChoices = 100

// maxIgnoredQueries is the number of ignored parameters that are remembered as logged.
const maxIgnoredQueries = 1000

// maxQuotedBytes is the number of bytes of an invalid value that an error message quotes.
const maxQuotedBytes = 64

// Parameters are the rules for a route's query parameters, which are those that the OpenAPI document describes. Unknown ones are rejected,
// because a list with a misspelt filter would contain everything; routes that clients of Song and Maestro use ignore them.
type Parameters struct {
	// ignored allows every query string; it is not read.
	ignored bool
	// lenient ignores unknown parameters and logs each name once.
	lenient bool
	// slash allows the path to end with a slash.
	slash bool
	// errorID is that of the error for an unknown parameter.
	errorID string
}

// StrictParams returns the parameters of a route that rejects unknown ones.
func StrictParams() Parameters { return Parameters{} }

// LenientParams returns the parameters of a route that existing clients of Song or Maestro use: unknown ones are ignored, each name is
// logged once, and the path may end with a slash. The handler reads them with LenientQueryOf.
func LenientParams() Parameters { return Parameters{lenient: true, slash: true} }

// SpringParams returns the parameters of a route of Song that rejects unknown ones, with an error id, as Song does: the path may end with
// a slash, and the handler reads them with LenientQueryOf.
func SpringParams(errorID string) Parameters { return Parameters{slash: true, errorID: errorID} }

// IgnoreParams returns the parameters of a route that ignores its query string.
func IgnoreParams() Parameters { return Parameters{ignored: true} }

// Check returns an error for a malformed query and for a parameter that the route does not have. From then on QueryOf returns only
// parameters that it has: a handler cannot read what is said to be ignored.
func (p Parameters) Check(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	ex := exchangeOf(r.Context())
	q := Query{}
	var allowed []string
	if !p.ignored {
		var err error
		if q, err = QueryOf(r); err != nil {
			return err
		}
		d, err := ex.router.document()
		if err != nil {
			return fmt.Errorf("reading the OpenAPI document: %w", err)
		}
		method, route := chi.RouteContext(r.Context()).RouteMethod, ex.router.cfg.routeLabel(r)
		described := false
		if allowed, described = d.queries[route][strings.ToLower(method)]; !described {
			return core.NewError(core.CodeInternal, "the OpenAPI document does not describe "+method+" "+route)
		}
	}
	var unknown []string
	for name := range q.values {
		if !slices.Contains(allowed, name) {
			unknown = append(unknown, name)
			delete(q.values, name)
		}
	}
	ex.query = &q
	if len(unknown) == 0 {
		return nil
	}
	if p.lenient {
		ex.router.logIgnored(r, unknown)
		return nil
	}
	name := slices.Min(unknown)
	name = strings.ToValidUTF8(name[:min(len(name), maxNameBytes)], "")
	hint := "this path takes no query parameters"
	if len(allowed) > 0 {
		hint = "the nearest query parameter of this path is " + spelling.Nearest(name, slices.Values(allowed))
	}
	return &core.Error{Code: core.CodeInvalid, ErrorID: p.errorID, Message: fmt.Sprintf("unknown query parameter %q", name), Hint: hint}
}

// Query is a parsed query string.
type Query struct{ values url.Values }

// QueryOf returns the parameters of r that its route has; a malformed escape is CodeInvalid, where net/url would drop the parameter. A
// Query must not be changed.
func QueryOf(r *http.Request) (Query, error) {
	if checked := exchangeOf(r.Context()).query; checked != nil {
		return *checked, nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Query{}, core.WrapError(core.CodeInvalid, "the query string is malformed", err)
	}
	return Query{values}, nil
}

// LenientQueryOf returns the parameters of r as QueryOf does, but treats a parameter with an empty value as absent.
func LenientQueryOf(r *http.Request) (Query, error) {
	q, err := QueryOf(r)
	if err != nil {
		return Query{}, err
	}
	present := url.Values{}
	for name, values := range q.values {
		for _, v := range values {
			if v != "" {
				present.Add(name, v)
			}
		}
	}
	return Query{present}, nil
}

// logIgnored logs names of query parameters that a route ignores, once for each route and name.
func (h *Router) logIgnored(r *http.Request, names []string) {
	route := h.cfg.routeLabel(r)
	for _, name := range names {
		name = strings.ToValidUTF8(name[:min(len(name), maxNameBytes)], "")
		key := r.Method + " " + route + "?" + name
		if _, logged := h.ignoredQueries.Get(key); logged {
			continue
		}
		h.ignoredQueries.Put(key, struct{}{}, 1)
		h.cfg.Logger.LogAttrs(r.Context(), slog.LevelWarn, "an unknown query parameter is ignored",
			slog.String("method", r.Method), slog.String("route", route), slog.String("ignored_query", name))
	}
}

// Text returns the one value of name, "" when it is absent.
func (q Query) Text(name string) (string, error) {
	switch v := q.values[name]; len(v) {
	case 0:
		return "", nil
	case 1:
		return v[0], nil
	default:
		return "", core.NewError(core.CodeInvalid, fmt.Sprintf("query parameter %s is given %d times", name, len(v)))
	}
}

// Unicode returns the one value of name as Text does; a value that is not UTF-8 is CodeInvalid.
func (q Query) Unicode(name string) (string, error) {
	v, err := q.Text(name)
	if err == nil && !utf8.ValidString(v) {
		err = core.NewError(core.CodeInvalid, "query parameter "+name+" is not UTF-8")
	}
	return v, err
}

// given returns the one value of name, and whether there is one.
func (q Query) given(name string) (value string, ok bool, err error) {
	if !q.values.Has(name) {
		return "", false, nil
	}
	value, err = q.Text(name)
	return value, err == nil, err
}

func (q Query) boolean(name string) (bool, error) {
	v, ok, err := q.given(name)
	if !ok {
		return false, err
	}
	switch v {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, core.NewError(core.CodeInvalid, fmt.Sprintf("query parameter %s must be true or false", name))
	}
}

// LenientBooleans sets each of values to true or false, as the parameter of r with the name at its position is, false when it is absent or
// empty. Anything else is CodeInvalid.
func LenientBooleans(r *http.Request, names []string, values ...*bool) error {
	q, err := LenientQueryOf(r)
	if err != nil {
		return err
	}
	for i, name := range names {
		if *values[i], err = q.boolean(name); err != nil {
			return err
		}
	}
	return nil
}

// Integer returns name as a number from low to high, fallback when it is absent.
func (q Query) Integer(name string, low, high, fallback int) (int, error) {
	v, ok, err := q.given(name)
	if !ok {
		return fallback, err
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < low || n > high {
		return 0, core.NewError(core.CodeInvalid,
			fmt.Sprintf("query parameter %s must be a whole number from %d to %d, not %s", name, low, high, QuoteValue(v)))
	}
	return n, nil
}

// LenientBoolean returns name as true or false, false when it is absent. Unlike LenientBooleans it accepts the other words that Spring
// converts, in any case, because clients of Song may send them.
func (q Query) LenientBoolean(name string) (bool, error) {
	v, ok, err := q.given(name)
	if !ok {
		return false, err
	}
	switch strings.ToLower(v) {
	case "true", "on", "yes", "1":
		return true, nil
	case "false", "off", "no", "0":
		return false, nil
	default:
		return false, core.NewError(core.CodeInvalid,
			fmt.Sprintf("query parameter %s must be true or false, not %s", name, QuoteValue(v)))
	}
}

// Choices returns the values of name as List does, each the one of the choices that it equals in any case, without duplicates.
func (q Query) Choices(name string, choices ...string) ([]string, error) {
	var chosen []string
	values, err := q.List(name, maxChoices)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		c, err := choiceOf(name, v, choices)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(chosen, c) {
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}

// Choice returns the choice that the value of name equals in any case, and fallback when it is absent.
func (q Query) Choice(name, fallback string, choices ...string) (string, error) {
	v, ok, err := q.given(name)
	if !ok {
		return fallback, err
	}
	return choiceOf(name, v, choices)
}

func choiceOf(name, value string, choices []string) (string, error) {
	for _, c := range choices {
		if strings.EqualFold(value, c) {
			return c, nil
		}
	}
	return "", core.NewError(core.CodeInvalid,
		fmt.Sprintf("query parameter %s must be %s, not %s", name, strings.Join(choices, " or "), QuoteValue(value)))
}

// List returns the values of name, which may be repeated and may each hold several values separated by commas; none when it is
// absent. An empty value, and more than most values, are CodeInvalid.
func (q Query) List(name string, most int) ([]string, error) {
	var values []string
	for _, given := range q.values[name] {
		for v := range strings.SplitSeq(given, ",") {
			if v == "" {
				return nil, core.NewError(core.CodeInvalid,
					fmt.Sprintf("query parameter %s has an empty value: %s", name, QuoteValue(given)))
			}
			if len(values) == most {
				return nil, core.NewError(core.CodeInvalid,
					fmt.Sprintf("query parameter %s has more than %d values", name, most))
			}
			values = append(values, v)
		}
	}
	return values, nil
}

// QuoteValue returns a client's value for a message: quoted, and truncated if it is long.
func QuoteValue(v string) string {
	if len(v) > maxQuotedBytes {
		return strconv.Quote(strings.ToValidUTF8(v[:maxQuotedBytes], "")) + "…"
	}
	return strconv.Quote(v)
}
