package apitest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tutti/http/api"
	"tutti/internal/auth"
	"tutti/internal/core"
	"tutti/internal/tools/fakes"
)

// Who a test asks as. Each of those with scopes has an API key and a JWT.
const (
	Anonymous    = "anonymous"
	Malformed    = "malformed"
	Unknown      = "unknown token"
	Expired      = "expired"
	ForeignRight = "another organization's writer"
	ReadRight    = "reader"
	WriteRight   = "writer"
	SystemRight  = "system"
)

// scopesOf are the scopes of those who have a token that is good.
func scopesOf() map[string][]string {
	return map[string][]string{
		ForeignRight: {"S2.WRITE", "S2.READ"}, ReadRight: {"S1.READ"}, WriteRight: {"S1.WRITE"}, SystemRight: {"tutti.WRITE"},
	}
}

// TokenIssuer makes tokens and is the Authenticator that takes them.
type TokenIssuer struct {
	*auth.Authenticator
	Key *ecdsa.PrivateKey
	// Headers are the values of Authorization by caller and kind of token; empty for the anonymous caller.
	Headers map[string]map[string][]string
}

// MemoryKeyStore is an auth.KeyStore in memory.
type MemoryKeyStore struct {
	mu    sync.Mutex
	keys  []core.APIKey
	Fault error
}

// AddKey implements auth.KeyStore.
func (s *MemoryKeyStore) AddKey(_ context.Context, key core.APIKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, key)
	return nil
}

// Key implements auth.KeyStore; it fails with Fault.
func (s *MemoryKeyStore) Key(_ context.Context, id string) (core.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.keys {
		if s.Fault == nil && key.ID == id {
			return key, nil
		}
	}
	if s.Fault != nil {
		return core.APIKey{}, s.Fault
	}
	return core.APIKey{}, core.NewError(core.CodeNotFound, "there is no such API key")
}

// Keys implements auth.KeyStore.
func (s *MemoryKeyStore) Keys(context.Context) ([]core.APIKey, error) { return nil, nil }

// RevokeKey implements auth.KeyStore.
func (s *MemoryKeyStore) RevokeKey(context.Context, string, time.Time) (core.APIKey, error) {
	return core.APIKey{}, core.NewError(core.CodeNotFound, "there is no such API key")
}

// NewTokenIssuer makes tokens of every kind, at noon; store is where the API keys are.
func NewTokenIssuer(t *testing.T, store *MemoryKeyStore) TokenIssuer {
	t.Helper()
	now := func() time.Time { return Noon }
	keys, err := auth.NewKeys(store, auth.KeysConfig{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.NewJWT(t.Context(), auth.JWTConfig{
		PublicKey: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), Issuer: "issuer", Audience: "tutti", Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tokens.Close)
	d := TokenIssuer{Authenticator: auth.New(keys, tokens, nil), Key: key, Headers: map[string]map[string][]string{
		Anonymous: {"none": nil},
		Malformed: {
			"basic": {"Basic dHV0dGk6dHV0dGk="}, "scheme alone": {"Bearer"}, "no token": {"Bearer "}, "only padding": {"Bearer =="},
			"two words": {"Bearer a b"}, "no scheme": {"abc"}, "a list": {"Bearer a, Bearer b"}, "quotes": {`Bearer "a"`}, "empty": {""},
		},
		Unknown: {
			"api key": {"Bearer tutti_0123456789abcdef_" + strings.Repeat("A", 43)}, "text": {"Bearer hunter2"},
			"unsigned": {"Bearer eyJhbGciOiJub25lIn0.eyJzY29wZSI6InR1dHRpLldSSVRFIn0."},
		},
		Expired: {"jwt": {"Bearer " + Signed(t, key, []string{"tutti.WRITE"}, -time.Hour)}},
	}}
	for who, scopes := range scopesOf() {
		_, text, err := keys.Create(t.Context(), who, scopes, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		d.Headers[who] = map[string][]string{
			"api key": {"Bearer " + text}, "jwt": {"bearer  " + Signed(t, key, scopes, time.Hour)},
		}
	}
	_, short, err := keys.Create(t.Context(), Expired, []string{"tutti.WRITE"}, Noon.Add(time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	store.keys[len(store.keys)-1].ExpiresAt = Noon
	d.Headers[Expired]["api key"] = []string{"Bearer " + short}
	system := d.Headers[SystemRight]["api key"][0]
	d.Headers[Malformed]["twice"] = []string{system, system}
	return d
}

// Signed signs a token that is good for a time from noon on.
func Signed(t *testing.T, key *ecdsa.PrivateKey, scopes []string, good time.Duration) string {
	t.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"iss": "issuer", "aud": "tutti", "sub": "alice", "exp": Noon.Add(good).Unix(), "scope": strings.Join(scopes, " "),
	}).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Header returns one Authorization header of a caller.
func (d TokenIssuer) Header(who string) []string { return d.Headers[who]["api key"] }

// GuardedHandler returns a Handler that asks an Authenticator who a caller is.
func GuardedHandler(t *testing.T, p *Ports, authenticator api.Authenticator, cfg api.Config) Handler {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return Noon }
	}
	cfg.Authenticator = authenticator
	h, err := Assemble(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return Handler{Router: h}
}

// Silent returns ports that fail the test when they are called.
func Silent() *Ports {
	return &Ports{Ports: &fakes.Ports{Letters: &fakes.Letters{}}, Metadata: &MetadataMock{}, Catalogues: NewShelf(), Searches: &Searches{}}
}

// unread is a body that records whether it is read.
type unread struct {
	io.Reader
	read bool
}

func (u *unread) Read(b []byte) (int, error) {
	u.read = true
	return u.Reader.Read(b)
}

// AccessAnswer is the answer to one request.
type AccessAnswer struct {
	*http.Response
	Content []byte
	Read    bool
}

// RequestWith asks for a target with Authorization headers, and holds the answer against the OpenAPI document.
func RequestWith(t *testing.T, h Handler, method, target string, authorization []string) AccessAnswer {
	t.Helper()
	body := &unread{Reader: strings.NewReader("{}")}
	r := httptest.NewRequestWithContext(t.Context(), method, target, body)
	r.ContentLength = 2
	r.Header.Set("X-Request-Id", TestRequestID)
	r.Header.Set("Content-Type", "application/json")
	for _, v := range authorization {
		r.Header.Add("Authorization", v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	got := AccessAnswer{Response: w.Result(), Content: w.Body.Bytes(), Read: body.read}
	if method != http.MethodHead {
		checkAgainstDocument(t, h, r, got.Response, got.Content)
	}
	return got
}

// The callers whom a route may accept.
var (
	// UnlessInvalid: no token is required, but a token in the request must be valid.
	UnlessInvalid = []string{Anonymous, ForeignRight, ReadRight, WriteRight, SystemRight}
	AnyToken      = []string{ForeignRight, ReadRight, WriteRight, SystemRight}
	SystemOnly    = []string{SystemRight}
)

// OfS1 returns ports that all succeed, whose jobs and dead letters are S1's, with one catalogue.
func OfS1() *Ports {
	p := Working()
	p.Catalogues.Put(Participants())
	p.GetFn = func(id string) (core.Job, error) { return OrganizationJob(id, "S1"), nil }
	p.WatchFn = func(_ context.Context, _ string, each func(core.JobChange) error) error {
		job := OrganizationJob("x1", "S1")
		job.State = core.JobSucceeded
		_ = each(core.JobChange{Revision: 1, Job: &job})
		return each(core.JobChange{})
	}
	letter := core.DeadLetter{ID: "x1", Repository: "song.ca", Organization: "S1", RecordID: "r1", Reason: core.ReasonRejected}
	p.Letters.GetFn = func(string) (core.DeadLetter, error) { return letter, nil }
	return p
}

// OrganizationJob returns a queued job of an organization.
func OrganizationJob(id, organization string) core.Job {
	job := QueuedJob(id)
	job.Scope, job.Organization = core.ScopeOrganization, organization
	return job
}

// NewColdAuthenticator returns an Authenticator that has looked at none of the keys of a store.
func NewColdAuthenticator(t *testing.T, store *MemoryKeyStore) *auth.Authenticator {
	t.Helper()
	keys, err := auth.NewKeys(store, auth.KeysConfig{Now: func() time.Time { return Noon }})
	if err != nil {
		t.Fatal(err)
	}
	return auth.New(keys, nil, nil)
}
