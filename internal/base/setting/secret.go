package setting

import (
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
)

// mask is shown instead of a secret.
const mask = "********"

// Secret is a text that only Reveal returns: printed, logged or marshalled it is a mask.
type Secret string

var _ slog.LogValuer = Secret("")

// ReadSecret returns the secret in a file, without a line break at its end. An error is one sentence that names the file.
func ReadSecret(file string) (Secret, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %s", file, Reason(err))
	}
	secret := Secret(strings.TrimRight(string(content), "\r\n"))
	if secret == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return secret, nil
}

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

// secretParameter is a parameter of a URL whose name says that its value is a secret.
const secretParameter = `(?i)([?&][^=&#,]*(?:auth|key|pass|secret|sig|token)[^=&#,]*)=[^&#,]*`

// maskParameters masks the values of the parameters of a URL that are secrets by their name.
func maskParameters(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	return regexp.MustCompile(secretParameter).ReplaceAllString(s, "$1="+mask)
}

// MaskUser masks the part before an @ in each URL of a list, which may contain a password, and the values of parameters that are secrets by
// their name.
func MaskUser(s string) string {
	s = maskParameters(s)
	if !strings.Contains(s, "@") {
		return s
	}
	parts := strings.Split(s, ",")
	for i, part := range parts {
		at := strings.LastIndexByte(part, '@')
		if at < 0 {
			continue
		}
		scheme, _, ok := strings.Cut(part[:at], "://")
		if !ok {
			continue
		}
		parts[i] = scheme + "://" + mask + part[at:]
	}
	return strings.Join(parts, ",")
}

// maskStore returns the URL of a database without its user and passwords.
func maskStore(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return Secret(s).String()
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	if strings.ContainsAny(tail, "@#") {
		// Probably a password with an unescaped character.
		return scheme + "://" + mask
	}
	path, query, _ := strings.Cut(tail, "?")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		authority = mask + authority[at:]
	}
	if query != "" {
		// All parameters whose name contains pass, such as password and sslpassword.
		query = "?" + regexp.MustCompile(`(?i)([^&=]*pass[^&=]*)=[^&]*`).ReplaceAllString(query, "$1="+mask)
	}
	return scheme + "://" + authority + path + query
}
