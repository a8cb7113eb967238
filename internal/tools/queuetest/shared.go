package queuetest

import (
	"context"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// Shared is a cluster for all tests of a package, started by the first one that needs it. The package's TestMain must run
// what Main returns.
type Shared struct {
	once    sync.Once
	dir     string
	cluster *Cluster
	err     error
}

// Account is that of the cluster. The test must not stop servers of it.
func (s *Shared) Account(tb testing.TB) string {
	tb.Helper()
	s.once.Do(s.start)
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.cluster.Account(tb)
}

// start makes the folder and the cluster, which outlive the test.
func (s *Shared) start() {
	if s.dir, s.err = os.MkdirTemp("", "tutti-cluster-"); s.err != nil {
		return
	}
	s.cluster, s.err = StartCluster(context.Background(), s.dir)
}

// Main returns m, which stops the cluster when the tests have run.
func (s *Shared) Main(m *testing.M) interface{ Run() int } { return runner{m, s} }

type runner struct {
	m      *testing.M
	shared *Shared
}

// Run runs the tests.
func (r runner) Run() int {
	defer func() {
		if r.shared.cluster != nil {
			r.shared.cluster.Stop()
		}
		_ = os.RemoveAll(r.shared.dir)
	}()
	return r.m.Run()
}

// Outlive returns the goroutines that may outlive a server: those of batches that it was sent while it was shut down. It has others that end with
// it, by which one that was not shut down is found. See findings/nats-batches-outlive-server.sh.
func Outlive() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"),
	}
}
