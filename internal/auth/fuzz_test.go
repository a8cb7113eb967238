package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tutti/internal/auth"
	"tutti/internal/core"
)

// FuzzAuthenticate: only issued tokens are accepted, and errors contain nothing of a rejected one.
func FuzzAuthenticate(f *testing.F) {
	keys := newKeys(f, &keyStore{}, auth.KeysConfig{Now: new(clock).now})
	_, text := create(f, keys, "k", time.Time{}, "S1.WRITE")
	s, stranger := newSigner(f, "k1", jwt.SigningMethodEdDSA), newSigner(f, "k1", jwt.SigningMethodEdDSA)
	issued := map[string]bool{text: true, s.sign(f, claims(nil), nil): true}
	for token := range issued {
		f.Add(token)
		f.Add(token + "x")
		f.Add(token[1:])
	}
	for _, seed := range []string{
		"", "tutti_", "..", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJFZERTQSIsImtpZCI6e319.e30.AAAA",
		stranger.sign(f, claims(nil), nil), strings.Repeat("a", 20<<10), "tutti_0000000000000000_" + strings.Repeat("A", 43),
	} {
		f.Add(seed)
	}
	a := auth.New(keys, newJWT(f, auth.JWTConfig{PublicKey: s.pem(f)}), nil)
	f.Fuzz(func(t *testing.T, token string) {
		p, err := a.Authenticate(t.Context(), token)
		if issued[token] {
			if err != nil || !p.MayWrite("S1") {
				t.Fatalf("an issued token: %+v, %v", p, err)
			}
			return
		}
		if core.CodeOf(err) != core.CodeUnauthenticated || len(p.Scopes) > 0 || p.System {
			t.Fatalf("%q: %+v, %v", token, p, err)
		}
		if said := core.MessageOf(err) + core.HintOf(err); len(token) > 20 && strings.Contains(said, token) {
			t.Errorf("the token is in %q", said)
		}
	})
}
