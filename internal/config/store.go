package config

import (
	"tutti/internal/base/setting"
)

// storePattern matches the start of a PostgreSQL URL; the driver parses the rest.
const storePattern = `^postgres(ql)?://\S+$`

// Store configures the database of studies, analyses, analysis types and API keys.
type Store struct {
	// URL is the URL of a PostgreSQL database, including the password; empty for SQLite in the data directory.
	URL setting.Secret
	// TLS names the files of TLS of the connections to PostgreSQL.
	TLS ClientTLS
}

func (s *Store) key() setting.Key {
	return setting.Object("store", "Database of studies, analyses, analysis types and API keys.", append([]setting.Key{setting.SecretText("url", &s.URL, "PostgreSQL database, postgres://user:password@host:5432/database; empty for SQLite in dataDir.").
		Matching(storePattern, "a URL that starts with postgres:// or postgresql://").MaskCredentials()}, s.TLS.keys()...)...)
}

func (s *Store) validate(f *setting.ErrorList) {
	s.TLS.validateFor("store", "url", string(s.URL), f)
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
