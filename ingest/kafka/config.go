package kafka

import (
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/internal/core"
)

// Config says what a Reader reads and how. Brokers, Topic and Group are required; the zero value of the rest is the
// default.
type Config struct {
	// Brokers are host:port of the brokers that are asked first.
	Brokers []string
	// Topic is the one topic that is read, Group the consumer group in whose name offsets are committed. The readers of a
	// group share the partitions of its topic, so that two of them in one process would see a half each: those that want
	// the same topic for the same group share one Reader. A group without a committed offset begins with the oldest message
	// that the topic holds.
	Topic string
	Group string
	// BatchMessages is the most messages that are handed over at once. Default 1000.
	BatchMessages int
	// HandleTimeout is how long one try of a batch may take. With CommitTimeout it must not be more than RebalanceTimeout.
	// Default 30 s.
	HandleTimeout time.Duration
	// RetryMin and RetryMax are the shortest and the longest pause before a batch that was refused is handed over again.
	// Default 200 ms and 30 s.
	RetryMin, RetryMax time.Duration
	// CheckEvery is how often the brokers are asked for the topic and its length, for Health and the metrics; after a
	// failure five times as often. Default 10 s.
	CheckEvery time.Duration
	// CommitTimeout bounds one commit. Default 10 s.
	CommitTimeout time.Duration
	// SessionTimeout is how long the group waits for a process that has vanished before it gives its partitions to the
	// others, RebalanceTimeout how long it waits in a rebalance for a process to end what is in hand. Defaults 45 s, 60 s.
	SessionTimeout, RebalanceTimeout time.Duration
	// Logger takes what is worth telling. Default: nothing is logged.
	Logger *slog.Logger
	// Metrics measures; nil measures nothing.
	Metrics *Metrics
}

func (c Config) validate() error {
	switch {
	case len(c.Brokers) == 0:
		return core.NewError(core.CodeInvalid, "a reader needs the address of a broker")
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
			return core.NewError(core.CodeInvalid, "the times of a reader must not be negative")
		}
	}
	if d := c.withDefaults(); d.HandleTimeout+d.CommitTimeout > d.RebalanceTimeout {
		return core.NewError(core.CodeInvalid,
			"a reader's time for a batch and its commit must not be longer than that for a rebalance")
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
		&c.SessionTimeout: 45 * time.Second, &c.RebalanceTimeout: time.Minute,
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
	// maxFetchBytes bounds what the client reads ahead while a batch is in hand; maxFetchPartitionBytes the same for one
	// partition. A message that is larger is read all the same.
	maxFetchBytes          = 16 << 20
	maxFetchPartitionBytes = 4 << 20
	// metadataEvery is how soon a topic that was missing, or a broker that came back, is noticed.
	metadataEvery = time.Second
)

// options returns the client's options. A new group begins with the oldest message, as does one whose offset the topic no
// longer holds: nothing that is there is missed, and an event too many does no harm.
func (r *Reader) options() []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(r.cfg.Brokers...),
		kgo.ClientID("tutti"),
		kgo.ConsumerGroup(r.cfg.Group),
		kgo.ConsumeTopics(r.cfg.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsCallbackBlocked(r.onRebalance),
		kgo.OnPartitionsRevoked(r.revoked),
		kgo.OnPartitionsLost(r.lost),
		kgo.SessionTimeout(r.cfg.SessionTimeout),
		kgo.HeartbeatInterval(min(3*time.Second, r.cfg.SessionTimeout/3)),
		kgo.RebalanceTimeout(r.cfg.RebalanceTimeout),
		kgo.FetchMaxBytes(maxFetchBytes),
		kgo.FetchMaxPartitionBytes(maxFetchPartitionBytes),
		kgo.MaxConcurrentFetches(2),
		kgo.MetadataMinAge(min(metadataEvery, r.cfg.CheckEvery)),
		kgo.DisableClientMetrics(),
	}
}
