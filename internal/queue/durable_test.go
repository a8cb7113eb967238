package queue_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/tools/queuetest"
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
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		for _, stream := range queue.Streams() {
			unbindProbe(t, q, stream)
		}
		err := q.Probe(t.Context())
		if wantCode(t, err, core.CodeUnavailable); !strings.Contains(core.MessageOf(err), "tutti.probe.") ||
			core.HintOf(err) != "another version of tutti may have set it up; it is set up again by itself" {
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

// TestProbesDenied: credentials that do not allow probes keep no Request from being stored, and Ready says what they lack, until they allow it.
func TestProbesDenied(t *testing.T) {
	t.Parallel()
	url, grant := queuetest.Limited(t, "tutti.probe.>")
	q := (&server{url: url}).connect(t, queue.Config{})
	err := q.Ready(t.Context())
	if wantCode(t, err, core.CodeUnavailable); !strings.Contains(core.MessageOf(err), "credentials") || core.HintOf(err) != "allow it on the server" {
		t.Errorf("Ready returned %q", core.DisplayOf(err))
	}
	mustPublish(t, q, record("S1", "A1"))
	grant()
	eventually(t, "a queue that is ready", func() bool { return q.Ready(t.Context()) == nil })
}

// hanging is a server that gets nothing of what its clients send while it hangs.
type hanging struct {
	*server
	hangs atomic.Bool
	// missed reports whether a client has sent a Request while it hung.
	missed atomic.Bool
}

// InProcessConn implements natsconn.InProcessServer.
func (h *hanging) InProcessConn() (net.Conn, error) {
	conn, err := h.server.InProcessConn()
	return hangingConn{conn, h}, err
}

type hangingConn struct {
	net.Conn
	of *hanging
}

func (c hangingConn) Write(b []byte) (int, error) {
	if c.of.hangs.Load() {
		if bytes.Contains(b, []byte("PUB tutti.requests.")) {
			c.of.missed.Store(true)
		}
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// TestServerThatHangs: a server that does not answer is said, and the queue goes on when it does again.
func TestServerThatHangs(t *testing.T) {
	t.Parallel()
	h := &hanging{server: startServer(t, t.TempDir(), "")}
	q, err := queue.ConnectInProcess(t.Context(), h, queue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeQueue(t, q) })
	h.hangs.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	const want = "the queue did not answer a write within 5s; check nats-server and its log; it continues by itself"
	if err := q.Probe(ctx); core.DisplayOf(err) != want {
		t.Errorf("got %q, want %q", core.DisplayOf(err), want)
	}
	h.hangs.Store(false)
	if err := q.Probe(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPublishSentAgain: a Request that is sent again, because the server did not answer, does not replace one to do the other thing that was
// requested since, but does replace one that was stored before it, whatever the clock of its process said.
func TestPublishSentAgain(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string]struct{ pending, sent core.Kind }{
		"index": {core.KindRemove, core.KindIndex}, "removal": {core.KindIndex, core.KindRemove},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hanging{server: startServer(t, t.TempDir(), "")}
			q, err := queue.ConnectInProcess(t.Context(), h, queue.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closeQueue(t, q) })
			other := h.connect(t, queue.Config{})
			for id, before := range map[string]bool{"A1": true, "A2": false} {
				pending, sent := record("S1", id), record("S1", id)
				pending.ID, pending.Kind, pending.ReceivedAt, sent.Kind = "pending", kinds.pending, pending.ReceivedAt.Add(time.Minute), kinds.sent
				if before {
					mustPublish(t, other, pending)
					time.Sleep(time.Second) // longer than an answer takes: what is stored within that time counts as stored since
				}
				h.missed.Store(false)
				h.hangs.Store(true)
				published := make(chan error, 1)
				go func() { published <- q.Publish(t.Context(), sent) }()
				eventually(t, "a Request that the server does not get", h.missed.Load)
				if !before {
					mustPublish(t, other, pending)
				}
				h.hangs.Store(false)
				if err := <-published; err != nil {
					t.Error(err)
				}
				want := kinds.pending
				if before {
					want = kinds.sent
				}
				if p, err := q.PendingRecord(t.Context(), "song", "S1", id); err != nil || p.Request == nil || p.Request.Kind != want {
					t.Errorf("stored before: %t; pending is %+v, %v", before, p.Request, err)
				}
			}
		})
	}
}

// TestPublishSaysOnce holds that an error of Publish says why the streams cannot store, and says it once.
func TestPublishSaysOnce(t *testing.T) {
	t.Parallel()
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

// TestUnansweredProbe: while the streams do not answer writes, Publish fails at once, and does not try again until its time-out.
func TestUnansweredProbe(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	q.Settle(queue.ProbeError(context.DeadlineExceeded))
	began := time.Now()
	wantCode(t, q.Publish(t.Context(), record("S1", "A1")), core.CodeUnavailable)
	if took := time.Since(began); took > time.Second {
		t.Errorf("Publish took %s", took)
	}
}

// TestProbesAreNoMessages holds that probes are not delivered, take no place of Requests and do not pile up.
func TestProbesAreNoMessages(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
