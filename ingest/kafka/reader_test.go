package kafka_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tutti/ingest/kafka"
	"tutti/ingest/kafka/connection"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

const topic = "song-analysis"

func fake(t *testing.T, partitions int32, opts ...kfake.Opt) (*kfake.Cluster, broker) {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic), kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster, newBroker(t, cluster.ListenAddrs(), topic, "tutti")
}

func TestReader(t *testing.T) {
	t.Parallel()
	suite(t, func(t *testing.T, partitions int32) broker {
		cluster, b := fake(t, max(1, partitions))
		if partitions == 0 {
			b.topic += "-later"
		}
		b.compact = cluster.Compact
		return b
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := kafka.Config{Connection: connection.Config{Brokers: []string{"127.0.0.1:1"}}, Topic: "t", Group: "g"}
	for name, tt := range map[string]struct {
		change  func(*kafka.Config)
		message string
	}{
		"no broker":      {func(c *kafka.Config) { c.Connection.Brokers = nil }, "the address of a broker"},
		"no topic":       {func(c *kafka.Config) { c.Topic = "" }, "needs a topic"},
		"no group":       {func(c *kafka.Config) { c.Group = "" }, "needs a consumer group"},
		"negative batch": {func(c *kafka.Config) { c.BatchMessages = -1 }, "must not be negative"},
		"negative pause": {func(c *kafka.Config) { c.RetryMin = -1 }, "must not be negative"},
		"bad address":    {func(c *kafka.Config) { c.Connection.Brokers = []string{"host:port"} }, "are not valid"},
		"slow handler":   {func(c *kafka.Config) { c.HandleTimeout = time.Minute }, "must not exceed its rebalance timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			tt.change(&cfg)
			_, err := kafka.New(cfg, &handler{})
			if core.CodeOf(err) != core.CodeInvalid || !strings.Contains(core.MessageOf(err), tt.message) {
				t.Errorf("got %v, want CodeInvalid with %q", err, tt.message)
			}
		})
	}
	r, err := kafka.New(good, &handler{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Health(); core.MessageOf(err) != "the Kafka reader is not running" {
		t.Errorf("health before the start: %v", err)
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Errorf("stopping what does not run: %v", err)
	}
}

// refuseCommits makes a cluster refuse the first commits of offsets, n of them.
func refuseCommits(cluster *kfake.Cluster, n int) {
	refusals := 0
	cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if refusals++; refusals > n {
			return nil, nil, false
		}
		commit := req.(*kmsg.OffsetCommitRequest)
		resp := commit.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, rt := range commit.Topics {
			st := kmsg.NewOffsetCommitResponseTopic()
			st.Topic, st.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				sp := kmsg.NewOffsetCommitResponseTopicPartition()
				sp.Partition, sp.ErrorCode = rp.Partition, kerr.OffsetMetadataTooLarge.Code
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
}

// TestCommitThatFailsIsMadeUpFor: offsets that a broker refused are committed later, without a further message.
func TestCommitThatFailsIsMadeUpFor(t *testing.T) {
	t.Parallel()
	cluster, b := fake(t, 1)
	refuseCommits(cluster, 3)
	b.produce(t, 1, numbered("v", 5)...)
	h := &handler{}
	start(t, b.config(), h)
	eventually(t, "the commit", func() bool { return b.committed(t) == 5 })
	if got := len(h.values()); got != 5 {
		t.Errorf("%d messages were taken, want each once", got)
	}
}

// TestCommitThatNeverCame: what was taken comes again to the next process when no commit reached the broker.
func TestCommitThatNeverCame(t *testing.T) {
	t.Parallel()
	cluster, b := fake(t, 1)
	refuseCommits(cluster, 1<<30)
	want := b.produce(t, 1, numbered("v", 5)...)
	h := &handler{}
	r := start(t, b.config(), h)
	eventually(t, "the messages", func() bool { return h.holds(want) })
	stop(t, r)
	again := &handler{}
	start(t, b.config(), again)
	eventually(t, "the messages again", func() bool { return again.holds(want) })
}

func TestBrokerThatComesLater(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	b := newBroker(t, []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, topic, "tutti")
	h := &handler{}
	reg := prometheus.NewRegistry()
	cfg := b.config()
	cfg.Metrics = kafka.NewMetrics(reg)
	r := start(t, cfg, h)
	eventually(t, "the fault", func() bool { return core.MessageOf(r.Health()) == "no Kafka broker answers" })
	if err := r.Health(); core.CodeOf(err) != core.CodeUnavailable || core.HintOf(err) != "check that the brokers run and that their configured addresses are right" {
		t.Errorf("health gives code %q and hint %q", core.CodeOf(err), core.HintOf(err))
	}
	eventually(t, "the metric", func() bool { return metric(t, reg, "tutti_kafka_up") == "0" })
	fake(t, 2, kfake.Ports(port))
	want := b.produce(t, 2, numbered("v", 20)...)
	eventually(t, "the messages", func() bool { return h.holds(want) })
	eventually(t, "health", func() bool { return r.Health() == nil })
	eventually(t, "the metric", func() bool { return metric(t, reg, "tutti_kafka_up") == "1" })
	eventually(t, "no lag", func() bool { return metric(t, reg, "tutti_kafka_lag_messages") == "0" })
}

func TestBrokerThatDiesAndComesBack(t *testing.T) {
	t.Parallel()
	port, dir := freePort(t), t.TempDir()
	cluster, b := fake(t, 2, kfake.Ports(port), kfake.DataDir(dir), kfake.SyncWrites())
	h := &handler{}
	r := start(t, b.config(), h)
	first := b.produce(t, 2, numbered("first", 20)...)
	eventually(t, "the first messages", func() bool { return h.holds(first) })
	cluster.Close()
	eventually(t, "the fault", func() bool { return core.MessageOf(r.Health()) == "no Kafka broker answers" })
	fake(t, 2, kfake.Ports(port), kfake.DataDir(dir), kfake.SyncWrites())
	second := b.produce(t, 2, numbered("second", 20)...)
	eventually(t, "the second messages", func() bool { return h.holds(second) })
	eventually(t, "health", func() bool { return r.Health() == nil })
	eventually(t, "the commit", func() bool { return b.committed(t) == 40 })
}

func TestLagOfWhatIsRefused(t *testing.T) {
	t.Parallel()
	_, b := fake(t, 2)
	b.produce(t, 2, numbered("v", 20)...)
	reg := prometheus.NewRegistry()
	cfg := b.config()
	cfg.Metrics = kafka.NewMetrics(reg)
	h := &handler{refuse: func([]string) error { return errRefused }}
	r := start(t, cfg, h)
	eventually(t, "the lag", func() bool { return metric(t, reg, "tutti_kafka_lag_messages") == "20" })
	h.set(nil)
	eventually(t, "no lag", func() bool { return metric(t, reg, "tutti_kafka_lag_messages") == "0" })
	stop(t, r)
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 0 {
		t.Errorf("%d metrics stay behind a reader that has stopped, %v", n, err)
	}
}

// TestStopWithoutBroker: a stop ends within its timeout when no broker answers.
func TestStopWithoutBroker(t *testing.T) {
	t.Parallel()
	cluster, b := fake(t, 1)
	b.produce(t, 1, numbered("v", 5)...)
	h := &handler{refuse: func([]string) error { return errRefused }}
	r, err := kafka.New(b.config(), h)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a refusal", func() bool { return h.refused() > 0 })
	cluster.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := r.Stop(ctx); err != nil {
		t.Errorf("stopping: %v", err)
	}
}

func metric(t *testing.T, reg *prometheus.Registry, name string) string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name && len(f.GetMetric()) == 1 {
			return strconv.FormatFloat(f.GetMetric()[0].GetGauge().GetValue(), 'f', -1, 64)
		}
	}
	return ""
}

// freePort returns a port without a listener.
func freePort(t *testing.T) int {
	t.Helper()
	address, err := net.ResolveTCPAddr("tcp", testkit.NewAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return address.Port
}

func ExampleReader() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "song-analysis"))
	if err != nil {
		return
	}
	defer cluster.Close()
	reader, err := kafka.New(kafka.Config{
		Connection: connection.Config{Brokers: cluster.ListenAddrs()}, Topic: "song-analysis", Group: "tutti",
	}, &handler{})
	if err != nil {
		return
	}
	if err := reader.Start(context.Background()); err != nil {
		return
	}
	fmt.Println(reader.Stop(context.Background()))
	// Output: <nil>
}
