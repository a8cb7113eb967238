package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/queue/natsconn"
)

const (
	streamSeen = "SEEN_SIGNATURES"
	seenPrefix = "tutti.seen."
	// seenTTL is how long a key is stored, maxSeen how many are: the oldest is discarded first.
	seenTTL = 7 * 24 * time.Hour
	maxSeen = 100_000
)

func seenConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              streamSeen,
		Description:       "When signed notifications were first seen",
		Subjects:          []string{seenPrefix + "*", natsconn.ProbePrefix + streamSeen},
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		MaxMsgsPerSubject: -1,
		MaxMsgs:           maxSeen,
		MaxBytes:          -1,
		AllowRollup:       true, // for the probe
		MaxAge:            seenTTL,
		Discard:           jetstream.DiscardOld,
		Replicas:          replicas,
	}
}

// Signatures stores when the signatures of notifications were first seen.
type Signatures struct {
	conn   *natsconn.Conn
	stream jetstream.Stream
}

// FirstSeen returns when a key was first stored by any process, the zero time if it was not.
func (s *Signatures) FirstSeen(ctx context.Context, key string) (time.Time, error) {
	m, err := s.stream.GetLastMsgForSubject(ctx, seenSubject(key))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, natsconn.WrapError("reading when a signature was first seen", err)
	}
	return m.Time, nil
}

// Remember stores a key for a week, or until 100,000 later ones are stored. A key that is already stored keeps its
// time.
func (s *Signatures) Remember(ctx context.Context, key string) error {
	_, err := s.conn.Publish(ctx, &nats.Msg{Subject: seenSubject(key)},
		jetstream.WithExpectStream(streamSeen), jetstream.WithExpectLastSequencePerSubject(0))
	err = natsconn.WrapError("remembering a signature", err)
	if natsconn.IsConflict(err) {
		return nil
	}
	return err
}

func seenSubject(key string) string {
	sum := sha256.Sum256([]byte(key))
	return seenPrefix + hex.EncodeToString(sum[:])
}
