// Package signing signs the bodies of webhooks, those that tutti receives and those that it sends, and checks their signatures.
package signing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"tutti/internal/core"
)

const prefix = "sha256="

// Sign returns the value of X-Signature-256 for a body: "sha256=" and the hexadecimal HMAC-SHA256 of its bytes, as GitHub
// signs its webhooks.
func Sign(secret string, body []byte) string {
	return prefix + hex.EncodeToString(sum(secret, body))
}

// Check returns nil if signature, the value of X-Signature-256, is that of body; CodeUnauthenticated if it
// is missing or wrong. The comparison takes constant time.
func Check(secret string, body []byte, signature string) error {
	if signature == "" {
		return &core.Error{
			Code: core.CodeUnauthenticated, Message: "the signature is missing",
			Hint: "send X-Signature-256: sha256= and the hexadecimal HMAC-SHA256 of the body under the repository's secret",
		}
	}
	given, prefixed := strings.CutPrefix(signature, prefix)
	mac, err := hex.DecodeString(given)
	if !prefixed || err != nil || !hmac.Equal(mac, sum(secret, body)) {
		return &core.Error{
			Code: core.CodeUnauthenticated, Message: "the signature does not match",
			Hint: "sign the body's bytes as they are sent, with the secret that is configured for the repository",
		}
	}
	return nil
}

func sum(secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return mac.Sum(nil)
}
