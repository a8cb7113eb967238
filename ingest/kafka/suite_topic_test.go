package kafka_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/ingest/kafka"
	"tutti/internal/core"
)

// topicSuite holds what must be true on every broker of a topic that changes, and of the others of a group.
func topicSuite(t *testing.T, fresh func(t *testing.T, partitions int32) broker) {
	run := func(name string, partitions int32, test func(*testing.T, broker)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t, partitions))
		})
	}
	run("a topic that is made anew is read from its start", 2, anew)
	run("a commit that comes after a topic was made anew skips nothing", 1, anewBeforeCommit)
	run("messages removed while no reader runs are a gap", 2, gapBeforeStart)
	run("messages removed while a reader is busy are a gap", 1, gapWhileBusy)
	run("a compacted topic has no gap", 0, compacted)
	run("only committed messages are read, and nothing stays behind", 1, transactions)
	run("new partitions are read", 1, newPartitions)
	run("a member that vanished is waited for, which is said", 2, vanished)
}

// observed is a reader's configuration whose log and metrics a test reads.
type observed struct {
	kafka.Config
	reg *prometheus.Registry
	log *lockedBuffer
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// count returns the number of log lines that contain all texts.
func (b *lockedBuffer) count(texts ...string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for line := range strings.Lines(b.text.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			n++
		}
	}
	return n
}

func (b broker) observed() observed {
	o := observed{Config: b.config(), reg: prometheus.NewRegistry(), log: &lockedBuffer{}}
	o.Metrics, o.Logger = kafka.NewMetrics(o.reg), slog.New(slog.NewTextHandler(o.log, nil))
	return o
}

// awaitDown waits until health, the metric and the log say that a topic is not read, for one reason, which is said once.
func (o observed) awaitDown(t *testing.T, r *kafka.Reader, message, hint string) {
	t.Helper()
	var said error
	eventually(t, "health: "+message, func() bool {
		said = r.Health()
		return strings.Contains(core.MessageOf(said), message)
	})
	if core.HintOf(said) != hint || strings.Count(said.Error(), message) != 1 {
		t.Errorf("got %v; %s, want the hint %q", said, core.HintOf(said), hint)
	}
	eventually(t, "the metric", func() bool { return metric(t, o.reg, "tutti_kafka_up") == "0" })
	quoted := strings.Trim(fmt.Sprintf("%q", message), `"`)
	eventually(t, "the log", func() bool { return o.log.count("a Kafka topic is down", quoted) == 1 })
}

// awaitUp waits until all three say that it is read.
func (o observed) awaitUp(t *testing.T, r *kafka.Reader) {
	t.Helper()
	eventually(t, "health", func() bool { return r.Health() == nil })
	eventually(t, "the metric", func() bool { return metric(t, o.reg, "tutti_kafka_up") == "1" })
	eventually(t, "the log", func() bool { return o.log.count("a Kafka topic is up") > 0 })
}

// make makes the topic anew, with other partitions.
func (b broker) make(t *testing.T, partitions int32) {
	t.Helper()
	if _, err := b.admin.DeleteTopic(within(t), b.topic); err != nil {
		t.Fatal(err)
	}
	var made kadm.CreateTopicResponse
	eventually(t, "a new topic", func() bool {
		var err error
		made, err = b.admin.CreateTopic(within(t), partitions, 1, nil, b.topic)
		return err == nil
	})
	eventually(t, "the new topic at the broker", func() bool { // which follows its controller
		topics, err := b.admin.ListTopics(within(t), b.topic)
		return err == nil && topics[b.topic].ID == made.ID
	})
}

func anew(t *testing.T, b broker) {
	want := b.produce(t, 2, numbered("old", 40)...)
	o, h := b.observed(), &handler{}
	start(t, o.Config, h)
	eventually(t, "the old messages", func() bool { return h.holds(want) })
	eventually(t, "the commit", func() bool { return b.committed(t) == 40 })
	for round := range 2 {
		b.make(t, 2)
		want = b.produce(t, 2, numbered(fmt.Sprintf("new%d-", round), 100)...) // more than before: the old offsets are within
		eventually(t, "the new messages", func() bool { return h.holds(want) })
		eventually(t, "the new commit", func() bool { return b.committed(t) == 100 })
		gaps, _, reason := h.missed()
		if reason != fmt.Sprintf("the Kafka topic %q was deleted and made anew", b.topic) || gaps > round+1 {
			t.Errorf("%d gaps, the last one because %q", gaps, reason)
		}
	}
	eventually(t, "no lag", func() bool { return metric(t, o.reg, "tutti_kafka_lag_messages") == "0" })
}

// anewBeforeCommit: the commit of a batch that was read from the former topic is of no offset of the new one.
func anewBeforeCommit(t *testing.T, b broker) {
	b.produce(t, 1, numbered("old", 20)...)
	h := &handler{waiting: make(chan struct{})}
	cfg := b.config()
	cfg.CheckEvery = time.Hour // the client notices nothing by itself
	r := start(t, cfg, h)
	eventually(t, "a batch in hand", func() bool { return h.refused() > 0 })
	b.make(t, 1)
	want := b.produce(t, 1, numbered("new", 50)...)
	close(h.waiting)
	eventually(t, "the old messages", func() bool { return len(h.values()) > 0 })
	stop(t, r)
	again := &handler{}
	start(t, b.config(), again)
	eventually(t, "all messages of the new topic", func() bool {
		both := &handler{taken: append(h.values(), again.values()...)}
		return both.holds(want)
	})
	eventually(t, "the commit", func() bool { return b.committed(t) == 50 })
}

// removeBefore removes what a partition has before an offset, as retention does.
func (b broker) removeBefore(t *testing.T, partition int32, offset int64) {
	t.Helper()
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: b.topic, Partition: partition, At: offset})
	removed, err := b.admin.DeleteRecords(within(t), offsets)
	if err := errors.Join(err, removed.Error()); err != nil {
		t.Fatal(err)
	}
}

func gapBeforeStart(t *testing.T, b broker) {
	first := b.produce(t, 2, numbered("first", 20)...)
	h := &handler{}
	r := start(t, b.config(), h)
	eventually(t, "the first messages", func() bool { return h.holds(first) })
	stop(t, r)
	lost := b.produce(t, 2, numbered("lost", 80)...)
	b.removeBefore(t, 0, 50) // all
	b.removeBefore(t, 1, 30) // half of them
	o, h := b.observed(), &handler{noGap: 2}
	r = start(t, o.Config, h)
	want := []string{}
	for i := 41; i < 80; i += 2 {
		want = append(want, lost[i])
	}
	eventually(t, "what is left", func() bool { return h.holds(want) })
	reason := fmt.Sprintf("the Kafka topic %q removed messages before they were read", b.topic)
	if gaps, offsets, got := h.missed(); gaps != 1 || offsets != 40+20 || got != reason {
		t.Errorf("%d gaps of %d offsets because %q, want one of 60", gaps, offsets, got)
	}
	if got := o.counter(t, "tutti_kafka_missed_offsets_total"); got != 60 {
		t.Errorf("the metric counts %v offsets, want 60", got)
	}
	if n := o.log.count("WARN", "messages of a topic were lost before they were read", "offsets=60"); n != 1 {
		t.Errorf("%d log lines, want 1", n)
	}
	o.awaitUp(t, r)
	eventually(t, "the commit", func() bool { return b.committed(t) == 50+50 })
	stop(t, r)
	again := &handler{}
	start(t, b.config(), again)
	want = b.produce(t, 2, "x", "y")
	eventually(t, "later messages", func() bool { return again.holds(want) })
	if gaps, _, _ := again.missed(); gaps != 0 || len(again.values()) != 2 {
		t.Errorf("after a restart there are %d gaps and %d messages, want the new ones alone", gaps, len(again.values()))
	}
}

func (o observed) counter(t *testing.T, name string) float64 {
	t.Helper()
	families, err := o.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// gapWhileBusy: of more messages than the client reads ahead, what is removed while the handler refuses is a gap, to the offset.
func gapWhileBusy(t *testing.T, b broker) {
	const all = 60
	values := make([]string, all)
	for i := range values {
		random := make([]byte, 900_000) // which no compression makes smaller
		_, _ = rand.Read(random)
		values[i] = string(random)
	}
	for part := range slices.Chunk(values, 10) {
		b.produce(t, 1, part...)
	}
	h := &handler{refuse: func([]string) error { return errRefused }}
	cfg := b.config()
	cfg.BatchMessages = 2
	start(t, cfg, h)
	eventually(t, "a refusal", func() bool { return h.refused() > 0 })
	b.removeBefore(t, 0, all-5)
	h.set(nil)
	eventually(t, "the last messages", func() bool { return b.committed(t) == all })
	_, offsets, reason := h.missed()
	if read := int64(len(h.values())); read+offsets != all || offsets == 0 {
		t.Errorf("%d messages were read and %d offsets were missed of %d, because %q", read, offsets, all, reason)
	}
}

// compacted: a compacted topic has holes, and every one of its keys is read.
func compacted(t *testing.T, b broker) {
	settings := map[string]*string{
		"cleanup.policy": new("compact"), "segment.ms": new("100"), "min.cleanable.dirty.ratio": new("0.01"), "min.compaction.lag.ms": new("0"),
		"delete.retention.ms": new("0"),
	}
	if _, err := b.admin.CreateTopic(within(t), 1, 1, settings, b.topic); err != nil {
		t.Fatal(err)
	}
	client := b.client(t)
	put := func(key, value string) {
		t.Helper()
		if err := client.ProduceSync(within(t), &kgo.Record{Key: []byte(key), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	put("first", "first")
	h := &handler{}
	r := start(t, b.config(), h)
	eventually(t, "the first message", func() bool { return h.holds([]string{"first"}) })
	eventually(t, "the commit", func() bool { return b.committed(t) == 1 })
	stop(t, r)
	var want []string
	for round := range 5 {
		want = want[:0]
		for key := range 10 {
			value := fmt.Sprintf("value %d of %d", round, key)
			put(fmt.Sprint(key), value)
			want = append(want, value)
		}
	}
	end := int64(51)
	eventually(t, "the compaction", func() bool { // which leaves the last segment alone
		put("last", "last")
		end++
		b.compact()
		return len(b.readAll(t, end)) < 30
	})
	h = &handler{}
	o := b.observed()
	r = start(t, o.Config, h)
	eventually(t, "the last values", func() bool { return h.holds(append(want, "last")) })
	eventually(t, "the commit", func() bool { return b.committed(t) == end })
	if gaps, offsets, reason := h.missed(); gaps != 0 {
		t.Errorf("%d gaps of %d offsets, because %q", gaps, offsets, reason)
	}
	o.awaitUp(t, r)
}

// readAll returns the values of partition 0 before an offset.
func (b broker) readAll(t *testing.T, end int64) []string {
	t.Helper()
	client := b.client(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{b.topic: {0: kgo.NewOffset().AtStart()}}))
	defer client.Close()
	var values []string
	for {
		fetches := client.PollFetches(within(t))
		if err := fetches.Err0(); err != nil {
			t.Fatal(err)
		}
		for _, record := range fetches.Records() {
			if values = append(values, string(record.Value)); record.Offset == end-1 {
				return values
			}
		}
	}
}

func transactions(t *testing.T, b broker) {
	client := b.client(t, kgo.TransactionalID(b.topic))
	transact := func(commit kgo.TransactionEndTry, values ...string) {
		t.Helper()
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if err := client.ProduceSync(within(t), &kgo.Record{Value: []byte(v)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.EndTransaction(within(t), commit); err != nil {
			t.Fatal(err)
		}
	}
	transact(kgo.TryCommit, "a", "b")
	transact(kgo.TryAbort, "taken back", "taken back too")
	o, h := b.observed(), &handler{}
	r := start(t, o.Config, h)
	transact(kgo.TryCommit, "c")
	transact(kgo.TryAbort, "taken back again")
	eventually(t, "the commit of all but nothing of the last transaction", func() bool { return b.committed(t) == 2+1+2+1+1+1+1+1 })
	if got := h.values(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %q", got)
	}
	eventually(t, "no lag", func() bool { return metric(t, o.reg, "tutti_kafka_lag_messages") == "0" })
	o.awaitUp(t, r)
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(within(t), &kgo.Record{Value: []byte("open")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	b.produce(t, 1, "behind an open transaction")
	stop(t, r)
	if got := h.values(); len(got) != 3 {
		t.Errorf("of an open transaction %q was read", got[3:])
	}
	if err := client.EndTransaction(within(t), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	h = &handler{}
	start(t, b.config(), h)
	eventually(t, "what follows", func() bool { return slices.Equal(h.values(), []string{"behind an open transaction"}) })
}

func newPartitions(t *testing.T, b broker) {
	want := b.produce(t, 1, "a", "b")
	h := &handler{}
	start(t, b.config(), h)
	eventually(t, "the first messages", func() bool { return h.holds(want) })
	if _, err := b.admin.UpdatePartitions(within(t), 4, b.topic); err != nil {
		t.Fatal(err)
	}
	// A broker answers before its own metadata names the new partitions; a producer that sees too few of them refuses a record.
	eventually(t, "the new partitions", func() bool {
		topics, err := b.admin.ListTopics(within(t), b.topic)
		return err == nil && len(topics[b.topic].Partitions) == 4
	})
	want = b.produce(t, 4, numbered("more", 40)...)
	eventually(t, "the messages on new partitions", func() bool { return h.holds(want) })
}

// member is another client of the group, which can vanish: without a word, as a killed process does.
type member struct {
	*kgo.Client
	mu    sync.Mutex
	gone  bool
	conns []net.Conn
}

func (b broker) member(t *testing.T, opts ...kgo.Opt) *member {
	t.Helper()
	m := &member{}
	m.Client = b.client(t, append([]kgo.Opt{
		kgo.ConsumerGroup(b.group), kgo.ConsumeTopics(b.topic), kgo.DisableAutoCommit(), kgo.SessionTimeout(3 * time.Second),
		kgo.HeartbeatInterval(300 * time.Millisecond), kgo.MetadataMinAge(100 * time.Millisecond), kgo.Dialer(m.dial), kgo.RetryTimeout(time.Second),
	}, opts...)...)
	return m
}

func (m *member) dial(ctx context.Context, network, address string) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return nil, net.ErrClosed
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		m.conns = append(m.conns, conn)
	}
	return conn, err
}

func (m *member) vanish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = true
	for _, conn := range m.conns {
		_ = conn.Close()
	}
}

func vanished(t *testing.T, b broker) {
	want := b.produce(t, 2, numbered("v", 20)...)
	m := b.member(t)
	if fetches := m.PollFetches(within(t)); fetches.Err0() != nil {
		t.Fatal(fetches.Err0())
	}
	m.vanish()
	o, h := b.observed(), &handler{}
	r := start(t, o.Config, h)
	o.awaitDown(t, r, fmt.Sprintf("the Kafka consumer group %q has not assigned the partitions", b.group),
		fmt.Sprintf("the group waits up to %s for a process that ended without leaving it, and up to %s for one that is busy", o.SessionTimeout, o.RebalanceTimeout))
	if n := o.log.count("WARN", "has not assigned"); n != 0 {
		t.Errorf("%d warnings of a wait that is normal", n)
	}
	eventually(t, "the messages", func() bool { return h.holds(want) })
	o.awaitUp(t, r)
}

// freshTopic returns a broker's next topic, with a group of its own; it is not created without partitions.
func freshTopic(t *testing.T, addresses []string, partitions int32) broker {
	t.Helper()
	name := "test-" + uuid.NewString()
	b := newBroker(t, addresses, name, name)
	if partitions > 0 {
		if _, err := b.admin.CreateTopic(within(t), partitions, 1, nil, b.topic); err != nil {
			t.Fatal(err)
		}
	}
	return b
}
