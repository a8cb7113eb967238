package queue_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/testkit"
)

// ownCluster starts a cluster for one test.
func ownCluster(t *testing.T) *queuetest.Cluster {
	t.Helper()
	c, err := queuetest.StartCluster(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

// onLine is a logger that calls do with each line.
func onLine(do func(line string)) *slog.Logger { return slog.New(slog.NewTextHandler(lines(do), nil)) }

type lines func(string)

// Write implements io.Writer; the handler writes a line at a time.
func (l lines) Write(line []byte) (int, error) {
	l(string(bytes.TrimSpace(line)))
	return len(line), nil
}

// TestStartTogether: processes that start at once on a new cluster agree on its streams, also when their configurations
// differ.
func TestStartTogether(t *testing.T) {
	t.Parallel()
	url := ownCluster(t).URLs(0)
	const processes = 3
	queues, errs := [processes]*queue.Queue{}, [processes]error{}
	var starting sync.WaitGroup
	for i := range processes {
		starting.Go(func() {
			queues[i], errs[i] = queue.Connect(t.Context(), queue.Config{URL: url, Replicas: 3, MaxPending: 1000 + i})
		})
	}
	starting.Wait()
	for _, q := range queues {
		if q != nil {
			t.Cleanup(func() { closeQueue(t, q) })
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for i, q := range queues {
		mustPublish(t, q, record("S1", numbered(i)))
		c := mustConsumer(t, queues[(i+1)%processes], core.ClassRecords, queue.ConsumerConfig{})
		mustAck(t, fetch(t, c)...)
		c.Close()
	}
}

// TestStartWaits: a start that finds the queue not ready yet says so, and goes on when it is.
func TestStartWaits(t *testing.T) {
	t.Parallel()
	t.Run("for a server", func(t *testing.T) {
		t.Parallel()
		s := &server{dir: t.TempDir(), listen: testkit.NewAddress(t)}
		t.Cleanup(func() { s.stop(t) })
		startsOnce(t, queue.Config{URL: "nats://" + s.listen}, "no server answers", "check queue.url and that nats-server runs there", func() { s.start(t) })
	})
	t.Run("for enough servers of a cluster", func(t *testing.T) {
		t.Parallel()
		url := cluster.Account(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := queue.Connect(ctx, queue.Config{URL: url, Replicas: 5, Logger: onLine(func(line string) {
			if strings.Contains(line, "has fewer servers that can store than copies are configured") &&
				strings.Contains(line, "start the other servers, or lower queue.replicas") {
				cancel()
			}
		})})
		if wantCode(t, err, core.CodeUnavailable); ctx.Err() == nil {
			t.Errorf("the start gave up: %v", err)
		}
		(&server{url: url}).connect(t, queue.Config{Replicas: 3})
	})
	t.Run("for JetStream", func(t *testing.T) {
		t.Parallel()
		s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, NoLog: true, NoSigs: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		const why, hint = "the queue's server has no JetStream", "start nats-server with -js, or add jetstream {} to its configuration"
		startsOnce(t, queue.Config{URL: s.ClientURL()}, why, hint, func() {
			if err := s.EnableJetStream(&natsserver.JetStreamConfig{StoreDir: t.TempDir()}); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("for JetStream of the account", func(t *testing.T) {
		t.Parallel()
		s := queuetest.Serve(t, t.TempDir(), "accounts: {T: {users: [{user: t, password: t}]}}")
		const why, hint = "the queue's server does not let this account use JetStream", "enable JetStream for the account of this user"
		startsOnce(t, queue.Config{URL: strings.Replace(s.ClientURL(), "//", "//t:t@", 1)}, why, hint, func() {
			account, err := s.LookupAccount("T")
			if err == nil {
				err = account.EnableJetStream(nil, nil)
			}
			if err != nil {
				t.Error(err)
			}
		})
	})
}

// startsOnce connects, and calls fix when the log says that the start waits because of why, with a hint.
func startsOnce(t *testing.T, cfg queue.Config, why, hint string, fix func()) {
	t.Helper()
	fixed := false
	once := sync.OnceFunc(func() {
		fixed = true
		fix()
	})
	cfg.Logger = onLine(func(line string) {
		if strings.Contains(line, "the start waits for the queue") && strings.Contains(line, why) && strings.Contains(line, hint) {
			once()
		}
	})
	q, err := queue.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	closeQueue(t, q)
	if !fixed {
		t.Errorf("the start did not wait because %s", why)
	}
}

// TestStartFails: what does not pass by itself ends the start at once, anything else after the time for it.
func TestStartFails(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "127.0.0.1:0")
	const nowhere = "nats://127.0.0.1:1"
	for name, c := range map[string]struct {
		cfg     queue.Config
		code    core.Code
		message string
	}{
		"no server": {
			queue.Config{URL: nowhere, StartTimeout: 50 * time.Millisecond},
			core.CodeUnavailable, "connecting to the queue: no server answers; gave up after 50ms",
		},
		"no cluster": {
			queue.Config{URL: s.url, Replicas: 3},
			core.CodeInvalid, "setting up the stream REQUESTS: the queue's server belongs to no cluster, so that it stores one copy",
		},
		"wrong password": {
			queue.Config{URL: strings.ReplaceAll(cluster.Account(t), ":t@", ":x@")},
			core.CodeUnauthenticated, "connecting to the queue: the server does not accept the credentials",
		},
		"no URL":            {queue.Config{}, core.CodeInvalid, "queue.url is empty"},
		"too many replicas": {queue.Config{URL: nowhere, Replicas: 9}, core.CodeInvalid, "queue.replicas is 9, it must be between 0 and 5"},
		"negative pending":  {queue.Config{URL: nowhere, MaxPending: -1}, core.CodeInvalid, "queue.maxPending is -1, it must be positive"},
		"no time":           {queue.Config{URL: nowhere, StartTimeout: -1}, core.CodeInvalid, "server.startTimeout is -1ns, it must be positive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := queue.Connect(t.Context(), c.cfg)
			if core.CodeOf(err) != c.code || core.MessageOf(err) != c.message {
				t.Errorf("got %q (%s), want %q (%s)", core.MessageOf(err), core.CodeOf(err), c.message, c.code)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := queue.Connect(ctx, queue.Config{URL: nowhere, Logger: onLine(func(string) { cancel() })})
		wantCode(t, err, core.CodeUnavailable)
	})
}
