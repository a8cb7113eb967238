package queue

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
)

// keyWaited holds the storage time of a message, by its sequence, whose last delivery a process released or kept waiting:
// it did not end that process, and is no crash loop.
const keyWaited = "waited."

func waitedKey(sequence uint64) string { return keyWaited + strconv.FormatUint(sequence, 10) }

func waitedSince(storedAt time.Time) string { return strconv.FormatInt(storedAt.UnixNano(), 10) }

// noteWaited notes that the last delivery of a message did not end the process that had it.
func (j *Jobs) noteWaited(ctx context.Context, sequence uint64, storedAt time.Time) error {
	_, err := j.bucket.PutString(ctx, waitedKey(sequence), waitedSince(storedAt))
	return fault("noting that a request waits", err)
}

// hasWaited reports whether m was noted. A note of another message with the same sequence is of a stream that is gone.
func (j *Jobs) hasWaited(ctx context.Context, m *jetstream.RawStreamMsg) (bool, error) {
	entry, err := j.bucket.Get(ctx, waitedKey(m.Sequence))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fault("reading whether a request waited", err)
	}
	return string(entry.Value()) == waitedSince(m.Time), nil
}

// errNotNoted: there is no note that a message waited, and the process that had it may not have written it yet.
var errNotNoted = errors.New("not noted as waiting")

// endDeliveries ends a message that the server does not deliver any more: it is published again when it merely waited, as
// CodeOverloaded where a full queue does not take it now, and becomes a dead letter when its last delivery ended without a
// word, if that is sure; errNotNoted otherwise.
func (q *Queue) endDeliveries(ctx context.Context, m *jetstream.RawStreamMsg, deliveries int, sure bool) error {
	waited, err := q.jobs.hasWaited(ctx, m)
	if err != nil {
		return err
	}
	if !waited && !sure {
		return errNotNoted
	}
	r, err := decodeRequest(m.Subject, m.Data)
	if !waited || err != nil {
		return q.bury(ctx, m, core.ReasonCrashLoop, crashLoopHint, deliveries)
	}
	r.Attempts += deliveries
	if err := q.replace(ctx, r, versionOf(r, m.Time), m.Sequence); err != nil {
		return err
	}
	return q.jobs.purge(ctx, jobsPrefix+waitedKey(m.Sequence))
}

// replace stores r, as of version, in place of the message at sequence, unless a newer one is there.
func (q *Queue) replace(ctx context.Context, r core.Request, version core.Version, sequence uint64) error {
	r.AsOf = version
	err := q.publishRequest(ctx, r, jetstream.WithExpectLastSequencePerSubject(sequence))
	if isConflict(err) {
		return nil
	}
	return err
}
