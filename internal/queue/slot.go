package queue

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// Slot returns the job that a named slot holds, with the revision that SetSlot wants; "" and 0 when it is empty.
func (j *Jobs) Slot(ctx context.Context, name string) (jobID string, revision uint64, err error) {
	entry, err := j.bucket.Get(ctx, slotKey(name))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fault("reading a slot", err)
	}
	return string(entry.Value()), entry.Revision(), nil
}

// SetSlot puts a job into a slot, or empties it with an empty jobID. revision is what Slot gave: CodeConflict when the
// slot changed since. Emptying an empty slot is success.
func (j *Jobs) SetSlot(ctx context.Context, name, jobID string, revision uint64) error {
	err := j.queue.storing(ctx, func(ctx context.Context) (err error) {
		switch key := slotKey(name); {
		case jobID != "" && revision == 0:
			_, err = j.bucket.Create(ctx, key, []byte(jobID))
		case jobID != "":
			_, err = j.bucket.Update(ctx, key, []byte(jobID), revision)
		case revision != 0:
			err = j.bucket.Delete(ctx, key, jetstream.LastRevision(revision))
		}
		return err
	})
	return fault("setting a slot", err)
}

func slotKey(name string) string { return keySlot + EncodeToken(name) }
