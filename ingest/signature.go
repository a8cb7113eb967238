package ingest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"tutti/internal/core"
)

const signaturePrefix = "sha256="

// Sign returns the value of X-Signature-256 for a body: "sha256=" and the hexadecimal HMAC-SHA256 of its bytes, as GitHub
// signs its webhooks.
func Sign(secret string, body []byte) string {
	return signaturePrefix + hex.EncodeToString(sum(secret, body))
}

// CheckSignature returns nil if signature, the value of X-Signature-256, is that of body; CodeUnauthenticated if it
// is missing or wrong. The comparison takes constant time.
func CheckSignature(secret string, body []byte, signature string) error {
	if signature == "" {
		return &core.Error{
			Code: core.CodeUnauthenticated, Message: "the signature is missing",
			Hint: "send X-Signature-256: sha256= and the hexadecimal HMAC-SHA256 of the body under the repository's secret",
		}
	}
	given, prefixed := strings.CutPrefix(signature, signaturePrefix)
	mac, err := hex.DecodeString(given)
	if !prefixed || err != nil || !hmac.Equal(mac, sum(secret, body)) {
		return &core.Error{
			Code: core.CodeUnauthenticated, Message: "the signature does not match",
			Hint: "sign the body's bytes as they are sent, with the secret that is configured for the repository",
		}
	}
	return nil
}

// signatureKey returns the key under which the signature of a body is stored. Without a secret there is no signature,
// and repetitions cannot be detected.
func (s *sender) signatureKey(repository string, body []byte) (key string, ok bool) {
	secret := s.cfg.Sources[repository].WebhookSecret
	if secret == "" || s.cfg.Signatures == nil {
		return "", false
	}
	return repository + "\x00" + Sign(secret, body), true
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

func sum(secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return mac.Sum(nil)
}
