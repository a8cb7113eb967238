package kv

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
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

// maxRevisions is the history of the bucket, which the key-value layer demands. put removes earlier revisions.
const maxRevisions = jetstream.KeyValueMaxHistory

// headerOperation marks the revision by which a key was deleted.
const headerOperation = "KV-Operation"

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
		MaxMsgsPerSubject: maxRevisions,
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

// put stores a value of a key and removes the earlier ones (natsconn.Conn.Replace).
func (b *bucket) put(ctx context.Context, key string, data []byte, opts ...jetstream.PublishOpt) error {
	_, err := b.conn.Replace(ctx, &nats.Msg{Subject: prefix + key, Data: data}, opts...)
	return err
}

// update is put if the last revision of a key is the given one; a conflict (natsconn.IsConflict) otherwise.
func (b *bucket) update(ctx context.Context, key string, data []byte, revision uint64) error {
	return b.put(ctx, key, data, jetstream.WithExpectLastSequencePerSubject(revision))
}

// create stores the first value of a key, or of one that was deleted; a conflict when it has one.
func (b *bucket) create(ctx context.Context, key string, data []byte) error {
	err := b.update(ctx, key, data, 0)
	if !natsconn.IsConflict(err) {
		return err
	}
	last, readErr := b.stream.GetLastMsgForSubject(ctx, prefix+key)
	switch {
	case natsconn.IsNotFound(readErr):
		return b.update(ctx, key, data, 0)
	case readErr != nil:
		return readErr
	case isDeleted(last.Header):
		return b.update(ctx, key, data, last.Sequence)
	}
	return err
}

// delete deletes a key if its last revision is the given one; a conflict otherwise.
func (b *bucket) delete(ctx context.Context, key string, revision uint64) error {
	m := &nats.Msg{Subject: prefix + key, Header: nats.Header{headerOperation: {"DEL"}}}
	_, err := b.conn.Replace(ctx, m, jetstream.WithExpectLastSequencePerSubject(revision))
	return err
}

// isDeleted reports whether the message with a header deletes its key.
func isDeleted(header nats.Header) bool {
	return header.Get(headerOperation) != "" || header.Get(jetstream.MarkerReasonHeader) != ""
}

func (b *bucket) purge(ctx context.Context, subject string, opts ...jetstream.StreamPurgeOpt) error {
	return b.stream.Purge(ctx, append(opts, jetstream.WithPurgeSubject(subject))...)
}
