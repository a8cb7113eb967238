package queue

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/queue/cells"
	"tutti/internal/queue/deadletter"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/subjects"
)

// streamRequests is the name of the stream of Requests.
const streamRequests = "REQUESTS"

// dedupWindow is how long the id of an outbox change is remembered.
const dedupWindow = 2 * time.Minute

// requestsConfig: a full stream rejects new messages instead of discarding old ones. Only probes are rolled up (publisher.publishAfter).
func (c Config) requestsConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:               streamRequests,
		Description:        "Requests of tutti that wait to be done",
		Subjects:           []string{subjects.RequestPrefix + ">", natsconn.ProbePrefix + streamRequests},
		Retention:          jetstream.WorkQueuePolicy,
		Storage:            jetstream.FileStorage,
		MaxMsgsPerSubject:  -1,
		MaxMsgs:            int64(c.MaxPending) + 1, // and the probe
		MaxBytes:           -1,
		Discard:            jetstream.DiscardNew,
		AllowRollup:        true,
		AllowAtomicPublish: true,
		Duplicates:         dedupWindow,
		Replicas:           c.Replicas,
	}
}

// streamConfigs returns the configurations of all streams.
func (c Config) streamConfigs() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{
		c.requestsConfig(), deadletter.StreamConfig(c.Replicas), seenConfig(c.Replicas), cells.StreamConfig(c.Replicas),
	}
}
