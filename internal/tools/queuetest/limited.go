package queuetest

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// Limited starts a server whose user may publish to every subject but the denied ones, until grant is called. The URL has its password, p4ss.
func Limited(t testing.TB, denied ...string) (url string, grant func()) {
	t.Helper()
	dir := t.TempDir()
	options := func(denied []string) *server.Options {
		rights := &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{">"}, Deny: denied}}
		return &server.Options{
			Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
			Users: []*server.User{{Username: "tutti", Password: "p4ss", Permissions: rights}},
		}
	}
	s := start(t, options(denied))
	return strings.Replace(s.ClientURL(), "nats://", "nats://tutti:p4ss@", 1), func() {
		t.Helper()
		if err := s.ReloadOptions(options(nil)); err != nil {
			t.Fatal(err)
		}
	}
}
