package together

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/queue/natsconn"
	"tutti/internal/tools/queuetest"
)

// dial returns a connection that ends with the test.
func dial(t *testing.T, url string) *natsconn.Conn {
	t.Helper()
	c, err := natsconn.Dial(t.Context(), natsconn.ConnConfig{URL: url, StartTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Disconnect(context.WithoutCancel(t.Context())) })
	return c
}

// batchOf returns messages as they wait, each of another subject.
func batchOf(t *testing.T, n int) []*batched {
	t.Helper()
	group := make([]*batched, n)
	for i := range group {
		group[i] = &batched{ctx: t.Context(), message: &nats.Msg{Subject: fmt.Sprintf("s.%d", i)}, stored: make(chan outcome, 1)}
	}
	return group
}

// TestBatchesCallers: a caller that goes while its message waits has it withdrawn. One whose message is on its way waits for the outcome: what it sends
// then would be stored first. Of several messages of a subject the later ones wait.
func TestBatchesCallers(t *testing.T) {
	var work sync.WaitGroup
	b := New(dial(t, queuetest.ServePlain(t)), &work, nil)
	b.flights = maxFlights // two others
	const callers = 20
	// store stores a message of each caller, and returns the outcomes and what ends the contexts.
	store := func() (outcomes chan error, leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		outcomes = make(chan error, callers)
		for i := range callers {
			go func() {
				_, err := b.Store(ctx, &nats.Msg{Subject: fmt.Sprintf("s.%d", i)})
				outcomes <- err
			}()
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
		one.stored <- outcome{}
	}
	for range callers {
		if err := <-outcomes; err != nil {
			t.Errorf("a caller whose message is stored got %v", err)
		}
	}
}

// TestBatchesReplace: each message that replaces another one expects the newest that is remembered, also that of a batch. Of those that wait for
// one subject the last is sent, for all callers, also if its own has gone; they wait while one of their subject is on its way. The server is asked
// once for all of them if another one is there.
func TestBatchesReplace(t *testing.T) {
	c := dial(t, queuetest.Serve(t, t.TempDir(), "").ClientURL())
	stream, err := c.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, AllowAtomicPublish: true})
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	var asked atomic.Int32
	b := New(c, &work, func(ctx context.Context, subject string) (uint64, error) {
		asked.Add(1)
		last, err := stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return 0, nil
		}
		return last.Sequence, err
	})
	m := func(subject, data string) *nats.Msg { return &nats.Msg{Subject: subject, Data: []byte(data)} }
	replace := func(want Stored) {
		t.Helper()
		got, err := b.Replace(t.Context(), m("s.0", ""))
		if err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
		if b.flying["s.0"] != (got.Replaced > 0) {
			t.Errorf("after %+v further messages wait: %v", got, b.flying["s.0"])
		}
		b.Removed("s.0")
	}
	replace(Stored{Sequence: 1})
	replace(Stored{Sequence: 2, Replaced: 1})
	b.Forget("s.0", 1) // not the newest
	replace(Stored{Sequence: 3, Replaced: 2})
	b.Remember("s.0", 2) // not the newest

	for _, want := range []Stored{{Sequence: 4}, {}} { // the server knows its id
		one := m("s.stored", "")
		one.Header = nats.Header{jetstream.MsgIDHeader: {"1"}}
		if got, err := b.Store(t.Context(), one); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}

	b.flights, b.flying["s.0"] = maxFlights-1, true // two others
	outcomes := make(chan error, 3*maxBatch)
	results := make(chan Stored, 3*maxBatch)
	wait := func(ctx context.Context, one *nats.Msg) {
		before := len(b.waiting)
		go func() {
			got, err := b.Replace(ctx, one)
			results <- got
			outcomes <- err
		}()
		for waits := before; waits == before; time.Sleep(time.Millisecond) {
			b.mu.Lock()
			waits = len(b.waiting)
			b.mu.Unlock()
		}
	}
	for i := range minBatch {
		for _, data := range []string{"first", "second", "last"} {
			wait(t.Context(), m(fmt.Sprintf("s.%d", i), data))
			b.mu.Lock()
			b.flights = maxFlights
			b.mu.Unlock()
		}
	}
	b.mu.Lock()
	group := b.take()
	if len(group) != minBatch-1 || len(b.waiting) != 3 {
		t.Errorf("%d are taken and %d wait, of which none is on its way", len(group), len(b.waiting))
	}
	delete(b.flying, "s.0")
	group = append(b.take(), group...)
	b.depart(group...)
	b.mu.Unlock()
	b.fly(group)
	sent := map[Stored]int{}
	for range 3 * minBatch {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
		sent[<-results]++
	}
	want := map[Stored]int{{}: 2 * minBatch, {Sequence: 5, Replaced: 3}: 1}
	for i := range minBatch - 1 {
		want[Stored{Sequence: uint64(6 + i)}] = 1
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	stored, err := stream.GetMsg(t.Context(), 5)
	if err != nil || stored.Subject != "s.0" || string(stored.Data) != "last" || stored.Header.Get(headerBatchID) == "" {
		t.Errorf("stored is %+v, %v", stored, err)
	}

	b.flights = 0
	clear(b.flying)
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("s.0")); err != nil { // by another process
		t.Fatal(err)
	}
	replace(Stored{Sequence: 5 + minBatch, Asked: true})
	b.Forget("s.0", 5+minBatch)
	replace(Stored{Sequence: 6 + minBatch, Replaced: 5 + minBatch, Asked: true})

	b.Forget("s.0", 6+minBatch) // as if another process had published
	asked.Store(0)
	b.flights = maxFlights
	ctx, leave := context.WithCancel(t.Context())
	for range maxBatch - 1 {
		wait(t.Context(), m("s.0", "earlier"))
	}
	wait(ctx, m("s.0", "last"))
	b.mu.Lock()
	group = b.depart(b.take()...)
	b.mu.Unlock()
	leave()
	b.fly(group)
	for range maxBatch {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
		<-results
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times for %d callers", n, maxBatch)
	}
	stored, err = stream.GetLastMsgForSubject(t.Context(), "s.0")
	if err != nil || stored.Sequence != 7+minBatch || string(stored.Data) != "last" {
		t.Errorf("stored is %+v, %v", stored, err)
	}

	clear(b.newest) // as after a start
	clear(b.flying)
	for i := range 2 * minBatch {
		wait(t.Context(), m(fmt.Sprintf("s.%d", i), ""))
	}
	b.mu.Lock()
	group = b.depart(b.take()...)
	b.mu.Unlock()
	b.fly(group)
	for i := range 2 * minBatch {
		if got, err := <-results, <-outcomes; err != nil || !got.Asked {
			t.Errorf("%+v, %v", got, err)
		}
		last, err := stream.GetLastMsgForSubject(t.Context(), fmt.Sprintf("s.%d", i))
		if err != nil || last.Header.Get(headerBatchID) == "" {
			t.Errorf("%d is stored by itself: %v", i, err)
		}
	}

	for i := range maxNewest + 1 {
		b.Remember(fmt.Sprint(i), 1)
	}
	if n := len(b.newest); n > maxNewest {
		t.Errorf("%d subjects are remembered", n)
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
			c := dial(t, queuetest.ServePlain(t))
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
			New(c, nil, nil).fly(group)
			for _, one := range group {
				got := <-one.stored
				err := got.err
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
