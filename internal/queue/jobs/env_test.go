package jobs_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/embedded"
	"tutti/internal/queue/jobs"
	"tutti/internal/queue/natsconn"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, queuetest.Outlive()...) }

// server is a server in process, or the program that TUTTI_TEST_NATS_SERVER names.
type server struct {
	dir, listen, url string
	inProcess        *embedded.Server
	end              func()
}

// startServer starts a server with an address to listen at, "" for none.
func startServer(t *testing.T, listen string) *server {
	t.Helper()
	s := &server{dir: t.TempDir(), listen: listen}
	if listen != "" {
		s.listen = testkit.NewAddress(t) // where it listens again after a restart
	}
	s.start(t)
	t.Cleanup(func() { s.end() })
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	if program := os.Getenv("TUTTI_TEST_NATS_SERVER"); program != "" {
		if s.listen == "" {
			s.listen = "127.0.0.1:0"
		}
		s.url, s.end = queuetest.RunProgram(t, program, s.dir, s.listen)
	} else {
		var err error
		if s.inProcess, err = embedded.Start(t.Context(), embedded.Config{Dir: s.dir, Listen: s.listen}); err != nil {
			t.Fatal(err)
		}
		s.url = s.inProcess.URL()
		s.end = func() {
			if err := s.inProcess.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	}
	s.listen = strings.TrimPrefix(s.url, "nats://") // where clients look for it after a restart
}

// store is the jobs of a server, with the bucket that holds them.
type store struct {
	*jobs.Jobs
	bucket *cells.Bucket
}

// open returns the jobs of a server of its own. Requests of the jobs with the ids wait.
func open(t *testing.T, waiting ...string) store {
	t.Helper()
	return startServer(t, "").connect(t, waiting...)
}

func (s *server) connect(t *testing.T, waiting ...string) store {
	t.Helper()
	cfg := natsconn.ConnConfig{
		URL: s.url, Streams: []jetstream.StreamConfig{cells.StreamConfig(1)}, StartTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	}
	if s.url == "" {
		cfg.Server = s.inProcess
	}
	conn, err := natsconn.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Disconnect(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	streams, err := conn.SetUp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := cells.Open(t.Context(), conn, streams[cells.StreamName])
	if err != nil {
		t.Fatal(err)
	}
	pending := make(map[string]struct{})
	for _, id := range waiting {
		pending[id] = struct{}{}
	}
	return store{jobs.New(bucket, func(context.Context) (map[string]struct{}, error) { return pending, nil }), bucket}
}

func newJob(t *testing.T, state core.JobState) core.Job {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return core.Job{
		ID: id.String(), Scope: core.ScopeRepository, Repository: "song", IndexName: "analyses", State: state,
		Cause: core.CauseREST, QueuedAt: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func mustCreate(t *testing.T, q store, job core.Job) core.Job {
	t.Helper()
	if err := q.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	return job
}

func wantCode(t *testing.T, err error, code core.Code) {
	t.Helper()
	if core.CodeOf(err) != code {
		t.Fatalf("got code %q (%v), want %q", core.CodeOf(err), err, code)
	}
}
