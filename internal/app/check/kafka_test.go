package check_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tutti/internal/app/check"
	"tutti/internal/tools/testkit"
)

func kafka(t *testing.T, topics ...string) *kfake.Cluster { return kafkaWith(t, topics) }

// kafkaWith is kafka with more options.
func kafkaWith(t *testing.T, topics []string, more ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append(more, kfake.NumBrokers(2), kfake.SeedTopics(3, topics...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestKafka(t *testing.T) {
	upstream := song(t, testkit.SongConfig{}, "S1")
	cluster := kafka(t, "song-analysis", "requests")
	brokers := strings.Join(cluster.ListenAddrs(), "', '")
	gone := testkit.NewAddress(t)
	opts := check.Options{}
	look := func(t *testing.T, notifications, ingest string) check.Report {
		t.Helper()
		return check.Run(t.Context(), parse(t, fmt.Sprintf(
			"dataDir: %q\ningest: {kafka: {%s}}\nrepositories: [{code: a, type: song, indexName: a, url: %q, notifications: {kafka: {%s}}}]",
			t.TempDir(), ingest, upstream.URL(), notifications)), opts)
	}
	t.Run("right", func(t *testing.T) {
		report := look(t, fmt.Sprintf("brokers: ['%s']", brokers), fmt.Sprintf("brokers: ['%s'], requestTopic: requests", cluster.ListenAddrs()[0]))
		wantLines(t, of(report, "notifications of a"), "ok: topic song-analysis with 3 partitions at 127.0.0.1:*, 127.0.0.1:*")
		wantLines(t, of(report, "ingest.kafka"), "ok: topic requests with 3 partitions at 127.0.0.1:*")
	})
	t.Run("one broker of two", func(t *testing.T) {
		report := look(t, fmt.Sprintf("brokers: ['%s', '%s']", gone, cluster.ListenAddrs()[0]), "")
		wantLines(t, of(report, "notifications of a"), "ok: topic song-analysis *", "warn: broker "+gone+" does not answer: nothing listens there -> *")
	})
	t.Run("nothing listens", func(t *testing.T) {
		report := look(t, fmt.Sprintf("brokers: ['%s']", gone), "")
		wantLines(t, of(report, "notifications of a"), "fail: broker "+gone+" does not answer: nothing listens there -> *")
	})
	t.Run("no such topic", func(t *testing.T) {
		report := look(t, fmt.Sprintf("brokers: ['%s'], topic: other", brokers), "")
		wantLines(t, of(report, "notifications of a"), "warn: there is no topic other at * -> check the name; tutti reads the topic as soon as it is created")
		if topics := cluster.TopicInfo("other"); topics != nil {
			t.Error("the probe created the topic")
		}
	})
	t.Run("what a listener is not", func(t *testing.T) {
		const at = "repositories[0].notifications.kafka"
		guarded := kafkaWith(t, []string{"song-analysis"}, kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "s3cret"))
		// refusing is a cluster that refuses a mechanism with a code.
		refusing := func(code int16) *kfake.Cluster {
			c := kafkaWith(t, []string{"song-analysis"}, kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "s3cret"))
			c.ControlKey(int16(kmsg.SASLHandshake), func(r kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				answer, _ := r.ResponseKind().(*kmsg.SASLHandshakeResponse)
				answer.ErrorCode, answer.SupportedMechanisms = code, []string{"PLAIN"}
				return answer, nil, true
			})
			return c
		}
		for name, tt := range map[string]struct {
			cluster    *kfake.Cluster
			user, want string
		}{
			"right":        {guarded, "u", "ok: topic song-analysis *"},
			"another user": {guarded, "v", "fail: a Kafka broker closed the connection while it authenticated this client -> check the keys of " + at + ".sasl, and the log of the broker"},
			"not on offer": {refusing(kerr.UnsupportedSaslMechanism.Code), "u", "fail: the Kafka brokers do not offer the SASL mechanism PLAIN -> set " + at + ".sasl.mechanism to one that they offer"},
			"without SASL": {refusing(kerr.IllegalSaslState.Code), "u", "fail: the Kafka brokers' port takes no SASL -> remove " + at + ".sasl.mechanism, or set " + at + ".brokers to the port of a SASL listener"},
		} {
			t.Run(name, func(t *testing.T) {
				report := look(t, fmt.Sprintf("brokers: ['%s'], sasl: {mechanism: PLAIN, username: %s, password: s3cret}", tt.cluster.ListenAddrs()[0], tt.user), "")
				wantLines(t, of(report, "notifications of a"), tt.want)
			})
		}
	})
	t.Run("another program", func(t *testing.T) {
		// A web server waits for the rest of what it cannot understand.
		opts.Timeout = 200 * time.Millisecond
		report := look(t, fmt.Sprintf("brokers: ['%s']", strings.TrimPrefix(upstream.URL(), "http://")), "")
		wantLines(t, of(report, "notifications of a"), "fail: the brokers do not speak the Kafka protocol: *")
	})
}

func TestKafkaRefusals(t *testing.T) {
	upstream := song(t, testkit.SongConfig{}, "S1")
	gone := testkit.NewAddress(t)
	for name, tt := range map[string]struct {
		key  int16
		fn   func(kmsg.Request) (kmsg.Response, error, bool)
		want []string
	}{
		"topic": {
			int16(kmsg.Metadata),
			func(r kmsg.Request) (kmsg.Response, error, bool) {
				answer := metadata(r)
				answer.Topics[0].ErrorCode = kerr.TopicAuthorizationFailed.Code
				return answer, nil, true
			},
			[]string{"fail: not authorized to read topic song-analysis -> allow Read and Describe on the topic"},
		},
		"group": {
			int16(kmsg.DescribeGroups),
			func(r kmsg.Request) (kmsg.Response, error, bool) {
				answer, _ := r.ResponseKind().(*kmsg.DescribeGroupsResponse)
				group := kmsg.NewDescribeGroupsResponseGroup()
				group.Group, group.ErrorCode = "tutti", kerr.GroupAuthorizationFailed.Code
				answer.Groups = append(answer.Groups, group)
				return answer, nil, true
			},
			[]string{"ok: topic song-analysis *", "fail: not authorized to use group tutti -> allow Read on the group"},
		},
		"advertised": {
			int16(kmsg.Metadata),
			func(r kmsg.Request) (kmsg.Response, error, bool) {
				answer := metadata(r)
				host, port, _ := strings.Cut(gone, ":")
				broker := kmsg.NewMetadataResponseBroker()
				broker.NodeID, broker.Host = 7, host
				_, _ = fmt.Sscan(port, &broker.Port)
				answer.Brokers = append(answer.Brokers, broker)
				return answer, nil, true
			},
			[]string{
				"ok: topic song-analysis *",
				"fail: advertised by the cluster: broker " + gone + " does not answer: nothing listens there -> set the brokers' advertised.listeners to addresses that this machine can reach",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := kafka(t, "song-analysis")
			cluster.ControlKey(tt.key, func(r kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				return tt.fn(r)
			})
			report := check.Run(t.Context(), parse(t, fmt.Sprintf(
				"dataDir: %q\nrepositories: [{code: a, type: song, indexName: a, url: %q, notifications: {kafka: {brokers: ['%s']}}}]",
				t.TempDir(), upstream.URL(), strings.Join(cluster.ListenAddrs(), "', '"))), check.Options{})
			wantLines(t, of(report, "notifications of a"), tt.want...)
		})
	}
}

// metadata answers a request for metadata with the topic and no broker.
func metadata(r kmsg.Request) *kmsg.MetadataResponse {
	answer, _ := r.ResponseKind().(*kmsg.MetadataResponse)
	topic := kmsg.NewMetadataResponseTopic()
	topic.Topic = new("song-analysis")
	topic.Partitions = append(topic.Partitions, kmsg.NewMetadataResponseTopicPartition())
	answer.Topics = append(answer.Topics, topic)
	return answer
}
