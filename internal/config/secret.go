package config

import "log/slog"

// mask is shown instead of a secret.
const mask = "********"

// Secret is a text that only Reveal returns: printed, logged or marshalled it is a mask.
type Secret string

var _ slog.LogValuer = Secret("")

// Reveal returns the secret.
func (s Secret) Reveal() string { return string(s) }

// String returns a mask, or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// GoString returns a mask for %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// LogValue returns a mask for log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns a mask for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
