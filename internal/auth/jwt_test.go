package auth_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"tutti/internal/auth"
	"tutti/internal/core"
)

// TestEveryAlgorithm: RS, PS, ES and EdDSA with a PEM key and a key set, and not with another algorithm's key.
func TestEveryAlgorithm(t *testing.T) {
	methods := []jwt.SigningMethod{
		jwt.SigningMethodRS256, jwt.SigningMethodRS384, jwt.SigningMethodRS512,
		jwt.SigningMethodPS256, jwt.SigningMethodPS384, jwt.SigningMethodPS512,
		jwt.SigningMethodES256, jwt.SigningMethodES384, jwt.SigningMethodES512, jwt.SigningMethodEdDSA,
	}
	for i, method := range methods {
		t.Run(method.Alg(), func(t *testing.T) {
			s := newSigner(t, "k1", method)
			other := newSigner(t, "k1", methods[(i+3)%len(methods)])
			server := newKeyServer(t, s.jwk(t, map[string]any{"use": "sig", "alg": method.Alg()}))
			for name, cfg := range map[string]auth.JWTConfig{
				"pem": {PublicKey: s.pem(t)}, "jwks": {JWKSURL: server.URL},
			} {
				a := newAuthenticator(t, cfg)
				p, err := a.Authenticate(t.Context(), s.sign(t, claims(nil), nil))
				if err != nil || p.Name != "alice" || !p.MayWrite("S1") {
					t.Errorf("%s: %+v, %v", name, p, err)
				}
				if _, err := a.Authenticate(t.Context(), other.sign(t, claims(nil), nil)); core.CodeOf(err) != core.CodeUnauthenticated {
					t.Errorf("%s: %s token: %v", name, other.method.Alg(), err)
				}
			}
		})
	}
}

// TestForgedTokens: invalid signatures are rejected, whatever the claims.
func TestForgedTokens(t *testing.T) {
	rs := newSigner(t, "k1", jwt.SigningMethodRS256)
	p384 := newSigner(t, "k2", jwt.SigningMethodES384)
	stranger := newSigner(t, "k1", jwt.SigningMethodRS256)
	// The P-384 key under an algorithm of P-256, which golang-jwt itself would accept.
	crossed := signer{id: "k2", method: crossedMethod{}, key: p384.key}
	server := newKeyServer(t, rs.jwk(t, map[string]any{"alg": "RS256"}), p384.jwk(t, nil))
	a := newAuthenticator(t, auth.JWTConfig{JWKSURL: server.URL})
	segment := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	body := strings.Split(rs.sign(t, claims(nil), nil), ".")
	hmac := func(key []byte) string {
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims(nil))
		token.Header["kid"] = "k1"
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	der, err := x509.MarshalPKIXPublicKey(rs.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	const signature, noKey, invalid, malformed = "the signature of the token is not valid",
		"the token is signed with a key that its issuer does not have", "the token is not valid",
		"the token is neither an API key nor a JSON Web Token"
	for _, tc := range []struct{ name, token, message string }{
		{"none", segment(`{"alg":"none","kid":"k1"}`) + "." + body[1] + ".", signature},
		{"none with a signature", segment(`{"alg":"none","kid":"k1"}`) + "." + body[1] + "." + body[2], signature},
		{"None", segment(`{"alg":"None","kid":"k1"}`) + "." + body[1] + ".", invalid},
		{"no algorithm", segment(`{"kid":"k1"}`) + "." + body[1] + "." + body[2], invalid},
		{"the public key as HMAC secret", hmac(rs.pem(t)), signature},
		{"the public key's DER as HMAC secret", hmac(der), signature},
		{"an empty HMAC secret", hmac([]byte{}), signature},
		{"another key under the same id", stranger.sign(t, claims(nil), nil), signature},
		{"an algorithm that the key is not for", signer{"k1", jwt.SigningMethodPS256, rs.key}.sign(t, claims(nil), nil), noKey},
		{"a curve that the algorithm is not for", crossed.sign(t, claims(nil), nil), noKey},
		{"an unknown key id", rs.sign(t, claims(nil), map[string]any{"kid": "k9"}), noKey},
		{"a key id that is a number", rs.sign(t, claims(nil), map[string]any{"kid": 1}), invalid},
		{"critical extensions", rs.sign(t, claims(nil), map[string]any{"crit": []string{"b64"}, "b64": false}), invalid},
		{"a key in the header", stranger.sign(t, claims(nil), map[string]any{"jwk": stranger.jwk(t, nil)}), signature},
		{"other claims", body[0] + "." + segment(`{"iss":"`+issuer+`","aud":"`+audience+`","exp":99999999999,"scope":"tutti.WRITE"}`) + "." + body[2], signature},
		{"no signature", body[0] + "." + body[1] + ".", signature},
		{"two parts", body[0] + "." + body[1], malformed},
		{"four parts", rs.sign(t, claims(nil), nil) + ".x", malformed},
		{"header that is no JSON", segment("{") + "." + body[1] + "." + body[2], malformed},
		{"claims that are a list", body[0] + "." + segment("[]") + "." + body[2], malformed},
		{"padding", body[0] + "=." + body[1] + "." + body[2], malformed},
		{"loose bits behind the signature", body[0] + "." + body[1] + "." + loosened(body[2]), malformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := a.Authenticate(t.Context(), tc.token)
			wantError(t, err, core.CodeUnauthenticated, tc.message)
			if diff := cmp.Diff(core.Principal{}, p); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// loosened changes the unused bits of the last base64 character.
func loosened(segment string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, segment[len(segment)-1])
	return segment[:len(segment)-1] + string(alphabet[last^1])
}

// crossedMethod is named ES256 but signs with any curve, in the format of ES256.
type crossedMethod struct{}

func (crossedMethod) Alg() string                      { return "ES256" }
func (crossedMethod) Verify(string, []byte, any) error { return nil }

func (crossedMethod) Sign(text string, key any) ([]byte, error) {
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), sum[:])
	if err != nil {
		return nil, err
	}
	half := new(big.Int).Lsh(big.NewInt(1), 256)
	signature := make([]byte, 64)
	r.Mod(r, half).FillBytes(signature[:32])
	s.Mod(s, half).FillBytes(signature[32:])
	return signature, nil
}

func TestClaimsAreChecked(t *testing.T) {
	s := newSigner(t, "", jwt.SigningMethodES256)
	a := newAuthenticator(t, auth.JWTConfig{PublicKey: s.pem(t)})
	at := func(d time.Duration) int64 { return noon.Add(d).Unix() }
	const expired, early, lacks = "the token has expired", "the token is not valid yet", "the token lacks a required claim"
	for _, tc := range []struct {
		name    string
		claims  jwt.MapClaims
		message string
	}{
		{"good", nil, ""},
		{"audience among others", jwt.MapClaims{"aud": []string{"x", audience}}, ""},
		{"without times but exp", jwt.MapClaims{"iat": nil}, ""},
		{"expired within the leeway", jwt.MapClaims{"exp": at(-29 * time.Second)}, ""},
		{"expired", jwt.MapClaims{"exp": at(-31 * time.Second)}, expired},
		{"no expiry", jwt.MapClaims{"exp": nil}, lacks},
		{"an expiry of zero", jwt.MapClaims{"exp": 0}, lacks},
		{"an expiry in words", jwt.MapClaims{"exp": "tomorrow"}, "the token is not valid"},
		{"not yet, within the leeway", jwt.MapClaims{"nbf": at(29 * time.Second)}, ""},
		{"not yet", jwt.MapClaims{"nbf": at(31 * time.Second)}, early},
		{"issued in the future", jwt.MapClaims{"iat": at(31 * time.Second)}, early},
		{"another issuer", jwt.MapClaims{"iss": issuer + "/"}, "the token was issued by another issuer"},
		{"no issuer", jwt.MapClaims{"iss": nil}, lacks},
		{"another audience", jwt.MapClaims{"aud": "song"}, "the token is for another service"},
		{"other audiences", jwt.MapClaims{"aud": []string{"song", "score"}}, "the token is for another service"},
		{"no audience", jwt.MapClaims{"aud": nil}, lacks},
		{"an empty audience", jwt.MapClaims{"aud": []string{}}, lacks},
		{"a subject that is a number", jwt.MapClaims{"sub": 7}, "the token is not valid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := a.Authenticate(t.Context(), s.sign(t, claims(tc.claims), nil))
			if tc.message == "" && err == nil {
				return
			}
			wantError(t, err, core.CodeUnauthenticated, tc.message)
		})
	}
}

// TestSubject: property belongs to a Principal.ID, so IDs must be distinct.
func TestSubject(t *testing.T) {
	s := newSigner(t, "", jwt.SigningMethodES256)
	a := newAuthenticator(t, auth.JWTConfig{PublicKey: s.pem(t)})
	const nobody = "the token has no subject"
	for _, tc := range []struct {
		name          string
		claims        jwt.MapClaims
		want, message string
	}{
		{"sub", nil, "alice", ""},
		{"sub before the others", jwt.MapClaims{"client_id": "portal", "azp": "app"}, "alice", ""},
		{"client_id", jwt.MapClaims{"sub": nil, "client_id": "portal", "azp": "app"}, "portal", ""},
		{"azp", jwt.MapClaims{"sub": nil, "azp": "app"}, "app", ""},
		{"an empty sub", jwt.MapClaims{"sub": "", "client_id": "", "azp": "app"}, "app", ""},
		{"none", jwt.MapClaims{"sub": nil}, "", nobody},
		{"empty ones", jwt.MapClaims{"sub": "", "client_id": "", "azp": ""}, "", nobody},
		{"ones that are no strings", jwt.MapClaims{"sub": nil, "client_id": 7, "azp": []string{"app"}}, "", nobody},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := a.Authenticate(t.Context(), s.sign(t, claims(tc.claims), nil))
			if tc.message != "" {
				wantError(t, err, core.CodeUnauthenticated, tc.message)
				if want := "it needs the claim sub, or for a client the claim client_id or azp"; core.HintOf(err) != want {
					t.Errorf("hint %q", core.HintOf(err))
				}
				return
			}
			if err != nil || p.ID != "jwt:"+issuer+"|"+tc.want || p.Name != tc.want {
				t.Errorf("got %+v, %v", p, err)
			}
		})
	}
}

func TestScopesOfAToken(t *testing.T) {
	s := newSigner(t, "", jwt.SigningMethodEdDSA)
	a := newAuthenticator(t, auth.JWTConfig{PublicKey: s.pem(t)})
	type m = map[string]any
	for _, tc := range []struct {
		name   string
		claims jwt.MapClaims
		want   []string
	}{
		{"a string", jwt.MapClaims{"scope": "openid  S1.WRITE S2.READ "}, []string{"S1.WRITE", "S2.READ", "openid"}},
		{"a list", jwt.MapClaims{"scope": []string{"S1.WRITE", "", "a b"}}, []string{"S1.WRITE", "a b"}},
		{"scp, a list", jwt.MapClaims{"scope": nil, "scp": []string{"S1.WRITE"}}, []string{"S1.WRITE"}},
		{"scp, a string", jwt.MapClaims{"scope": nil, "scp": "S1.WRITE S2.READ"}, []string{"S1.WRITE", "S2.READ"}},
		{"context.scope, a list", jwt.MapClaims{"scope": nil, "context": m{"scope": []string{"S1.WRITE"}}}, []string{"S1.WRITE"}},
		{"context.scope, a string", jwt.MapClaims{"scope": nil, "context": m{"scope": "S1.WRITE"}}, []string{"S1.WRITE"}},
		{"all at once", jwt.MapClaims{"scope": "a b", "scp": []string{"b", "c"}, "context": m{"scope": "d"}}, []string{"a", "b", "c", "d"}},
		{"none", jwt.MapClaims{"scope": nil}, nil},
		{"what is no scope", jwt.MapClaims{"scope": 7, "scp": []any{1, nil, m{}, "a"}, "context": "tutti.WRITE"}, []string{"a"}},
		{"another case", jwt.MapClaims{"scope": nil, "Scope": "tutti.WRITE", "SCP": "tutti.WRITE"}, nil},
		{"a wide space does not separate", jwt.MapClaims{"scope": "S1\u00a0tutti.WRITE"}, []string{"S1\u00a0tutti.WRITE"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := a.Authenticate(t.Context(), s.sign(t, claims(tc.claims), nil))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, p.Scopes); diff != "" {
				t.Error(diff)
			}
			if p.System {
				t.Error("may do everything")
			}
		})
	}
	p, err := a.Authenticate(t.Context(), s.sign(t, claims(jwt.MapClaims{"scope": "tutti.WRITE"}), nil))
	if err != nil || !p.System {
		t.Errorf("the system: %+v, %v", p, err)
	}
}

func TestPublicKeyFile(t *testing.T) {
	s, other := newSigner(t, "any", jwt.SigningMethodES256), newSigner(t, "", jwt.SigningMethodRS256)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "issuer"}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, s.key.Public(), s.key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	pkcs1 := block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(other.key.Public().(*rsa.PublicKey)))
	private, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		file []byte
		by   signer
	}{
		"public key":  {s.pem(t), s},
		"certificate": {block("CERTIFICATE", certificate), s},
		"PKCS #1":     {pkcs1, other},
		"the second":  {bytes.Join([][]byte{[]byte("# old and new\n"), s.pem(t), pkcs1}, nil), other},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthenticator(t, auth.JWTConfig{PublicKey: tc.file})
			if _, err := a.Authenticate(t.Context(), tc.by.sign(t, claims(nil), nil)); err != nil {
				t.Error(err)
			}
		})
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, message string
		file          []byte
	}{
		{"text", "the public key file contains no PEM block", []byte("secret")},
		{"private key", "block 1 of the public key file cannot be used: it is a PRIVATE KEY", block("PRIVATE KEY", private)},
		{"damaged", "block 2 of the public key file cannot be used: it is damaged", append(s.pem(t), block("PUBLIC KEY", []byte("x"))...)},
		{
			"weak RSA", "block 1 of the public key file cannot be used: the RSA key has 1024 bits, which is under 2048",
			signer{key: weak}.pem(t),
		},
		{"odd curve", "block 1 of the public key file cannot be used: no algorithm uses the curve P-224", signer{key: p224}.pem(t)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := auth.NewJWT(t.Context(), auth.JWTConfig{Issuer: issuer, Audience: audience, PublicKey: tc.file})
			wantError(t, err, core.CodeInvalid, tc.message)
		})
	}
}

func TestJWTConfigIsChecked(t *testing.T) {
	const noIssuer = "JSON Web Tokens need an issuer and an audience, or the settings that allow any"
	const oneOf = "set either the URL of a key set or a public key"
	const address = "the URL of the key set must be an absolute http or https URL"
	const plain = "the URL of the key set is plain http on another machine"
	for i, tc := range []struct {
		cfg     auth.JWTConfig
		message string
	}{
		{auth.JWTConfig{Audience: audience, JWKSURL: "https://a.example"}, noIssuer},
		{auth.JWTConfig{Issuer: issuer, JWKSURL: "https://a.example"}, noIssuer},
		{auth.JWTConfig{Issuer: issuer, Audience: audience}, oneOf},
		{auth.JWTConfig{Issuer: issuer, Audience: audience, JWKSURL: "https://a.example", PublicKey: []byte("x")}, oneOf},
		{auth.JWTConfig{Issuer: issuer, Audience: audience, JWKSURL: "a.example/keys"}, address},
		{auth.JWTConfig{Issuer: issuer, Audience: audience, JWKSURL: "file:///keys"}, address},
		{auth.JWTConfig{Issuer: issuer, Audience: audience, JWKSURL: "https://"}, address},
		{auth.JWTConfig{Issuer: issuer, Audience: audience, JWKSURL: "http://user:pass word@a"}, address},
		{auth.JWTConfig{Issuer: issuer, Audience: audience, JWKSURL: "http://a.example/keys"}, plain},
		{auth.JWTConfig{Issuer: issuer, Audience: audience, JWKSURL: "https://a.example", Timeout: -1}, "times must not be negative"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			_, err := auth.NewJWT(t.Context(), tc.cfg)
			wantError(t, err, core.CodeInvalid, tc.message)
		})
	}
}
