package testkit

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// TokenEndpoint is the token endpoint of the authorization server "tests", which knows every client that sends its id with "-secret" appended
// as its secret (RFC 6749, section 4.4). Its tokens are JSON Web Tokens of the scope and the audience "kafka", which are valid for an hour; those of the
// path /expired have expired, those of /short are valid for 10 s, and those of /audience are for another audience.
type TokenEndpoint struct {
	key   *rsa.PrivateKey
	keyID string
}

// NewTokenEndpoint returns an endpoint that signs with an RSA key, PKCS #8 as PEM.
func NewTokenEndpoint(key []byte, keyID string) (*TokenEndpoint, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parsing a key: %w", err)
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("the key is not one of RSA")
	}
	return &TokenEndpoint{private, keyID}, nil
}

// ServeHTTP implements http.Handler.
func (e *TokenEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	if r.FormValue("grant_type") != "client_credentials" || secret != id+"-secret" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"invalid_client"}`))
		return
	}
	life, audience := 3600, "kafka"
	switch r.URL.Path {
	case "/expired":
		life = -120
	case "/audience":
		audience = "other"
	case "/short":
		life = 10
	}
	token, err := e.token(id, audience, life)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": life})
}

// token returns a token of a client that is valid for life seconds.
func (e *TokenEndpoint) token(client, audience string, life int) (string, error) {
	now := int(time.Now().Unix())
	header, err := json.Marshal(map[string]string{"alg": "RS256", "kid": e.keyID})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": "tests", "aud": audience, "sub": client, "scope": "kafka", "iat": now + min(life, 0) - 1, "exp": now + life,
	})
	if err != nil {
		return "", err
	}
	signed := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, e.key, crypto.SHA256, sum[:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), err
}
