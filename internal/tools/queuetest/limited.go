package queuetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// Limited starts a server whose user has Rights, but may not publish to the denied subjects until grant is called. The URL has its
// password, p4ss.
func Limited(t testing.TB, denied ...string) (url string, grant func()) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "nats.conf")
	text := fmt.Sprintf("listen: '127.0.0.1:-1'\njetstream: {store_dir: %q}\nauthorization: {users: [{user: tutti, password: p4ss, %s}]}\n", dir, Rights)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options := func(denied []string) *server.Options {
		t.Helper()
		opts, err := server.ProcessConfigFile(file)
		if err != nil {
			t.Fatal(err)
		}
		opts.NoLog, opts.NoSigs = true, true
		opts.Users[0].Permissions.Publish.Deny = denied
		return opts
	}
	s := start(t, options(denied))
	return strings.Replace(s.ClientURL(), "nats://", "nats://tutti:p4ss@", 1), func() {
		t.Helper()
		if err := s.ReloadOptions(options(nil)); err != nil {
			t.Fatal(err)
		}
	}
}
