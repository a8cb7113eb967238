package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/ingest/kafka"
	"tutti/ingest/kafka/connection"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// patience bounds every wait of a test for something that must come.
const patience = testkit.HangLimit

// within returns a context for something that must come: without an end, one that does not come is known only by the time limit of all tests.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until a condition holds, looking again and again.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it does not come", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// handler is a Handler that notes what it takes, and may be told to refuse.
type handler struct {
	mu       sync.Mutex
	taken    []string            // values as they were taken
	messages []core.TopicMessage // the same messages without their values
	tries    int
	refuse   func(values []string) error
	waiting  chan struct{} // while set, Handle waits for it to be closed or its ctx to end
	gaps     []core.TopicGap
	noGap    int // how many gaps are refused
}

func (h *handler) Missed(_ context.Context, gap core.TopicGap) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noGap--; h.noGap >= 0 {
		return errRefused
	}
	h.gaps = append(h.gaps, gap)
	return nil
}

// missed returns the number of gaps, the offsets of all, and the reason of the last one.
func (h *handler) missed() (gaps int, offsets int64, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.gaps {
		offsets, reason = offsets+g.Offsets, g.Reason
	}
	return len(h.gaps), offsets, reason
}

var errRefused = core.NewError(core.CodeOverloaded, "the queue is full")

func (h *handler) Handle(ctx context.Context, messages []core.TopicMessage) error {
	batch := make([]string, len(messages))
	for i, m := range messages {
		if batch[i] = string(m.Value); m.Value == nil {
			batch[i] = "tombstone"
		}
	}
	h.mu.Lock()
	h.tries++
	refuse, waiting := h.refuse, h.waiting
	h.mu.Unlock()
	if waiting != nil {
		select {
		case <-waiting:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if refuse != nil {
		if err := refuse(batch); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken = append(h.taken, batch...)
	for _, m := range messages {
		m.Value = nil // its bytes must not be used after the call
		h.messages = append(h.messages, m)
	}
	return nil
}

func (h *handler) set(refuse func([]string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuse = refuse
}

func (h *handler) refused() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tries
}

func (h *handler) values() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.taken)
}

// holds reports whether each wanted value was taken at least once.
func (h *handler) holds(want []string) bool {
	got := map[string]bool{}
	for _, v := range h.values() {
		got[v] = true
	}
	return !slices.ContainsFunc(want, func(v string) bool { return !got[v] })
}

// broker is what the suite runs on: a topic of its own on some broker.
type broker struct {
	addresses []string
	topic     string
	group     string
	// compact compacts topics at once, where the broker does not do so by itself.
	compact func()
	// admin is one client for all that a test asks: with one for each question, a broker runs out of sockets and files.
	admin *kadm.Client
}

func newBroker(t *testing.T, addresses []string, topic, group string) broker {
	t.Helper()
	b := broker{addresses: addresses, topic: topic, group: group}
	b.admin = kadm.NewClient(b.client(t))
	return b
}

func (b broker) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.addresses...), kgo.DefaultProduceTopic(b.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.DisableClientMetrics(),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// produce puts values on the topic, in turn on its partitions, and returns them back.
func (b broker) produce(t *testing.T, partitions int32, values ...string) []string {
	t.Helper()
	client := b.client(t)
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Value: []byte(v), Partition: int32(i) % partitions}
		if v == "tombstone" {
			records[i].Value = nil
		}
	}
	if err := client.ProduceSync(within(t), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return values
}

func numbered(prefix string, n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = prefix + strconv.Itoa(i)
	}
	return values
}

// committed returns the sum of the group's committed offsets, which is the number of messages before them.
func (b broker) committed(t *testing.T) int64 {
	t.Helper()
	offsets, err := b.admin.FetchOffsets(within(t), b.group)
	if err != nil {
		return -1
	}
	var sum int64
	offsets.Each(func(o kadm.OffsetResponse) { sum += max(0, o.At) })
	return sum
}

func (b broker) config() kafka.Config {
	return kafka.Config{
		Connection: connection.Config{Brokers: b.addresses}, Topic: b.topic, Group: b.group, RetryMin: 10 * time.Millisecond,
		RetryMax: 100 * time.Millisecond, CheckEvery: 100 * time.Millisecond, CommitTimeout: 2 * time.Second,
		SessionTimeout: 3 * time.Second, RebalanceTimeout: 20 * time.Second, HandleTimeout: 10 * time.Second,
	}
}

// start runs a Reader, which is stopped when the test ends.
func start(t *testing.T, cfg kafka.Config, h kafka.Handler) *kafka.Reader {
	t.Helper()
	r, err := kafka.New(cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, r) })
	return r
}

func stop(t *testing.T, r *kafka.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Stop(ctx); err != nil {
		t.Errorf("stopping: %v", err)
	}
}

// suite holds what must be true on every broker. fresh returns a new topic with a number of partitions.
func suite(t *testing.T, fresh func(t *testing.T, partitions int32) broker) {
	t.Run("a new group begins with the oldest message", func(t *testing.T) {
		b := fresh(t, 3)
		want := b.produce(t, 3, numbered("old", 30)...)
		h := &handler{}
		start(t, b.config(), h)
		eventually(t, "the old messages", func() bool { return h.holds(want) })
		want = b.produce(t, 3, numbered("new", 30)...)
		eventually(t, "the new messages", func() bool { return h.holds(want) })
		eventually(t, "the commit", func() bool { return b.committed(t) == 60 })
		if got := len(h.values()); got != 60 {
			t.Errorf("%d messages were taken, want each once", got)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		const first = "partition 0, offset 0"
		if !slices.ContainsFunc(h.messages, func(m core.TopicMessage) bool { return m.Position() == first }) {
			t.Errorf("no message is of %s", first)
		}
	})
	t.Run("a message has the time at which it was written, and its trace", func(t *testing.T) {
		b := fresh(t, 1)
		want := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
		headers := []kgo.RecordHeader{{Key: "other", Value: []byte("o")}, {Key: "traceparent", Value: []byte("p")}}
		if err := b.client(t).ProduceSync(within(t), &kgo.Record{Value: []byte("a"), Timestamp: want, Headers: headers}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		h := &handler{}
		start(t, b.config(), h)
		eventually(t, "the message", func() bool { return h.holds([]string{"a"}) })
		h.mu.Lock()
		defer h.mu.Unlock()
		if got := h.messages[0]; !got.At.Equal(want) || got.Traceparent != "p" {
			t.Errorf("got %+v, want the time %s and the traceparent p", got, want)
		}
	})
	t.Run("a tombstone has no value", func(t *testing.T) {
		b := fresh(t, 1)
		b.produce(t, 1, "a", "tombstone", "b")
		h := &handler{}
		start(t, b.config(), h)
		eventually(t, "all", func() bool { return len(h.values()) == 3 })
		if got := h.values(); !slices.Equal(got, []string{"a", "tombstone", "b"}) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("nothing is committed that was refused", func(t *testing.T) { refusedIsNotCommitted(t, fresh(t, 2)) })
	t.Run("what there is no room for at once is taken in parts", func(t *testing.T) { inParts(t, fresh(t, 2)) })
	t.Run("a restart goes on where the last commit was", func(t *testing.T) { restart(t, fresh(t, 2)) })
	t.Run("what was taken but not committed comes again", func(t *testing.T) { crash(t, fresh(t, 1)) })
	t.Run("two readers share and lose nothing", func(t *testing.T) { rebalance(t, fresh(t, 6)) })
	t.Run("a refused batch is not in the way of a rebalance", func(t *testing.T) { refusedRebalance(t, fresh(t, 2)) })
	t.Run("a topic that is missing is told and then read", func(t *testing.T) { missingTopic(t, fresh(t, 1)) })
	t.Run("a stop ends and commits the batch in hand", func(t *testing.T) { stopCommits(t, fresh(t, 1)) })
	topicSuite(t, fresh)
	takeover(t, fresh)
}

func refusedIsNotCommitted(t *testing.T, b broker) {
	want := b.produce(t, 2, numbered("v", 20)...)
	h := &handler{refuse: func([]string) error { return errRefused }}
	r := start(t, b.config(), h)
	eventually(t, "several tries", func() bool { return h.refused() >= 3 })
	if n := b.committed(t); n != 0 {
		t.Errorf("%d messages are committed although none was taken", n)
	}
	eventually(t, "health", func() bool { return r.Health() == nil })
	h.set(nil)
	eventually(t, "all", func() bool { return h.holds(want) })
	eventually(t, "the commit", func() bool { return b.committed(t) == 20 })
}

// inParts: a handler with room for a few messages at a time takes all of them, in the order of each partition.
func inParts(t *testing.T, b broker) {
	want := b.produce(t, 2, numbered("v", 200)...)
	h := &handler{refuse: func(values []string) error {
		if len(values) > 7 {
			return errRefused
		}
		return nil
	}}
	start(t, b.config(), h)
	eventually(t, "all", func() bool { return h.holds(want) })
	eventually(t, "the commit", func() bool { return b.committed(t) == 200 })
	if n := len(h.values()); n != 200 {
		t.Errorf("%d messages were taken, want 200", n)
	}
}

func restart(t *testing.T, b broker) {
	first := b.produce(t, 2, numbered("first", 20)...)
	h := &handler{}
	r := start(t, b.config(), h)
	eventually(t, "the first messages", func() bool { return h.holds(first) })
	stop(t, r)
	if n := b.committed(t); n != 20 {
		t.Errorf("%d messages are committed after the stop, want 20", n)
	}
	if err := r.Health(); core.CodeOf(err) != core.CodeUnavailable || err.Error() != "the Kafka reader is not running" {
		t.Errorf("health after the stop: %v", err)
	}
	second := b.produce(t, 2, numbered("second", 20)...)
	h = &handler{}
	start(t, b.config(), h)
	eventually(t, "the second messages", func() bool { return h.holds(second) })
	if got := len(h.values()); got != 20 {
		t.Errorf("%d messages were taken after the restart, want the second 20 alone: %v", got, h.values())
	}
}

// crash ends a Reader between the handler's success and the commit: its Handler ends the process, as it were, by a stop
// that leaves no time for anything.
func crash(t *testing.T, b broker) {
	want := b.produce(t, 1, numbered("v", 10)...)
	taken := make(chan struct{})
	h := &handler{refuse: func([]string) error { return nil }}
	dying := handlerFunc(func(ctx context.Context, messages []core.TopicMessage) error {
		if err := h.Handle(ctx, messages); err != nil {
			return err
		}
		close(taken)
		<-ctx.Done() // the process is gone before anybody hears of the success
		return ctx.Err()
	})
	r, err := kafka.New(b.config(), dying)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-taken
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Stop(gone); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("a stop without time gave %v", err)
	}
	if n := b.committed(t); n != 0 {
		t.Fatalf("%d messages are committed", n)
	}
	again := &handler{}
	start(t, b.config(), again)
	eventually(t, "the messages again", func() bool { return again.holds(want) })
}

type handlerFunc func(context.Context, []core.TopicMessage) error

func (f handlerFunc) Missed(context.Context, core.TopicGap) error { return nil }

func (f handlerFunc) Handle(ctx context.Context, messages []core.TopicMessage) error {
	return f(ctx, messages)
}

func rebalance(t *testing.T, b broker) {
	one, two := &handler{}, &handler{}
	cfg := b.config()
	cfg.BatchMessages = 7
	start(t, cfg, one)
	var want []string
	want = append(want, b.produce(t, 6, numbered("before", 120)...)...)
	eventually(t, "the first reader", func() bool { return len(one.values()) > 0 })
	second := start(t, cfg, two)
	for i := range 20 {
		want = append(want, b.produce(t, 6, numbered(fmt.Sprintf("during%d-", i), 30)...)...)
	}
	eventually(t, "a share of the second reader", func() bool {
		want = append(want, b.produce(t, 6, numbered(fmt.Sprintf("more%d-", len(want)), 6)...)...)
		return len(two.values()) > 0
	})
	stop(t, second)
	want = append(want, b.produce(t, 6, numbered("after", 60)...)...)
	all := func() bool {
		both := &handler{taken: append(one.values(), two.values()...)}
		return both.holds(want)
	}
	eventually(t, "everything", all)
	eventually(t, "every commit", func() bool { return b.committed(t) == int64(len(want)) })
}

func refusedRebalance(t *testing.T, b broker) {
	want := b.produce(t, 2, numbered("v", 20)...)
	refusing := &handler{refuse: func([]string) error { return errRefused }}
	start(t, b.config(), refusing)
	eventually(t, "a refusal", func() bool { return refusing.refused() > 0 })
	taking := &handler{}
	start(t, b.config(), taking)
	eventually(t, "a partition for the second reader", func() bool { return len(taking.values()) > 0 })
	refusing.set(nil)
	eventually(t, "the rest", func() bool {
		both := &handler{taken: append(refusing.values(), taking.values()...)}
		return both.holds(want)
	})
	eventually(t, "the commit", func() bool { return b.committed(t) == 20 })
}

func missingTopic(t *testing.T, b broker) {
	b.topic += "-later"
	h := &handler{}
	r := start(t, b.config(), h)
	want := fmt.Sprintf("the Kafka topic %q does not exist", b.topic)
	eventually(t, "the fault", func() bool { return core.MessageOf(r.Health()) == want })
	const hint = "create the topic, or fix its name in the configuration; reading starts as soon as it exists"
	if got := core.HintOf(r.Health()); got != hint {
		t.Errorf("the hint is %q", got)
	}
	if _, err := b.admin.CreateTopic(within(t), 1, 1, nil, b.topic); err != nil {
		t.Fatal(err)
	}
	values := b.produce(t, 1, "a", "b")
	eventually(t, "the messages", func() bool { return h.holds(values) })
	eventually(t, "health", func() bool { return r.Health() == nil })
}

func stopCommits(t *testing.T, b broker) {
	b.produce(t, 1, numbered("v", 5)...)
	h := &handler{waiting: make(chan struct{})}
	r := start(t, b.config(), h)
	eventually(t, "a batch in hand", func() bool { return h.refused() > 0 })
	stopped := make(chan error, 1)
	go func() { stopped <- r.Stop(context.WithoutCancel(t.Context())) }()
	select {
	case err := <-stopped:
		t.Fatalf("the stop did not wait for the batch in hand: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(h.waiting)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if n, taken := b.committed(t), len(h.values()); n == 0 || n != int64(taken) {
		t.Errorf("%d messages are committed, %d were taken", n, taken)
	}
	if err := r.Start(t.Context()); core.CodeOf(err) != core.CodeConflict {
		t.Errorf("starting again gave %v", err)
	}
	if err := r.Stop(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("stopping again gave %v", err)
	}
}
