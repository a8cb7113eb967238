package foreign_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tutti/internal/base/setting"
	"tutti/internal/config"
)

// least is a file with one repository.
const least = `repositories: [{code: song.ca, type: song, url: "https://song.example.org", indexName: analyses}]`

// publicKey is a public key of Ed25519 (RFC 8410, section 10.1).
const publicKey = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
`

func parse(t *testing.T, file string, environ ...string) config.Config {
	t.Helper()
	c, err := config.Parse([]byte(file), environ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantErrors compares the messages of err with the prefixes in want; none may contain a secret.
func wantErrors(t *testing.T, err error, want ...string) {
	t.Helper()
	var messages []string
	for _, f := range setting.Errors(err) {
		messages = append(messages, f.Message)
		if strings.Contains(f.Message+f.Hint, "s3cret") {
			t.Errorf("a secret is shown: %s", f.Message)
		}
	}
	if !slices.EqualFunc(messages, want, strings.HasPrefix) {
		t.Errorf("faults:\n%s\nwant:\n%s", strings.Join(messages, "\n"), strings.Join(want, "\n"))
	}
}

// fileOf writes a file into a folder of its own, and returns its name.
func fileOf(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
