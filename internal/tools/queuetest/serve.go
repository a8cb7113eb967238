package queuetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"tutti/internal/tools/testkit"
)

// Serve starts a server with JetStream in dir, a monitoring address, and further lines of a configuration file.
func Serve(t testing.TB, dir, lines string) *server.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	opts.ServerName, opts.Host, opts.HTTPHost, opts.HTTPPort = "nats-1", "127.0.0.1", "127.0.0.1", server.RANDOM_PORT
	if opts.Port == 0 || opts.Port == server.DEFAULT_PORT {
		opts.Port = server.RANDOM_PORT
	}
	opts.JetStream, opts.StoreDir, opts.NoSigs, opts.NoLog = true, dir, true, true
	return start(t, opts)
}

// ServePlain starts a server of a cluster that has no JetStream, and returns its URL.
func ServePlain(t testing.TB) string {
	t.Helper()
	return start(t, &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT},
	}).ClientURL()
}

// start starts a server, which stops when the test ends.
func start(t testing.TB, opts *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testkit.HangLimit) {
		t.Fatal("the server does not start")
	}
	return s
}
