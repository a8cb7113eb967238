package search

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"

	"tutti/internal/core"
)

// CursorKeyBytes is the length of Config.CursorKey.
const CursorKeyBytes = 32

// cursorFormat is part of the key derivation, so that cursors of another format are invalid.
const cursorFormat = "tutti cursor 2 "

// sealer encrypts values in cursors that callers must not read, and rejects values not encrypted with its key or for another
// alias. Processes with the same key accept each other's cursors. It is safe for concurrent use.
type sealer struct {
	aead  cipher.AEAD
	nonce []byte
	// seed is the seed of random orders.
	seed uint32
}

// newSealer returns a sealer with a key, or with a random key when key is nil.
func newSealer(key []byte) (*sealer, error) {
	if key == nil {
		key = make([]byte, CursorKeyBytes)
		rand.Read(key)
	}
	if len(key) != CursorKeyBytes {
		return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("the key of the index's cursors must have %d bytes", CursorKeyBytes))
	}
	const doing = "deriving the keys of cursors"
	var parts [3][]byte
	for i, use := range []string{"content", "nonce", "order"} {
		part, err := hkdf.Key(sha256.New, key, nil, cursorFormat+use, sha256.Size)
		if err != nil {
			return nil, core.WrapError(core.CodeInternal, doing, err)
		}
		parts[i] = part
	}
	block, err := aes.NewCipher(parts[0])
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, doing, err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, doing, err)
	}
	return &sealer{aead: aead, nonce: parts[1], seed: binary.BigEndian.Uint32(parts[2]) >> 1}, nil
}

// sealing encrypts cursors for one alias. It is not safe for concurrent use.
type sealing struct {
	*sealer
	alias []byte
	// nonces derives nonces from the plaintext: random ones of this length may repeat after some billions of cursors.
	nonces hash.Hash
	sealed []byte
}

func (s *sealer) sealing(alias string) *sealing {
	return &sealing{sealer: s, alias: []byte(alias), nonces: hmac.New(sha256.New, s.nonce)}
}

// seal appends the encrypted plain to dst as a JSON string.
func (s *sealing) seal(dst, plain []byte) []byte {
	s.nonces.Reset()
	for _, part := range [][]byte{s.alias, {0}, plain} {
		s.nonces.Write(part)
	}
	s.sealed = s.nonces.Sum(s.sealed[:0])[:s.aead.NonceSize()]
	s.sealed = s.aead.Seal(s.sealed, s.sealed, plain, s.alias)
	dst = append(dst, '"')
	dst = base64.RawURLEncoding.AppendEncode(dst, s.sealed)
	return append(dst, '"')
}

// open decrypts a cursor value for alias; false if it is invalid.
func (s *sealer) open(alias, text string) ([]byte, bool) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(sealed) < s.aead.NonceSize() {
		return nil, false
	}
	nonce, sealed := sealed[:s.aead.NonceSize()], sealed[s.aead.NonceSize():]
	plain, err := s.aead.Open(nil, nonce, sealed, []byte(alias))
	return plain, err == nil
}
