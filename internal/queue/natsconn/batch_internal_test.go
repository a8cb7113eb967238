package natsconn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// batchOf returns messages as they wait, each of another subject.
func batchOf(t *testing.T, n int) []*batched {
	t.Helper()
	group := make([]*batched, n)
	for i := range group {
		group[i] = &batched{t.Context(), &nats.Msg{Subject: fmt.Sprintf("s.%d", i)}, make(chan error, 1)}
	}
	return group
}

// TestBatchesCallers: a caller that goes while its message waits has it withdrawn. One whose message is on its way waits for the outcome: what it sends
// then would be stored first. Of several messages of a subject the later ones wait.
func TestBatchesCallers(t *testing.T) {
	var work sync.WaitGroup
	b := NewBatches(dialPlain(t, slog.New(slog.DiscardHandler)), &work)
	b.flights = maxFlights // two others
	const callers = 20
	// store stores a message of each caller, and returns the outcomes and what ends the contexts.
	store := func() (outcomes chan error, leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		outcomes = make(chan error, callers)
		for i := range callers {
			go func() { outcomes <- b.Store(ctx, &nats.Msg{Subject: fmt.Sprintf("s.%d", i)}) }()
		}
		for waits := 0; waits < callers; time.Sleep(time.Millisecond) {
			b.mu.Lock()
			waits = len(b.waiting)
			b.mu.Unlock()
		}
		return outcomes, cancel
	}

	gone, leave := store()
	leave()
	for range callers {
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller whose message waits got %v", err)
		}
	}
	if len(b.waiting) > 0 {
		t.Fatalf("%d messages of callers that have gone still wait", len(b.waiting))
	}

	outcomes, leave := store()
	second := batchOf(t, 1)[0]
	b.mu.Lock()
	b.waiting = append(b.waiting, second)
	group := b.take()
	left := slices.Clone(b.waiting)
	b.mu.Unlock()
	if len(group) != callers || len(left) != 1 || left[0] != second {
		t.Errorf("%d messages were taken, %d are left", len(group), len(left))
	}
	leave()
	for _, one := range group {
		one.stored <- nil
	}
	for range callers {
		if err := <-outcomes; err != nil {
			t.Errorf("a caller whose message is stored got %v", err)
		}
	}
}

// TestBatchesAnswers: the messages of a batch are stored only if the server says so of the batch. Otherwise each is sent by itself, and its caller gets
// its own outcome.
func TestBatchesAnswers(t *testing.T) {
	const ack = `"stream":"S","seq":1`
	for name, tt := range map[string]struct {
		// answer is the server's answer to a batch, with the id of the batch for ID. Without one there is no stream.
		answer string
		alone  bool
		stored bool
	}{
		"stored":             {`{` + ack + `,"batch":"ID","count":8}`, false, true},
		"refused":            {`{` + ack + `,"error":{"code":400,"err_code":10176,"description":"incomplete"}}`, true, true},
		"one by one":         {`{` + ack + `}`, true, true},
		"of another batch":   {`{` + ack + `,"batch":"other","count":8}`, true, true},
		"there is no stream": {"", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dialPlain(t, slog.New(slog.DiscardHandler))
			var mu sync.Mutex
			alone := map[string]bool{}
			if tt.answer != "" {
				if _, err := c.NC.Subscribe("s.>", func(m *nats.Msg) {
					answer := strings.Replace(tt.answer, "ID", m.Header.Get(headerBatchID), 1)
					if m.Header.Get(headerBatchID) == "" {
						answer = `{` + ack + `}`
						mu.Lock()
						alone[m.Subject] = true
						mu.Unlock()
					}
					if m.Reply != "" {
						_ = m.Respond([]byte(answer))
					}
				}); err != nil {
					t.Fatal(err)
				}
			}
			group := batchOf(t, minBatch)
			NewBatches(c, nil).fly(group)
			for _, one := range group {
				err := <-one.stored
				if (err == nil) != tt.stored || err != nil && !errors.Is(err, jetstream.ErrNoStreamResponse) {
					t.Errorf("%s: %v", one.message.Subject, err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if (len(alone) == minBatch) != tt.alone {
				t.Errorf("%d messages were sent by themselves", len(alone))
			}
		})
	}
}
