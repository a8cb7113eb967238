package external

import (
	"errors"
	"net/url"
	"strings"
	"unicode"

	"tutti/schemas/violation"
)

// maxURLLength bounds the URL of a call.
const maxURLLength = 8192

// urlTemplate is an http or https URL with the tokens {study} and {value} in its path and query.
type urlTemplate struct {
	// origin is scheme and authority; path and query follow it, the query with its question mark.
	origin, path, query string
}

// parseTemplate reads a template. The error's text is safe to show.
func parseTemplate(text string) (urlTemplate, error) {
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == '\\' || r == unicode.ReplacementChar {
			return urlTemplate{}, errors.New("has white space, a control character or a backslash")
		}
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return urlTemplate{}, errors.New("is not an absolute http or https URL")
	}
	if strings.Contains(text, "#") {
		return urlTemplate{}, errors.New("has a fragment, which is never sent")
	}
	t := urlTemplate{}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	t.origin = strings.ToLower(scheme) + "://" + rest[:end]
	t.path, t.query, ok = strings.Cut(rest[end:], "?")
	if ok {
		t.query = "?" + t.query
	}
	if strings.ContainsAny(rest[:end], "{}") {
		return urlTemplate{}, errors.New("has a token in its host; only path and query may have one")
	}
	if err := onlyTokens(t.path + t.query); err != nil {
		return urlTemplate{}, err
	}
	parsed, err := url.Parse(t.expand("s", "v"))
	switch {
	case err != nil || parsed.Hostname() == "":
		return urlTemplate{}, errors.New("is not an absolute http or https URL")
	case parsed.User != nil:
		return urlTemplate{}, errors.New("has a user or a password, which everyone who can read the type would see")
	}
	return t, nil
}

func onlyTokens(rest string) error {
	for {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return nil
		}
		end := strings.IndexAny(rest[open+1:], "{}") + open + 1
		if rest[open] == '}' || end == open || rest[end] == '{' {
			return errors.New("has a brace that belongs to neither {study} nor {value}")
		}
		if token := rest[open : end+1]; token != "{study}" && token != "{value}" {
			return errors.New("has the token " + violation.Quoted(token) + "; only {study} and {value} are replaced")
		}
		rest = rest[end+1:]
	}
}

func (t urlTemplate) expand(study, value string) string {
	path := strings.NewReplacer("{study}", url.PathEscape(study), "{value}", url.PathEscape(value)).Replace(t.path)
	query := strings.NewReplacer("{study}", url.QueryEscape(study), "{value}", url.QueryEscape(value)).Replace(t.query)
	return t.origin + path + query
}

// fill replaces the tokens. The error, which is safe to show, says why a value cannot be sent: an empty segment, "." or ".."
// would change the path.
func (t urlTemplate) fill(study, value string) (string, error) {
	for segment := range strings.SplitSeq(t.path, "/") {
		if !strings.Contains(segment, "{") {
			continue
		}
		switch strings.NewReplacer("{study}", study, "{value}", value, "%2e", ".", "%2E", ".").Replace(segment) {
		case "":
			return "", errors.New("is empty and cannot be sent")
		case ".", "..":
			return "", errors.New(violation.Quoted(value) + " cannot be sent: it would change the path")
		}
	}
	full := t.expand(study, value)
	if len(full) > maxURLLength {
		return "", errors.New("is too long to be sent")
	}
	return full, nil
}
