package kafka

import (
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/ingest/kafka/connection"
	"tutti/internal/core"
)

// Config configures a Reader. Connection, Topic and Group are required; the zero value of the rest is the default.
type Config struct {
	// Connection says how the brokers are reached.
	Connection connection.Config
	// Topic is the topic to read, Group the consumer group whose offsets are committed. The readers of a group share the
	// partitions of its topic, so two of them in one process would each receive half the messages: users of the same
	// topic and group share one Reader. A group without a committed offset starts with the oldest message of the topic.
	Topic string
	Group string
	// BatchMessages is the largest number of messages in a batch. Default 1000.
	BatchMessages int
	// HandleTimeout limits one attempt to handle a batch. With CommitTimeout it must not exceed RebalanceTimeout.
	// Default 30 s.
	HandleTimeout time.Duration
	// RetryMin and RetryMax are the shortest and the longest pause before a rejected batch is retried. Default 200 ms
	// and 30 s.
	RetryMin, RetryMax time.Duration
	// CheckEvery is how often the topic and its end offsets are read, for Health and the metrics; after a failure five
	// times as often. New partitions are noticed within three times as long. Default 10 s.
	CheckEvery time.Duration
	// CommitTimeout limits one commit. Default 10 s.
	CommitTimeout time.Duration
	// SessionTimeout is how long the group waits for a process that has vanished before it reassigns its partitions,
	// RebalanceTimeout how long a rebalance waits for a process to finish its batch. A SessionTimeout that the brokers reject
	// (group.min.session.timeout.ms) is doubled until they accept it. Defaults 6 s, the least that brokers accept by default, and 60 s.
	SessionTimeout, RebalanceTimeout time.Duration
	// Logger receives log lines. Default: nothing is logged.
	Logger *slog.Logger
	// Metrics receives the measurements; nil for none.
	Metrics *Metrics
}

func (c Config) validate() error {
	switch {
	case c.Topic == "":
		return core.NewError(core.CodeInvalid, "a reader needs a topic")
	case c.Group == "":
		return core.NewError(core.CodeInvalid, "a reader needs a consumer group")
	case c.BatchMessages < 0:
		return core.NewError(core.CodeInvalid, "the number of messages of a batch must not be negative")
	}
	for _, d := range []time.Duration{
		c.HandleTimeout, c.RetryMin, c.RetryMax, c.CheckEvery, c.CommitTimeout, c.SessionTimeout, c.RebalanceTimeout,
	} {
		if d < 0 {
			return core.NewError(core.CodeInvalid, "the durations of a reader must not be negative")
		}
	}
	if d := c.withDefaults(); d.HandleTimeout+d.CommitTimeout > d.RebalanceTimeout {
		return core.NewError(core.CodeInvalid,
			"the handle and commit timeouts of a reader together must not exceed its rebalance timeout")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.BatchMessages == 0 {
		c.BatchMessages = 1000
	}
	for d, standard := range map[*time.Duration]time.Duration{
		&c.HandleTimeout: 30 * time.Second, &c.RetryMin: 200 * time.Millisecond, &c.RetryMax: 30 * time.Second,
		&c.CheckEvery: 10 * time.Second, &c.CommitTimeout: 10 * time.Second,
		&c.SessionTimeout: 6 * time.Second, &c.RebalanceTimeout: time.Minute,
	} {
		if *d == 0 {
			*d = standard
		}
	}
	c.RetryMax = max(c.RetryMin, c.RetryMax)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

const (
	// maxFetchBytes limits what the client prefetches while a batch is in flight; maxFetchPartitionBytes the same for
	// one partition. A single message may be larger.
	maxFetchBytes          = 16 << 20
	maxFetchPartitionBytes = 4 << 20
	// metadataEvery is how soon a topic that was missing, or a broker that recovered, is noticed.
	metadataEvery = time.Second
	// maxHeartbeat is the longest interval between heartbeats: so long the others of a group take to notice a rebalance.
	maxHeartbeat = time.Second
	// fetchWait is how long brokers hold a fetch while there is no message. Partitions that a rebalance adds are read after that: the
	// client has one fetch of a broker in flight.
	fetchWait = 500 * time.Millisecond
	// maxSessionTimeout ends the attempts with longer session timeouts.
	maxSessionTimeout = 5 * time.Minute
)

// options returns the client's options. A new group starts with the oldest message. Messages of transactions are read once they are
// committed; the records that end transactions are read too, because their offsets must be committed. An offset that the topic does not
// have is left to adjust: the client would go on elsewhere without a word.
func (s *session) options() []kgo.Opt {
	return append(s.connection.Options(),
		kgo.ClientID("tutti"),
		kgo.ConsumerGroup(s.cfg.Group),
		kgo.ConsumeTopics(s.cfg.Topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsCallbackBlocked(s.rebalancePending.set),
		kgo.OnPartitionsAssigned(s.assigned),
		kgo.OnPartitionsRevoked(s.revoked),
		kgo.OnPartitionsLost(s.lost),
		kgo.OnOffsetsFetched(s.offsetsFetched),
		kgo.AdjustFetchOffsetsFn(s.adjust),
		kgo.SessionTimeout(s.timeout),
		kgo.HeartbeatInterval(min(maxHeartbeat, s.timeout/3)),
		kgo.RebalanceTimeout(s.cfg.RebalanceTimeout),
		kgo.FetchMaxBytes(maxFetchBytes),
		kgo.FetchMaxPartitionBytes(maxFetchPartitionBytes),
		kgo.FetchMaxWait(fetchWait),
		kgo.MaxConcurrentFetches(2),
		kgo.MetadataMinAge(min(metadataEvery, s.cfg.CheckEvery)),
		kgo.MetadataMaxAge(min(3*s.cfg.CheckEvery, time.Hour)),
		kgo.DisableClientMetrics(),
	)
}
