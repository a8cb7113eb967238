package queue

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/queue/natsconn"
)

const jobsPrefix = "$KV." + bucketJobs + "."

// Bucket is the key-value bucket of tutti, by kinds of keys.
type Bucket struct {
	Jobs      *Jobs
	Cells     *Cells
	PageNotes *PageNotes
	HandOuts  *HandOuts
}

// bucket is what all kinds of keys share.
type bucket struct {
	conn   *natsconn.Conn
	kv     jetstream.KeyValue
	stream jetstream.Stream
}

// openBucket opens the bucket of a stream. pending returns the ids of the jobs that have a Request in the queue.
func openBucket(
	ctx context.Context, conn *natsconn.Conn, stream jetstream.Stream, pending func(context.Context) (map[string]struct{}, error),
) (*Bucket, error) {
	b := &bucket{conn: conn, stream: stream}
	err := conn.RetryStart(ctx, func(ctx context.Context) (err error) {
		b.kv, err = conn.JS.KeyValue(ctx, bucketJobs)
		return natsconn.WrapError("opening the bucket of jobs", err)
	})
	return &Bucket{
		Jobs: &Jobs{bucket: b, pending: pending}, Cells: &Cells{b}, PageNotes: &PageNotes{b}, HandOuts: &HandOuts{bucket: b},
	}, err
}

func (b *bucket) purge(ctx context.Context, subject string, opts ...jetstream.StreamPurgeOpt) error {
	return b.stream.Purge(ctx, append(opts, jetstream.WithPurgeSubject(subject))...)
}
