package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
)

// maxSetKeys bounds the keys of a key set: a token without a key id is tried with all matching ones.
const maxSetKeys = 128

// keySet is the set of keys of an issuer.
type keySet []publicKey

// candidates returns the keys that may have signed a token: those with its key id and those without one; all when the token has none.
func (s keySet) candidates(id, alg string) []publicKey {
	var found []publicKey
	for _, k := range s {
		if k.supports(alg) && (id == "" || k.id == "" || k.id == id) {
			found = append(found, k)
		}
	}
	return found
}

// parseKeys parses the published keys of an issuer: PEM, or else a JSON Web Key Set.
func parseKeys(body []byte) (set keySet, skipped []error, err error) {
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("-----BEGIN ")) {
		set, err = parsePEM(body)
		return set, nil, err
	}
	return parseKeySet(body)
}

// parseKeySet parses a JSON Web Key Set (RFC 7517). A key that cannot be used, such as one for encryption or of an unknown type, is
// ignored (section 5 there) and reported in skipped.
func parseKeySet(body []byte) (set keySet, skipped []error, err error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, nil, fmt.Errorf("decoding a key set: %w", err)
	}
	if document.Keys == nil {
		return nil, nil, errors.New("decoding a key set: it has no member keys")
	}
	if len(document.Keys) > maxSetKeys {
		return nil, nil, fmt.Errorf("decoding a key set: it has %d keys, the limit is %d", len(document.Keys), maxSetKeys)
	}
	set = make(keySet, 0, len(document.Keys))
	for i, raw := range document.Keys {
		key, err := parseJWK(raw)
		if err != nil {
			skipped = append(skipped, fmt.Errorf("key %d: %w", i, err))
			continue
		}
		set = append(set, key)
	}
	return set, skipped, nil
}

func parseJWK(raw []byte) (publicKey, error) {
	jwk, err := jwkset.NewJWKFromRawJSON(raw, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return publicKey{}, fmt.Errorf("reading a JSON web key: %w", err)
	}
	said := jwk.Marshal()
	if said.USE != "" && said.USE != jwkset.UseSig {
		return publicKey{}, fmt.Errorf("its use is %q", said.USE)
	}
	if len(said.KEYOPS) > 0 && !slices.Contains(said.KEYOPS, jwkset.KeyOpsVerify) {
		return publicKey{}, errors.New("its operations do not include verify")
	}
	return newPublicKey(said.KID, said.ALG.String(), jwk.Key())
}
