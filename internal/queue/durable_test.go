package queue_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// TestReadyProvesEachStream holds that a write which one stream takes is no proof of another.
func TestReadyProvesEachStream(t *testing.T) {
	for _, stream := range queue.Streams() {
		t.Run(stream, func(t *testing.T) {
			t.Parallel()
			q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
			if err := q.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			unbindProbe(t, q, stream)
			wantCode(t, q.Probe(t.Context()), core.CodeUnavailable)
		})
	}
}

// unbindProbe sets a stream up without the subject of its probe, as a version of tutti that does not probe does.
func unbindProbe(t *testing.T, q *queue.Queue, stream string) {
	t.Helper()
	_, js := raw(t, q)
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.Subjects = cfg.Subjects[:1] // the probe's subject is the second
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

// TestOlderVersionSetsUpStreams: a process of an older version sets the streams up without the subjects of probes when it
// starts. Requests are stored all the same, and the streams are set up again.
func TestOlderVersionSetsUpStreams(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		for _, stream := range queue.Streams() {
			unbindProbe(t, q, stream)
		}
		err := q.Probe(t.Context())
		if wantCode(t, err, core.CodeUnavailable); !strings.Contains(core.MessageOf(err), "tutti.probe.") || strings.Contains(core.HintOf(err), "disk") {
			t.Errorf("the probe returned %q", core.DisplayOf(err))
		}
		q.RequestProbe()
		eventually(t, "streams that take probes", func() bool {
			mustPublish(t, q, record("S1", "A1"))
			return q.Probe(t.Context()) == nil
		})
		eventually(t, "a queue that is ready", func() bool { return q.Ready(t.Context()) == nil })
	})
}

// TestProbesDenied: credentials that do not allow probes keep no Request from being stored, and Ready says what they lack.
func TestProbesDenied(t *testing.T) {
	nats, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
		Users: []*natsserver.User{{Username: "tutti", Password: "secret", Permissions: &natsserver.Permissions{
			Publish: &natsserver.SubjectPermission{Deny: []string{"tutti.probe.>"}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	nats.Start()
	t.Cleanup(func() {
		nats.Shutdown()
		nats.WaitForShutdown()
	})
	if !nats.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	q := (&server{url: strings.Replace(nats.ClientURL(), "//", "//tutti:secret@", 1)}).connect(t, queue.Config{})
	err = q.Ready(t.Context())
	if wantCode(t, err, core.CodeUnavailable); !strings.Contains(core.MessageOf(err), "credentials") {
		t.Errorf("Ready returned %q", core.DisplayOf(err))
	}
	mustPublish(t, q, record("S1", "A1"))
}

// TestPublishSaysOnce holds that an error of Publish says why the streams cannot store, and says it once.
func TestPublishSaysOnce(t *testing.T) {
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	q.Settle(queue.ProbeError(syscall.ENOSPC))
	err := q.Publish(t.Context(), record("S1", "A1"))
	if wantCode(t, err, core.CodeUnavailable); !errors.Is(err, syscall.ENOSPC) || strings.Count(err.Error(), "cannot store") != 1 {
		t.Errorf("Publish returned %v", err)
	}
	if hint := core.HintOf(err); !strings.Contains(hint, "disk") {
		t.Errorf("the hint is %q", hint)
	}
}

// TestProbesAreNoMessages holds that probes are not delivered, take no place of Requests and do not pile up.
func TestProbesAreNoMessages(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{MaxPending: 1})
		mustPublish(t, q, record("S1", "A1"))
		wantCode(t, q.Publish(t.Context(), record("S1", "A2")), core.CodeOverloaded)
		if err := q.Probe(t.Context()); err != nil {
			t.Fatalf("a full stream is not ready: %v", err)
		}
		_, js := raw(t, q)
		for stream, want := range map[string]int{queue.StreamRequests: 1, queue.StreamDeadLetters: 0, queue.StreamJobs: 0} {
			if n := held(t, js, stream); n != want {
				t.Errorf("%s holds %d messages", stream, n)
			}
		}
		if moved, err := q.MoveUnknown(t.Context(), []string{"song"}); moved != 0 || err != nil {
			t.Errorf("%d messages moved, %v", moved, err)
		}
		if n := q.DeadLetters().Count(); len(n) != 0 {
			t.Errorf("dead letters %v", n)
		}
	})
}

// TestWriteInFlight holds that a write which waits for an answer ends when a probe fails, and not with its own time-out.
func TestWriteInFlight(t *testing.T) {
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	full := core.NewError(core.CodeUnavailable, "full")
	err := q.Write(t.Context(), func(ctx context.Context) error {
		q.Settle(full)
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("the write ended with %v", ctx.Err())
		}
		return ctx.Err()
	})
	if !errors.Is(err, full) {
		t.Errorf("the write gave %v", err)
	}
	err = q.Write(t.Context(), func(context.Context) error {
		t.Error("a write was begun")
		return nil
	})
	if !errors.Is(err, full) {
		t.Errorf("a later write gave %v", err)
	}
}
