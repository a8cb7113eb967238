package indexfile

import (
	"context"
	"time"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/embedded/evaluate"
)

// loadRetry is the Retry-After of a call that is rejected while segments are loaded.
const loadRetry = 5 * time.Second

func errLoading(hint string) error {
	return &core.Error{Code: core.CodeUnavailable, Message: "the index is still being loaded after a start", RetryAfter: loadRetry, Hint: hint}
}

// AwaitLoaded waits until the segments of the index are loaded, up to most; then it returns CodeUnavailable.
func (a *Alias) AwaitLoaded(ctx context.Context, most time.Duration) error {
	if !a.segments.Loading() {
		return nil
	}
	enough := time.NewTimer(most)
	defer enough.Stop()
	select {
	case <-a.segments.Ready():
		return nil
	case <-enough.C:
		return errLoading("retry later; the index accepts writes, and searches will find them")
	case <-a.file.calls.closing:
		return errClosed()
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "searching the index was cancelled", ctx.Err())
	}
}

// snapshotPoll is the interval between attempts to find the snapshot of a transaction.
const snapshotPoll = time.Millisecond

// Parts returns the segments to search, as of the last transaction. They must be loaded.
func (a *Alias) Parts() []evaluate.Part { return a.segments.Current().Parts }

// Rows reads the rows of an index within a read transaction.
type Rows struct{ bucket *bbolt.Bucket }

// Get returns the row of a number.
func (r Rows) Get(number uint64) Row { return r.bucket.Get(rowKeyOf(number)) }

// ViewParts runs a read transaction with the segments to search of the same state, so that all their documents have their rows. It
// retries after snapshotPoll when transactions ended in between. It does not wait for writers: the snapshot of a transaction is
// visible before the transaction can be read. The segments must be loaded.
func (a *Alias) ViewParts(ctx context.Context, read func(parts []evaluate.Part, rows Rows) error) error {
	for fits := false; !fits; {
		if err := ctx.Err(); err != nil {
			return core.WrapError(core.CodeUnavailable, "searching the index was cancelled", err)
		}
		err := a.file.db.View(func(tx *bbolt.Tx) error {
			b := a.bucket(tx)
			if b == nil {
				return ErrMissing(a.Name())
			}
			rows := b.Bucket(bucketRows())
			s := a.segments.SnapshotAt(rows.Sequence())
			if s == nil {
				return nil
			}
			fits = true
			return read(s.Parts, Rows{rows})
		})
		if err != nil {
			return err
		}
		if !fits {
			time.Sleep(snapshotPoll)
		}
	}
	return nil
}

// AwaitCommit blocks until Parts has the last transaction that readers of the file see.
func (a *Alias) AwaitCommit(ctx context.Context) error {
	var row uint64
	if err := a.view(func(b *bbolt.Bucket) error {
		row = b.Bucket(bucketRows()).Sequence()
		return nil
	}); err != nil {
		return err
	}
	for a.segments.CommitPending(row) {
		if err := ctx.Err(); err != nil {
			return core.WrapError(core.CodeUnavailable, "waiting for the index was cancelled", err)
		}
		time.Sleep(snapshotPoll)
	}
	return nil
}
