// Package cells holds the key-value bucket of tutti and its small keys: compare-and-swap cells, notes of pages, and counts of how often a
// message was handed out for processing. The jobs, which fill most of it, are in package jobs.
package cells

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

// Kept is how long a key is stored after its last change.
const Kept = 90 * 24 * time.Hour

// maxRevisions is the history of the bucket, which the key-value layer demands. Put removes earlier revisions.
const maxRevisions = jetstream.KeyValueMaxHistory

// headerOperation marks the revision by which a key was deleted.
const headerOperation = "KV-Operation"

// Prefix starts the subject of each key.
const Prefix = "$KV." + bucketJobs + "."

// Bucket is the key-value bucket of tutti.
type Bucket struct {
	Conn   *natsconn.Conn
	KV     jetstream.KeyValue
	Stream jetstream.Stream
}

// StreamConfig returns the configuration of the bucket's stream, as the key-value layer of NATS makes it, but without
// direct reads: a replica may be behind, and a job that was just created must be found.
func StreamConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              StreamName,
		Description:       "Jobs of tutti",
		Subjects:          []string{Prefix + ">", natsconn.ProbePrefix + StreamName},
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		MaxMsgsPerSubject: maxRevisions,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxAge:            Kept,
		Discard:           jetstream.DiscardNew,
		AllowRollup:       true,
		DenyDelete:        true,
		AllowMsgTTL:       true,
		Duplicates:        2 * time.Minute,
		Replicas:          replicas,
	}
}

// Open opens the bucket of a stream.
func Open(ctx context.Context, conn *natsconn.Conn, stream jetstream.Stream) (*Bucket, error) {
	b := &Bucket{Conn: conn, Stream: stream}
	err := conn.RetryStart(ctx, func(ctx context.Context) (err error) {
		b.KV, err = conn.JS.KeyValue(ctx, bucketJobs)
		return natsconn.WrapError("opening the bucket of jobs", err)
	})
	return b, err
}

// Cells returns the compare-and-swap cells of the bucket.
func (b *Bucket) Cells() *Cells { return &Cells{b} }

// PageNotes returns the notes of pages of the bucket.
func (b *Bucket) PageNotes() *PageNotes { return &PageNotes{b} }

// HandOuts returns the counts of hand-outs of the bucket.
func (b *Bucket) HandOuts() *HandOuts { return &HandOuts{bucket: b} }

// Put stores a value of a key and removes the earlier ones (natsconn.Conn.Replace).
func (b *Bucket) Put(ctx context.Context, key string, data []byte, opts ...jetstream.PublishOpt) error {
	_, err := b.Conn.Replace(ctx, &nats.Msg{Subject: Prefix + key, Data: data}, opts...)
	return err
}

// Update is Put if the last revision of a key is the given one; a conflict (natsconn.IsConflict) otherwise.
func (b *Bucket) Update(ctx context.Context, key string, data []byte, revision uint64) error {
	return b.Put(ctx, key, data, jetstream.WithExpectLastSequencePerSubject(revision))
}

// Create stores the first value of a key, or of one that was deleted; a conflict when it has one.
func (b *Bucket) Create(ctx context.Context, key string, data []byte) error {
	err := b.Update(ctx, key, data, 0)
	if !natsconn.IsConflict(err) {
		return err
	}
	last, readErr := b.Stream.GetLastMsgForSubject(ctx, Prefix+key)
	switch {
	case natsconn.IsNotFound(readErr):
		return b.Update(ctx, key, data, 0)
	case readErr != nil:
		return readErr
	case IsDeleted(last.Header):
		return b.Update(ctx, key, data, last.Sequence)
	}
	return err
}

// Delete deletes a key if its last revision is the given one; a conflict otherwise.
func (b *Bucket) Delete(ctx context.Context, key string, revision uint64) error {
	m := &nats.Msg{Subject: Prefix + key, Header: nats.Header{headerOperation: {"DEL"}}}
	_, err := b.Conn.Replace(ctx, m, jetstream.WithExpectLastSequencePerSubject(revision))
	return err
}

// IsDeleted reports whether the message with a header deletes its key.
func IsDeleted(header nats.Header) bool {
	return header.Get(headerOperation) != "" || header.Get(jetstream.MarkerReasonHeader) != ""
}

// Purge removes the messages of a subject.
func (b *Bucket) Purge(ctx context.Context, subject string, opts ...jetstream.StreamPurgeOpt) error {
	return b.Stream.Purge(ctx, append(opts, jetstream.WithPurgeSubject(subject))...)
}
