package ingest

import (
	"context"
	"fmt"

	"tutti/ingest/signing"
	"tutti/internal/core"
)

// signatureKey returns the key under which the signature of a body is stored. Without a secret there is no signature,
// and repetitions cannot be detected.
func (s *sender) signatureKey(repository string, body []byte) (key string, ok bool) {
	secret := s.cfg.Sources[repository].WebhookSecret
	if secret == "" || s.cfg.Signatures == nil {
		return "", false
	}
	return repository + "\x00" + signing.Sign(secret, body), true
}

// firstSeen returns the version for a body's removals: the time at which the same body was first accepted, 0 if it was
// not accepted before.
func (s *sender) firstSeen(ctx context.Context, repository string, body []byte) (core.Version, error) {
	key, ok := s.signatureKey(repository, body)
	if !ok {
		return 0, nil
	}
	at, err := s.cfg.Signatures.FirstSeen(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("finding an earlier notification: %w", err)
	}
	return s.asOf(at), nil
}

// remember stores that a body with removals was accepted. It is not called for a rejected body: when that is sent again,
// its removals are newer than what was indexed in between.
func (s *sender) remember(ctx context.Context, repository string, body []byte) error {
	key, ok := s.signatureKey(repository, body)
	if !ok {
		return nil
	}
	if err := s.cfg.Signatures.Remember(ctx, key); err != nil {
		return fmt.Errorf("storing the signature of a notification: %w", err)
	}
	return nil
}
