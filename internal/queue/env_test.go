package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/testkit"
)

// cluster is three servers that tests share.
var cluster queuetest.Shared

func TestMain(m *testing.M) {
	testkit.Parallel()
	goleak.VerifyTestMain(cluster.Main(m), queuetest.Outlive()...)
}

// programVariable names a nats-server's program that is the external server, of a version of its own; else it is the embedded one behind TCP.
const programVariable = "TUTTI_TEST_NATS_SERVER"

// server is one way of running the streams.
type server struct {
	*embedded.Server
	// end stops a program, nil without one.
	end    func()
	dir    string
	listen string
	url    string
}

// onBoth runs the same test against the server in process and against one behind TCP.
func onBoth(t *testing.T, test func(t *testing.T, s *server)) {
	t.Helper()
	for name, listen := range map[string]string{"embedded": "", "external": "127.0.0.1:0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, startServer(t, t.TempDir(), listen))
		})
	}
}

func startServer(t *testing.T, dir, listen string) *server {
	t.Helper()
	s := &server{dir: dir, listen: listen}
	if listen != "" {
		s.listen = testkit.NewAddress(t) // where it listens again after a restart
	}
	s.start(t)
	t.Cleanup(func() { s.stop(t) })
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	if program := os.Getenv(programVariable); program != "" && s.listen != "" {
		s.url, s.end = queuetest.RunProgram(t, program, s.dir, s.listen)
	} else {
		var err error
		s.Server, err = embedded.Start(t.Context(), embedded.Config{Dir: s.dir, Listen: s.listen})
		if err != nil {
			t.Fatal(err)
		}
		s.url = s.URL()
	}
	// After a restart clients look for the server where it was.
	s.listen = strings.TrimPrefix(s.url, "nats://")
}

func (s *server) stop(t *testing.T) {
	t.Helper()
	if s.end != nil {
		s.end()
		return
	}
	if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// onCluster returns a Queue on three servers, whose streams are the test's own.
func onCluster(t *testing.T, cfg queue.Config) *queue.Queue {
	t.Helper()
	cfg.Replicas = 3
	return (&server{url: cluster.Account(t)}).connect(t, cfg)
}

// connect returns a Queue on the server, closed at the end of the test.
func (s *server) connect(t *testing.T, cfg queue.Config) *queue.Queue {
	t.Helper()
	cfg.Logger = slog.New(slog.NewTextHandler(&testLog{t: t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var q *queue.Queue
	var err error
	if s.url != "" {
		cfg.URL = s.url
		q, err = queue.Connect(t.Context(), cfg)
	} else {
		q, err = queue.ConnectInProcess(t.Context(), s, cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeQueue(t, q) })
	return q
}

func closeQueue(t *testing.T, q *queue.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	if err := q.Close(ctx); err != nil {
		t.Error(err)
	}
}

// raw returns the plain client of the Queue's connection.
func raw(t *testing.T, q *queue.Queue) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	js, err := jetstream.New(q.Conn())
	if err != nil {
		t.Fatal(err)
	}
	return q.Conn(), js
}

// held returns how many messages a stream holds besides its probes.
func held(t *testing.T, js jetstream.JetStream, stream string) int {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for subject, messages := range info.State.Subjects {
		if !strings.HasPrefix(subject, "tutti.probe.") {
			n += int(messages)
		}
	}
	return n
}

// testLog writes to the test's log while the test runs.
type testLog struct {
	mu sync.Mutex
	t  *testing.T
}

// Write implements io.Writer.
func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.t.Context().Err() != nil {
		return io.Discard.Write(p)
	}
	l.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

func record(organization, id string) core.Request {
	return core.Request{
		ID: "r-" + id, Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: "song", Organization: organization,
		RecordID: id, Cause: core.CauseREST, ReceivedAt: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func mustPublish(t *testing.T, q *queue.Queue, requests ...core.Request) {
	t.Helper()
	for _, r := range requests {
		if err := q.Publish(t.Context(), r); err != nil {
			t.Fatalf("publishing %s: %v", r.RecordID, err)
		}
	}
}

func mustConsumer(t *testing.T, q *queue.Queue, class core.Class, cfg queue.ConsumerConfig) *queue.Consumer {
	t.Helper()
	c, err := q.Consumer(t.Context(), "song", class, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fetch returns the messages of one Fetch and fails if there are none.
func fetch(t *testing.T, c *queue.Consumer) []core.Message {
	t.Helper()
	messages, err := c.Fetch(t.Context(), 100, 0, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) == 0 {
		t.Fatal("nothing was delivered")
	}
	return messages
}

func fetchNone(t *testing.T, c *queue.Consumer) {
	t.Helper()
	messages, err := c.Fetch(t.Context(), 100, 0, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 0 {
		t.Fatalf("%d messages delivered, the first %+v", len(messages), messages[0].Request())
	}
}

func mustAck(t *testing.T, messages ...core.Message) {
	t.Helper()
	for _, m := range messages {
		if err := m.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// eventually waits for what the server does in its own time.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !check() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s did not come about", what)
		}
	}
}

func wantCode(t *testing.T, err error, code core.Code) {
	t.Helper()
	if core.CodeOf(err) != code {
		t.Fatalf("got code %q (%v), want %q", core.CodeOf(err), err, code)
	}
}

func numbered(n int) string { return fmt.Sprintf("id-%05d", n) }
