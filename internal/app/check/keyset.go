package check

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
)

const (
	// maxKeySet is the largest key set that is read, in bytes.
	maxKeySet = 1 << 20
	// minRSABits is the smallest RSA key that may sign (RFC 7518, sections 3.3 and 3.5).
	minRSABits = 2048
)

// errNoKeySet is returned for a response that is not a key set.
var errNoKeySet = errors.New("not a JSON Web Key Set")

// keySetStatusError is a response with a status other than 200.
type keySetStatusError struct{ status int }

// Error returns the status only.
func (e *keySetStatusError) Error() string { return fmt.Sprintf("status %d", e.status) }

// webKey holds the members of a key that decide whether it is usable (RFC 7517, RFC 7518 section 6, RFC 8037).
type webKey struct {
	Type       string   `json:"kty"`
	Use        string   `json:"use"`
	Operations []string `json:"key_ops"`
	Algorithm  string   `json:"alg"`
	Curve      string   `json:"crv"`
	Modulus    string   `json:"n"`
	X          string   `json:"x"`
	Y          string   `json:"y"`
}

// fetchKeySet fetches the keys at an address.
func fetchKeySet(ctx context.Context, address string) ([]webKey, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("fetching a key set: %w", err)
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetching a key set: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, &keySetStatusError{resp.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKeySet+1))
	if err != nil {
		return nil, fmt.Errorf("reading a key set: %w", err)
	}
	return parseKeySet(body)
}

// parseKeySet parses a key set. A key that cannot be decoded is returned as an unusable one.
func parseKeySet(body []byte) ([]webKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if len(body) > maxKeySet || json.Unmarshal(body, &set) != nil || set.Keys == nil {
		return nil, errNoKeySet
	}
	keys := make([]webKey, len(set.Keys))
	for i, raw := range set.Keys {
		if json.Unmarshal(raw, &keys[i]) != nil {
			keys[i] = webKey{}
		}
	}
	return keys, nil
}

// usable reports whether tokens signed with k are accepted.
func (k webKey) usable() bool {
	if k.Use != "" && k.Use != "sig" || len(k.Operations) > 0 && !slices.Contains(k.Operations, "verify") {
		return false
	}
	for _, algorithm := range k.algorithms() {
		if k.Algorithm == "" || k.Algorithm == algorithm {
			return true
		}
	}
	return false
}

// algorithms returns the algorithms that a key of k's type and size can sign with.
func (k webKey) algorithms() []string {
	switch k.Type {
	case "RSA":
		n, err := base64.RawURLEncoding.DecodeString(k.Modulus)
		if err == nil && new(big.Int).SetBytes(n).BitLen() >= minRSABits {
			return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
		}
	case "EC":
		algorithm := map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[k.Curve]
		if algorithm != "" && k.X != "" && k.Y != "" {
			return []string{algorithm}
		}
	case "OKP":
		if x, err := base64.RawURLEncoding.DecodeString(k.X); err == nil && k.Curve == "Ed25519" && len(x) == 32 {
			return []string{"EdDSA"}
		}
	}
	return nil
}
