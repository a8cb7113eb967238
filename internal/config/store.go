package config

import (
	"regexp"
	"strings"
)

// storePattern is what a URL of PostgreSQL begins with; the rest, several hosts for one, is for its driver to judge.
const storePattern = `^postgres(ql)?://\S+$`

// Store says where studies, analyses, analysis types and API keys are kept.
type Store struct {
	// URL is that of a PostgreSQL database, password included; empty for SQLite in the data folder.
	URL Secret
}

func (s *Store) key() key {
	url := secret("url", &s.URL, "PostgreSQL database, postgres://user:password@host:5432/database; empty for SQLite in dataDir.").
		matching(storePattern, "a URL that begins with postgres:// or postgresql://")
	url.credentials = true
	return object("store", "Where studies, analyses, analysis types and API keys are kept.", url)
}

// alone warns of a store that several processes may use where each has a queue or an index of its own: what one of them
// takes from the store would never come to the others.
func (c *Config) alone() []string {
	if c.Store.URL == "" || c.Queue.URL != "" && c.Index.URL != "" {
		return nil
	}
	return []string{"store.url names a database that others can use as well, but the queue or the index is embedded: let no second tutti " +
		"use this database, or set queue.url and index.url too"}
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
		// A password with a character that should have been escaped looks like this.
		return scheme + "://" + mask
	}
	path, query, _ := strings.Cut(tail, "?")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		authority = mask + authority[at:]
	}
	if query != "" {
		// Any parameter whose name speaks of a password: password and sslpassword are those of today.
		query = "?" + regexp.MustCompile(`(?i)([^&=]*pass[^&=]*)=[^&]*`).ReplaceAllString(query, "$1="+mask)
	}
	return scheme + "://" + authority + path + query
}
