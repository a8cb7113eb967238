package queue

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/queue/natsconn"
)

// Names of the streams and of the bucket.
const (
	streamRequests    = "REQUESTS"
	streamDeadLetters = "DEAD_LETTERS"
	bucketJobs        = "tutti_jobs"
	streamJobs        = "KV_" + bucketJobs
)

const (
	// dedupWindow is how long the id of an outbox change is remembered.
	dedupWindow = 2 * time.Minute
	// jobsKept is how long a job is stored after its last change.
	jobsKept = 90 * 24 * time.Hour
)

// requestsConfig: one message per subject, so that a newer Request of a record replaces an older one, and a full
// stream rejects new messages instead of discarding old ones.
func (c Config) requestsConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              streamRequests,
		Description:       "Requests of tutti that wait to be done",
		Subjects:          []string{requestPrefix + ">", natsconn.ProbePrefix + streamRequests},
		Retention:         jetstream.WorkQueuePolicy,
		Storage:           jetstream.FileStorage,
		MaxMsgsPerSubject: 1,
		MaxMsgs:           int64(c.MaxPending) + 1, // and the probe
		MaxBytes:          -1,
		Discard:           jetstream.DiscardNew,
		Duplicates:        dedupWindow,
		Replicas:          c.Replicas,
	}
}

// deadLettersConfig allows message TTLs, which only the tombstones of removed dead letters have.
func (c Config) deadLettersConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              streamDeadLetters,
		Description:       "Records that tutti gave up on",
		Subjects:          []string{deadPrefix + ">", natsconn.ProbePrefix + streamDeadLetters},
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		MaxMsgsPerSubject: 1,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		Discard:           jetstream.DiscardOld,
		AllowMsgTTL:       true,
		Replicas:          c.Replicas,
	}
}

// jobsConfig is the stream of the key-value bucket, configured as the key-value layer of NATS does it, but without
// direct reads: a replica may be behind, and a job that was just created must be found.
func (c Config) jobsConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              streamJobs,
		Description:       "Jobs of tutti",
		Subjects:          []string{jobsPrefix + ">", natsconn.ProbePrefix + streamJobs},
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		MaxMsgsPerSubject: 1,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxAge:            jobsKept,
		Discard:           jetstream.DiscardNew,
		AllowRollup:       true,
		DenyDelete:        true,
		AllowMsgTTL:       true,
		Duplicates:        dedupWindow,
		Replicas:          c.Replicas,
	}
}

// streamConfigs returns the configurations of all streams.
func (c Config) streamConfigs() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{
		c.requestsConfig(), c.deadLettersConfig(), c.seenConfig(), c.jobsConfig(),
	}
}
