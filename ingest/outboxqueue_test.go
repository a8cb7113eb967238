package ingest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tutti/ingest"
	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
)

// TestRelayOnTheQueue sends through a real queue: every change arrives, and one that was sent twice arrives once.
func TestRelayOnTheQueue(t *testing.T) {
	ctx := t.Context()
	server, err := embedded.Start(ctx, embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	q, err := queue.ConnectInProcess(ctx, server, queue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := q.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	s, err := ingest.New([]core.Repository{{Code: "local", Type: core.TypeLocal, IndexName: "analyses"}}, q, q.Jobs(), q.Cells(),
		ingest.Config{Batches: q, DeadLetters: q.DeadLetters(), DeadLetterIndex: q.DeadLetters()})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := q.Consumer(ctx, "local", core.ClassRecords, queue.ConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	const changes = 100
	o := newOutboxFake()
	sentTwice := make(chan struct{})
	marks := 0
	o.mark = func() error {
		if marks++; marks == 1 {
			return core.NewError(core.CodeUnavailable, "the store does not answer")
		}
		close(sentTwice)
		return nil
	}
	for i := range changes {
		o.commit(false, fmt.Sprintf("c%d S/A%d", i, i))
	}
	r, err := ingest.NewRelay(s, o, "local", ingest.RelayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	r.Start()
	seen := map[string]int{}
	take := func(wait time.Duration) int {
		messages, err := consumer.Fetch(ctx, changes, 1<<20, wait)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			seen[m.Request().ID]++
			if err := m.Ack(ctx); err != nil {
				t.Error(err)
			}
		}
		return len(messages)
	}
	<-sentTwice
	for len(seen) < changes {
		take(5 * time.Second)
	}
	if n := take(50 * time.Millisecond); n != 0 {
		t.Errorf("%d more messages after every change had arrived", n)
	}
	if err := r.Stop(ctx); err != nil {
		t.Error(err)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s arrived %d times", id, n)
		}
	}
	if left := o.left(); len(left) > 0 {
		t.Errorf("left in the outbox: %v", left)
	}
}
