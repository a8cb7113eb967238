package config

import (
	"regexp"
	"strings"
)

// storePattern matches the start of a PostgreSQL URL; the driver parses the rest.
const storePattern = `^postgres(ql)?://\S+$`

// Store configures the database of studies, analyses, analysis types and API keys.
type Store struct {
	// URL is the URL of a PostgreSQL database, including the password; empty for SQLite in the data directory.
	URL Secret
}

func (s *Store) key() key {
	url := secret("url", &s.URL, "PostgreSQL database, postgres://user:password@host:5432/database; empty for SQLite in dataDir.").
		matching(storePattern, "a URL that starts with postgres:// or postgresql://")
	url.credentials = true
	return object("store", "Database of studies, analyses, analysis types and API keys.", url)
}

// embeddedWarning warns of a store that several processes may share while each has its own queue or index: changes that one of them relays would
// not reach the others.
func (c *Config) embeddedWarning() []string {
	if c.Store.URL == "" || c.Queue.URL != "" && c.Index.URL != "" {
		return nil
	}
	return []string{"store.url is a shared database, but the queue or the index is embedded: do not run a second tutti with " +
		"this database, or set queue.url and index.url too"}
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
