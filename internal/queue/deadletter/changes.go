package deadletter

import (
	"context"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
	"tutti/internal/queue/subjects"
)

// Change says that a dead letter was stored.
type Change struct {
	// Sequence is the position of the change in the stream, First that of the first dead letter of the same record or message since
	// there was none: the same as Sequence for a new one.
	Sequence, First    uint64
	StoredAt           time.Time
	ID                 string
	Repository, Reason string
	subject            string
}

// LastSequence returns the position of the last change of any dead letter.
func (d *Store) LastSequence(ctx context.Context) (uint64, error) {
	info, err := d.stream.Info(ctx)
	if err != nil {
		return 0, natsconn.WrapError("reading the position of the dead letters", err)
	}
	return info.State.LastSeq, nil
}

// EachStoredAfter calls each with the dead letters that were stored after a position and neither replaced nor removed since, in
// order, until it returns an error. It returns the position up to which it has read, also with an error of each.
func (d *Store) EachStoredAfter(ctx context.Context, after uint64, each func(Change) error) (uint64, error) {
	err := natsread.After(ctx, d.conn, d.stream, subjects.DeadPrefix+">", after, true, func(m natsread.Message) error {
		if repository, ok := subjects.DeadLetterRepository(m.Subject); ok && !isRemoved(m.Header) {
			if err := each(Change{
				Sequence: m.Sequence, First: firstOf(m.Header, m.Sequence), StoredAt: m.StoredAt, ID: idOf(m.Subject),
				Repository: repository, Reason: m.Header.Get(headerReason), subject: m.Subject,
			}); err != nil {
				return err
			}
		}
		after = m.Sequence
		return nil
	})
	return after, natsconn.WrapError("reading the changes of dead letters", err)
}

// Changed returns the dead letter that a change stored, or its successor; CodeNotFound when it was removed since.
func (d *Store) Changed(ctx context.Context, c Change) (core.DeadLetter, error) {
	l, _, err := d.last(ctx, c.subject)
	if natsconn.IsNotFound(err) {
		return core.DeadLetter{}, notFound()
	}
	return l, natsconn.WrapError("reading a dead letter", err)
}
