package consumers_test

import (
	"context"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
)

// stream is a queue with one durable consumer.
type stream interface {
	Publish(ctx context.Context, r core.Request) error
	Fetch(ctx context.Context, most, bytes int, wait time.Duration) ([]core.Message, error)
}

// TestBrokerAsServer: the test broker and the server react alike to acknowledgements of deliveries that are not the last.
func TestBrokerAsServer(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) stream{"broker": startBroker, "server": startQueue} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			publish := func(id string) {
				t.Helper()
				r := core.Request{
					ID: id, Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: "song", Organization: "A", RecordID: "A-0000",
					Cause: core.CauseREST, ReceivedAt: time.Now(),
				}
				if err := s.Publish(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			delivered := func(id string, delivery int) core.Message {
				t.Helper()
				got, err := s.Fetch(t.Context(), 10, 0, 10*time.Second)
				if err != nil || len(got) != 1 || got[0].Request().ID != id || got[0].Deliveries() != delivery {
					t.Fatalf("got %v (%v), want delivery %d of %s", got, err, delivery, id)
				}
				return got[0]
			}
			none := func() {
				t.Helper()
				if got, err := s.Fetch(t.Context(), 10, 0, 20*time.Millisecond); err != nil || len(got) > 0 {
					t.Fatalf("got %v (%v), want nothing", got, err)
				}
			}
			nak := func(m core.Message) {
				t.Helper()
				if err := m.Nak(0); err != nil {
					t.Fatal(err)
				}
			}
			ack := func(m core.Message) {
				t.Helper()
				if err := m.Ack(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			publish("one")
			first := delivered("one", 1)
			none()
			nak(first)
			second := delivered("one", 2)
			nak(first) // of a delivery that is not the last: it counts
			third := delivered("one", 3)
			ack(second)
			nak(third)
			none()

			publish("two")
			older := delivered("two", 1)
			publish("three")
			nak(older)
			newer := delivered("three", 1)
			ack(older)
			nak(newer)
			ack(delivered("three", 2))
			none()
		})
	}
}

// brokerStream is the broker as one process has it.
type brokerStream struct {
	requestPort
	sourcePort
}

func startBroker(t *testing.T) stream {
	w := newWorld(t)
	p := &process{w: w, gone: make(chan struct{})}
	p.steps.Store(-1)
	return brokerStream{requestPort{p}, sourcePort{p, "song", core.ClassRecords}}
}

// queueStream is a server in this process.
type queueStream struct {
	*queue.Queue
	*queue.Consumer
}

func startQueue(t *testing.T) stream {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	stopped := func(what string, stop func(context.Context) error) {
		if err := stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("stopping the %s: %v", what, err)
		}
	}
	t.Cleanup(func() { stopped("server", server.Stop) })
	q, err := queue.ConnectInProcess(t.Context(), server, queue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopped("queue", q.Close) })
	c, err := q.Consumer(t.Context(), "song", core.ClassRecords, queue.ConsumerConfig{AckWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return queueStream{q, c}
}
