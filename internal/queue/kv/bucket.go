package kv

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/queue/natsconn"
)

// Names of the bucket and of its stream.
const (
	bucketJobs = "tutti_jobs"
	StreamName = "KV_" + bucketJobs
)

// jobsKept is how long a key is stored after its last change.
const jobsKept = 90 * 24 * time.Hour

// prefix starts the subject of each key.
const prefix = "$KV." + bucketJobs + "."

// Bucket is the key-value bucket of tutti, by kinds of keys.
type Bucket struct {
	Jobs      *Jobs
	Groups    *Groups
	Lists     *Lists
	Cells     *Cells
	PageNotes *PageNotes
	HandOuts  *HandOuts
}

// bucket has the operations that all kinds of keys share.
type bucket struct {
	conn   *natsconn.Conn
	kv     jetstream.KeyValue
	stream jetstream.Stream
}

// StreamConfig returns the configuration of the bucket's stream, as the key-value layer of NATS makes it, but without
// direct reads: a replica may be behind, and a job that was just created must be found.
func StreamConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              StreamName,
		Description:       "Jobs of tutti",
		Subjects:          []string{prefix + ">", natsconn.ProbePrefix + StreamName},
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
		Duplicates:        2 * time.Minute,
		Replicas:          replicas,
	}
}

// Open opens the bucket of a stream. pending returns the ids of the jobs that have a Request in the queue.
func Open(
	ctx context.Context, conn *natsconn.Conn, stream jetstream.Stream, pending func(context.Context) (map[string]struct{}, error),
) (*Bucket, error) {
	b := &bucket{conn: conn, stream: stream}
	err := conn.RetryStart(ctx, func(ctx context.Context) (err error) {
		b.kv, err = conn.JS.KeyValue(ctx, bucketJobs)
		return natsconn.WrapError("opening the bucket of jobs", err)
	})
	jobs := &Jobs{bucket: b, pending: pending}
	return &Bucket{
		Jobs: jobs, Groups: &Groups{jobs: jobs}, Lists: &Lists{jobs: jobs}, Cells: &Cells{b}, PageNotes: &PageNotes{b}, HandOuts: &HandOuts{bucket: b},
	}, err
}

func (b *bucket) purge(ctx context.Context, subject string, opts ...jetstream.StreamPurgeOpt) error {
	return b.stream.Purge(ctx, append(opts, jetstream.WithPurgeSubject(subject))...)
}
