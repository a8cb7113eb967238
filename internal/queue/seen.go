package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	streamSeen = "SEEN_SIGNATURES"
	seenPrefix = "tutti.seen."
	// seenKept is how long a key is remembered, maxSeen how many are: the oldest is forgotten first.
	seenKept = 7 * 24 * time.Hour
	maxSeen  = 100_000
)

func (c Config) seenConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              streamSeen,
		Description:       "When signed notifications were first seen",
		Subjects:          []string{seenPrefix + "*", probePrefix + streamSeen},
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		MaxMsgsPerSubject: 1,
		MaxMsgs:           maxSeen,
		MaxBytes:          -1,
		MaxAge:            seenKept,
		Discard:           jetstream.DiscardOld,
		Replicas:          c.Replicas,
	}
}

// FirstSeen remembers key and returns when any process first did, the zero time when that is now. A key is remembered for a
// week, while no more than 100,000 later ones were seen.
func (q *Queue) FirstSeen(ctx context.Context, key string) (time.Time, error) {
	sum := sha256.Sum256([]byte(key))
	subject := seenPrefix + hex.EncodeToString(sum[:])
	for {
		err := fault("remembering a signature", q.publish(ctx, subject, nil,
			jetstream.WithExpectStream(streamSeen), jetstream.WithExpectLastSequencePerSubject(0)))
		if !isConflict(err) {
			return time.Time{}, err
		}
		m, err := q.seen.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) { // it was forgotten in between
			continue
		}
		if err != nil {
			return time.Time{}, fault("reading when a signature was first seen", err)
		}
		return m.Time, nil
	}
}
