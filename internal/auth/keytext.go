package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

const (
	// keyPrefix starts every API key, so that keys are recognizable, also for scanners of leaked files.
	keyPrefix = "tutti_"
	// idBytes is the number of random bytes of a key's public part, secretBytes that of its secret.
	idBytes     = 8
	secretBytes = 32
)

// keyText is the text of an API key, tutti_<id>_<secret>: the id is 16 hexadecimal digits, the secret 43 characters of
// base64url.
type keyText struct{ id, secret string }

func newKeyText() keyText {
	// crypto/rand.Read returns no error since Go 1.24.
	var id [idBytes]byte
	_, _ = rand.Read(id[:])
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:])
	return keyText{id: hex.EncodeToString(id[:]), secret: base64.RawURLEncoding.EncodeToString(secret[:])}
}

// parseKeyText parses the text of a key; it reports false for a text that newKeyText cannot have made.
func parseKeyText(text string) (keyText, bool) {
	rest, ok := strings.CutPrefix(text, keyPrefix)
	if !ok {
		return keyText{}, false
	}
	id, secret, ok := strings.Cut(rest, "_")
	if !ok || len(id) != hex.EncodedLen(idBytes) || len(secret) != base64.RawURLEncoding.EncodedLen(secretBytes) {
		return keyText{}, false
	}
	if strings.Trim(id, "0123456789abcdef") != "" {
		return keyText{}, false
	}
	return keyText{id: id, secret: secret}, true
}

// String returns the complete text.
func (k keyText) String() string { return keyPrefix + k.id + "_" + k.secret }

// hash returns the stored hash of the secret. The secret has 256 bits of randomness, so it needs no slow hash.
func (k keyText) hash() []byte {
	sum := sha256.Sum256([]byte(k.secret))
	return sum[:]
}
