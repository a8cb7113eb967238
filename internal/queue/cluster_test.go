package queue_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/tools/queuetest"
)

// fill publishes Requests until the queue is full, and returns how many it has taken.
func fill(t *testing.T, q *queue.Queue) int {
	t.Helper()
	for n := 0; ; n++ {
		if err := q.Publish(t.Context(), record("S1", numbered(n))); err != nil {
			wantCode(t, err, core.CodeOverloaded)
			return n
		}
	}
}

// fetchAll fetches n messages.
func fetchAll(t *testing.T, c *queue.Consumer, n int) []core.Message {
	t.Helper()
	var all []core.Message
	for len(all) < n {
		all = append(all, fetch(t, c)...)
	}
	return all
}

// awaitStored waits until the stream holds n Requests: on a cluster it removes them after their ack.
func awaitStored(t *testing.T, q *queue.Queue, n int) {
	t.Helper()
	eventually(t, "the removal of what was acknowledged", func() bool {
		ids, err := q.PendingRecords(t.Context(), "song", "")
		return err == nil && len(ids) == n
	})
}

// TestWaitsOnFullCluster: a full cluster does not take a Request again, so that each restart of a process counts a delivery
// of those that it has in flight. One that waits through all of them is published again when there is room, as it was.
func TestWaitsOnFullCluster(t *testing.T) {
	t.Parallel()
	q := onCluster(t, queue.Config{MaxPending: 3})
	c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{MaxDeliver: 20})
	all := fetchAll(t, c, fill(t, q))
	waits, others := all[0], all[1:]
	version := waits.Version()
	for delivery := 1; ; delivery++ {
		if waits.Deliveries() != delivery {
			t.Fatalf("delivery %d, want %d", waits.Deliveries(), delivery)
		}
		wantCode(t, q.Republish(t.Context(), waits, waits.Request(), 0), core.CodeOverloaded)
		if delivery == 45 {
			break
		}
		if err := waits.Nak(0); err != nil {
			t.Fatal(err)
		}
		waits = fetch(t, c)[0]
	}
	mustAck(t, others...)
	awaitStored(t, q, 1)
	if err := q.Republish(t.Context(), waits, waits.Request(), 0); err != nil {
		t.Fatal(err)
	}
	again := fetch(t, c)
	if len(again) != 1 || again[0].Deliveries() != 1 || again[0].Request().Attempts != 45 || again[0].Version() != version {
		t.Fatalf("delivery %d of %+v, version %d, want %d", again[0].Deliveries(), again[0].Request(), again[0].Version(), version)
	}
	mustAck(t, again...)
	if n := q.DeadLetters().Count()["song"]; n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// TestClusterNodeKilled: of three servers, the one that leads the Requests ends amid publishes. What was acknowledged is
// delivered, once the others have elected a leader and also when the server is back.
func TestClusterNodeKilled(t *testing.T) {
	t.Parallel()
	const total, writers = 2000, 8
	own, err := queuetest.StartCluster(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Stop)
	q := (&server{url: own.URLs(0)}).connect(t, queue.Config{Replicas: 3})
	c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{MaxAckPending: total})
	var next, done atomic.Int64
	var writing sync.WaitGroup
	part := make(chan struct{})
	for range writers {
		writing.Go(func() {
			for i := next.Add(1) - 1; i < total; i = next.Add(1) - 1 {
				for q.Publish(t.Context(), record("S1", numbered(int(i)))) != nil && t.Context().Err() == nil {
					time.Sleep(10 * time.Millisecond) // As a caller does that is told to come again.
				}
				if done.Add(1) == total/4 {
					close(part)
				}
			}
		})
	}
	<-part
	_, js := raw(t, q)
	stream, err := js.Stream(t.Context(), queue.StreamRequests)
	if err != nil {
		t.Fatal(err)
	}
	own.Kill(stream.CachedInfo().Cluster.Leader)
	writing.Wait()
	if err := own.Restart(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stored := make(map[string]bool)
	for len(stored) < total {
		messages, err := c.Fetch(ctx, 500, 0, time.Second)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d acknowledged publishes were lost (%v)", total-len(stored), total, err)
		}
		for _, m := range messages {
			if m.Ack(ctx) == nil {
				stored[m.Request().RecordID] = true
			}
		}
	}
}

// TestListsOnCluster: what was stored is in every list that begins afterwards, whichever server keeps it.
func TestListsOnCluster(t *testing.T) {
	t.Parallel()
	q := onCluster(t, queue.Config{})
	jobs := q.Jobs()
	const lists = 60
	for i := range lists {
		run := core.OrganizationRun{Organization: fmt.Sprint(i), State: core.JobRunning}
		if _, err := jobs.CreateOrganization(t.Context(), "job", run); err != nil {
			t.Fatal(err)
		}
		runs, err := jobs.Organizations(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) != i+1 {
			t.Errorf("%d organizations of %d", len(runs), i+1)
		}
		if err := q.PageNotes().NotePage(t.Context(), "job", "S1", 0, i, []uint64{uint64(i)}); err != nil {
			t.Fatal(err)
		}
		ids, err := q.PageNotes().NotedIDs(t.Context(), "job", "S1", 0, lists)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) != i+1 {
			t.Errorf("%d noted ids of %d", len(ids), i+1)
		}
	}
}

// TestLostAnswers: an acknowledgement, and a publish, that the server leaves without an answer are sent again.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	mustPublish(t, q, record("S1", "a"))
	m := fetch(t, c)[0]
	mustPublish(t, q, record("S1", "A1"))
	pending := strconv.FormatUint(lastSequence(t, q), 10)
	nc, js := raw(t, q)
	if err := js.DeleteStream(t.Context(), queue.StreamRequests); err != nil { // and its subjects are the test's
		t.Fatal(err)
	}
	subject, err := queue.RequestSubject(record("S1", "A1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		subject, answer string
		call            func() error
	}{
		"acknowledgement": {"$JS.ACK.>", "", func() error { return m.Ack(t.Context()) }},
		"publish": {subject, `{"stream":"` + queue.StreamRequests + `","seq":1}`, func() error {
			return q.Publish(t.Context(), record("S1", "A1"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			received := 0
			sub, err := nc.Subscribe(tt.subject, func(m *nats.Msg) {
				if received++; received == 2 {
					_ = m.Respond([]byte(tt.answer))
				}
				// A newer Request may have been stored in between: only the first one replaces any.
				expected := m.Header.Get(jetstream.ExpectedLastSubjSeqHeader)
				if name == "publish" && expected != []string{pending, "0"}[min(received-1, 1)] {
					t.Errorf("message %d has the headers %v", received, m.Header)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = sub.Unsubscribe() }()
			if err := tt.call(); err != nil {
				t.Errorf("sent %d times: %v", received, err)
			}
		})
	}
}

// TestConsumerWaitsForLeader: a process that starts while streams have no leader starts when they have one.
func TestConsumerWaitsForLeader(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	restarted := make(chan error, 1)
	restart := sync.OnceFunc(func() { restarted <- own.Restart() })
	q, err := queue.Connect(t.Context(), queue.Config{URL: own.URLs(0), Replicas: 3, Logger: onLine(func(line string) {
		if strings.Contains(line, "the start waits for the queue") && strings.Contains(line, "setting up the consumer") {
			restart()
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeQueue(t, q) })
	own.Kill("node1")
	own.Kill("node2")
	mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
}

// TestReplicas: without configuration streams get three replicas on a cluster and one elsewhere, also those that exist
// with fewer; a configured number is used as it is. Each change is logged, and no message is lost.
func TestReplicas(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	url := own.URLs(0)
	const increased, reduced = "the replicas of a stream were increased", "the replicas of a stream were reduced"
	start := func(configured, want int, logged string) *queue.Queue {
		t.Helper()
		var mu sync.Mutex
		counts := map[string]int{}
		q, err := queue.Connect(t.Context(), queue.Config{URL: url, Replicas: configured, Logger: onLine(func(line string) {
			mu.Lock()
			defer mu.Unlock()
			for _, text := range []string{increased, reduced} {
				if strings.Contains(line, text) {
					counts[text]++
				}
			}
		})})
		if err != nil {
			t.Fatal(err)
		}
		wantReplicas(t, q, want)
		mu.Lock()
		defer mu.Unlock()
		expected := map[string]int{}
		if logged != "" {
			expected[logged] = len(queue.Streams())
		}
		if !maps.Equal(counts, expected) {
			t.Errorf("configured %d, logged %v, want %v", configured, counts, expected)
		}
		return q
	}
	first := start(1, 1, "")
	mustPublish(t, first, record("S1", "a"))
	closeQueue(t, first)
	closeQueue(t, start(0, 3, increased))
	closeQueue(t, start(0, 3, ""))
	closeQueue(t, start(1, 1, reduced))
	last := start(0, 3, increased)
	defer closeQueue(t, last)
	if got := fetch(t, mustConsumer(t, last, core.ClassRecords, queue.ConsumerConfig{})); len(got) != 1 || got[0].Request().RecordID != "a" {
		t.Errorf("fetched %v", got)
	}
	wantReplicas(t, startServer(t, t.TempDir(), "").connect(t, queue.Config{}), 1)

	// Streams with fewer, as those of a server that has joined a cluster, have three again after the connection was restored.
	nc, js := raw(t, last)
	for _, name := range queue.Streams() {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		cfg := stream.CachedInfo().Config
		cfg.Replicas = 1
		if _, err = js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	wantReplicas(t, last, 1)
	if err := nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three replicas of each stream", func() bool {
		for _, name := range queue.Streams() {
			if stream, err := js.Stream(t.Context(), name); err != nil || stream.CachedInfo().Config.Replicas != 3 {
				return false
			}
		}
		return true
	})
}

// wantReplicas fails when a stream has another number of replicas.
func wantReplicas(t *testing.T, q *queue.Queue, want int) {
	t.Helper()
	_, js := raw(t, q)
	for _, name := range queue.Streams() {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := stream.CachedInfo().Config.Replicas; got != want {
			t.Errorf("%s has %d replicas, want %d", name, got, want)
		}
	}
}
