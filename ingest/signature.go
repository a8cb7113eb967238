package ingest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"tutti/internal/core"
)

const signaturePrefix = "sha256="

// Sign gives the value of X-Signature-256 for a body: "sha256=" and the hexadecimal HMAC-SHA256 of its bytes, as GitHub
// signs its webhooks.
func Sign(secret string, body []byte) string {
	return signaturePrefix + hex.EncodeToString(sum(secret, body))
}

// CheckSignature tells whether signature, the value of X-Signature-256, is that of body; CodeUnauthenticated when it is
// missing or another one. The time that it takes tells nothing of the right one.
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

func sum(secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return mac.Sum(nil)
}
