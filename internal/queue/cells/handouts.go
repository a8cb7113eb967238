package cells

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/queue/natsconn"
)

const (
	// keyHandOuts is the Prefix of the keys, by message sequence, that count how often a message was handed out without
	// ending.
	keyHandOuts = "begun."
	// handOutsTTL is longer than a supervisor waits before it restarts a process that keeps crashing.
	handOutsTTL = 24 * time.Hour
)

func handOutsKey(sequence uint64) string { return fmt.Sprintf("%s%d", keyHandOuts, sequence) }

// HandOuts counts how often messages were handed out to consumers, by all processes, to detect crash loops.
type HandOuts struct {
	bucket *Bucket
	// current holds the sequences of messages that this process has counted.
	current sync.Map
}

// Count returns how often a message was handed out. A count of another message with the same sequence is of a
// stream that was deleted.
func (h *HandOuts) Count(ctx context.Context, sequence uint64, storedAt time.Time) (int, error) {
	m, err := h.bucket.Stream.GetLastMsgForSubject(ctx, Prefix+handOutsKey(sequence))
	if natsconn.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, natsconn.WrapError("reading how often a request was handed out", err)
	}
	var at int64
	var times int
	if _, err := fmt.Sscan(string(m.Data), &at, &times); err != nil || at != storedAt.UnixNano() {
		return 0, nil //nolint:nilerr // not a count of this message
	}
	return times, nil
}

// Set stores how often a message was handed out, and that this process has it.
func (h *HandOuts) Set(ctx context.Context, sequence uint64, storedAt time.Time, times int) error {
	note := fmt.Appendf(nil, "%d %d", storedAt.UnixNano(), times)
	if err := h.bucket.Put(ctx, handOutsKey(sequence), note, jetstream.WithMsgTTL(handOutsTTL)); err != nil {
		return err
	}
	h.current.Store(sequence, nil)
	return nil
}

// Forget removes the count of a message that has ended, or waits without being processed. A count that is not removed
// expires after handOutsTTL.
func (h *HandOuts) Forget(ctx context.Context, sequence uint64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), natsconn.CallTimeout)
	defer cancel()
	if err := h.bucket.Purge(ctx, Prefix+handOutsKey(sequence)); err != nil {
		return err
	}
	h.current.Delete(sequence)
	return nil
}

// Current reports whether this process was handed out a message and has not forgotten it.
func (h *HandOuts) Current(sequence uint64) bool {
	_, ok := h.current.Load(sequence)
	return ok
}
