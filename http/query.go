package http

import (
	"fmt"
	nethttp "net/http"
	"net/url"
	"strconv"

	"tutti/internal/core"
)

// query is a parsed query string. Names that no route knows are ignored.
type query struct{ values url.Values }

// queryOf parses the query of r; a malformed escape is CodeInvalid, where net/url alone would drop the parameter.
func queryOf(r *nethttp.Request) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query{}, core.WrapError(core.CodeInvalid, "the query string is malformed", err)
	}
	return query{values}, nil
}

// text gives the one value of name, "" when it is absent.
func (q query) text(name string) (string, error) {
	switch v := q.values[name]; len(v) {
	case 0:
		return "", nil
	case 1:
		return v[0], nil
	default:
		return "", core.NewError(core.CodeInvalid, fmt.Sprintf("query parameter %s is given %d times", name, len(v)))
	}
}

// boolean gives name as true or false, false when it is absent; anything else is CodeInvalid.
func (q query) boolean(name string) (bool, error) {
	if !q.values.Has(name) {
		return false, nil
	}
	v, err := q.text(name)
	if err != nil {
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

// integer gives name as a number from low to high, fallback when it is absent.
func (q query) integer(name string, low, high, fallback int) (int, error) {
	if !q.values.Has(name) {
		return fallback, nil
	}
	v, err := q.text(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < low || n > high {
		return 0, core.NewError(core.CodeInvalid,
			fmt.Sprintf("query parameter %s must be a whole number from %d to %d", name, low, high))
	}
	return n, nil
}
