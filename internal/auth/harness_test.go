package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"tutti/internal/auth"
	"tutti/internal/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	issuer   = "https://issuer.example.org"
	audience = "tutti-api"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// clock is a clock that moves only with advance.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time           { return noon.Add(time.Duration(c.offset.Load())) }
func (c *clock) advance(by time.Duration) { c.offset.Add(int64(by)) }

// keyStore is a KeyStore in memory.
type keyStore struct {
	mu    sync.Mutex
	keys  []core.APIKey
	reads int
	fault error
	// reading is called after a key was read and before it is returned.
	reading func()
}

var _ auth.KeyStore = (*keyStore)(nil)

func (s *keyStore) AddKey(_ context.Context, key core.APIKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		return s.fault
	}
	s.keys = append(s.keys, key)
	return nil
}

func (s *keyStore) Key(_ context.Context, id string) (core.APIKey, error) {
	s.mu.Lock()
	s.reads++
	found, err := s.find(id)
	reading := s.reading
	s.mu.Unlock()
	if err != nil {
		return core.APIKey{}, err
	}
	if reading != nil {
		reading()
	}
	return *found, nil
}

func (s *keyStore) find(id string) (*core.APIKey, error) {
	if s.fault != nil {
		return nil, s.fault
	}
	for i := range s.keys {
		if s.keys[i].ID == id {
			key := s.keys[i]
			return &key, nil
		}
	}
	return nil, core.NewError(core.CodeNotFound, "there is no such API key")
}

func (s *keyStore) Keys(context.Context) ([]core.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.Clone(s.keys)
	slices.Reverse(keys)
	return keys, s.fault
}

func (s *keyStore) RevokeKey(_ context.Context, id string, at time.Time) (core.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(id); err != nil {
		return core.APIKey{}, err
	}
	i := slices.IndexFunc(s.keys, func(k core.APIKey) bool { return k.ID == id })
	if s.keys[i].RevokedAt.IsZero() {
		s.keys[i].RevokedAt = at
	}
	return s.keys[i], nil
}

func (s *keyStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

func newKeys(t testing.TB, store *keyStore, cfg auth.KeysConfig) *auth.Keys {
	t.Helper()
	keys, err := auth.NewKeys(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// signer signs tokens as an issuer does.
type signer struct {
	id     string
	method jwt.SigningMethod
	key    crypto.Signer
}

func newSigner(t testing.TB, id string, method jwt.SigningMethod) signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch method.Alg()[:2] {
	case "RS", "PS":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ES":
		curve := map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()}[method.Alg()]
		key, err = ecdsa.GenerateKey(curve, rand.Reader)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return signer{id: id, method: method, key: key}
}

// claims returns the claims of a token that is valid at noon, merged with others; a nil one is removed.
func claims(others jwt.MapClaims) jwt.MapClaims {
	all := jwt.MapClaims{
		"iss": issuer, "aud": audience, "sub": "alice", "scope": "S1.WRITE",
		"iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix(),
	}
	maps.Copy(all, others)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// sign returns a token with these claims; header is merged with its own.
func (s signer) sign(t testing.TB, c jwt.MapClaims, header map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(s.method, c)
	if s.id != "" {
		token.Header["kid"] = s.id
	}
	maps.Copy(token.Header, header)
	text, err := token.SignedString(s.key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// pem returns the public key as PEM.
func (s signer) pem(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// jwk returns the public key as a JSON Web Key, merged with others.
func (s signer) jwk(t testing.TB, others map[string]any) map[string]any {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	key := map[string]any{}
	switch k := s.key.Public().(type) {
	case *rsa.PublicKey:
		key["kty"], key["n"], key["e"] = "RSA", encode(k.N.Bytes()), encode(big.NewInt(int64(k.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		half := len(point) / 2
		key["kty"], key["crv"], key["x"], key["y"] = "EC", k.Params().Name, encode(point[1:1+half]), encode(point[1+half:])
	case ed25519.PublicKey:
		key["kty"], key["crv"], key["x"] = "OKP", "Ed25519", encode(k)
	}
	if s.id != "" {
		key["kid"] = s.id
	}
	maps.Copy(key, others)
	return key
}

// keyServer serves a key set that a test can change.
type keyServer struct {
	*httptest.Server
	mu     sync.Mutex
	answer http.HandlerFunc
	asked  int
}

func newKeyServer(t testing.TB, keys ...map[string]any) *keyServer {
	t.Helper()
	s := &keyServer{}
	s.serve(t, keys...)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked++
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *keyServer) serve(t testing.TB, keys ...map[string]any) {
	t.Helper()
	if keys == nil {
		keys = []map[string]any{}
	}
	body, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	s.do(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
}

func (s *keyServer) do(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *keyServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// newJWT returns a JWT that accepts tokens at noon, and closes it after the test.
func newJWT(t testing.TB, cfg auth.JWTConfig) *auth.JWT {
	t.Helper()
	cfg.Issuer, cfg.Audience = issuer, audience
	if cfg.Now == nil {
		cfg.Now = new(clock).now
	}
	j, err := auth.NewJWT(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}

func newAuthenticator(t testing.TB, cfg auth.JWTConfig) *auth.Authenticator {
	t.Helper()
	return auth.New(newKeys(t, &keyStore{}, auth.KeysConfig{}), newJWT(t, cfg), nil)
}

// wantError checks the code and message of an error.
func wantError(t *testing.T, err error, code core.Code, message string) {
	t.Helper()
	if core.CodeOf(err) != code || core.MessageOf(err) != message {
		t.Errorf("got %q %q, want %q %q (%v)", core.CodeOf(err), core.MessageOf(err), code, message, err)
	}
}

func names(set map[string]struct{}) []string { return slices.Sorted(maps.Keys(set)) }
