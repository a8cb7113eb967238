package setting

import (
	"log/slog"
	"strconv"
)

// URL is a URL, or a comma-separated list of them. Printed, logged or marshalled it is one without its user, its password and the parameters
// that are secrets by their names. Only Reveal returns all of it.
type URL string

var _ slog.LogValuer = URL("")

// Reveal returns the whole URL.
func (u URL) Reveal() string { return string(u) }

// String returns the URL without secrets.
func (u URL) String() string { return MaskUser(string(u)) }

// GoString returns the URL without secrets for %#v.
func (u URL) GoString() string { return strconv.Quote(u.String()) }

// LogValue returns the URL without secrets for log/slog.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText returns the URL without secrets for JSON and YAML.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }
