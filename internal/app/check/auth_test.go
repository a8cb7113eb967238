package check_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tutti/internal/app/check"
	"tutti/internal/tools/testkit"
)

func TestAuthOff(t *testing.T) {
	for name, tt := range map[string]struct{ file, want string }{
		"on this machine": {"", "ok: authentication is off; 127.0.0.1:8080 can only be reached from this machine"},
		"for all": {
			"server: {listen: ':8080'}\nauth: {allowInsecure: true}",
			"warn: authentication is off, and :8080 can be reached from other machines -> set auth.mode: token, or restrict access with a proxy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := check.Run(t.Context(), builtInConfig(t, t.TempDir(), tt.file), check.Options{})
			wantLines(t, of(report, "auth"), tt.want)
			wantLines(t, of(report, "configuration"), "ok: valid, with 1 repository")
		})
	}
}

func TestAPIKeys(t *testing.T) {
	dir := t.TempDir()
	file := "auth: {mode: token, systemScope: sys, writeSuffix: .W}"
	t.Run("none", func(t *testing.T) {
		report := check.Run(t.Context(), builtInConfig(t, dir, file), check.Options{})
		wantLines(t, of(report, "auth"), "warn: auth.mode is token, but there is no valid API key -> "+
			"create the first one while tutti is stopped: tutti keys create --config FILE --name NAME --scope sys.W")
		if !report.OK {
			t.Errorf("a warning failed: %+v", report)
		}
	})
	s, end := openStore(t, dir)
	execute(t, s, aKey)
	end()
	t.Run("one", func(t *testing.T) {
		wantLines(t, of(check.Run(t.Context(), builtInConfig(t, dir, file), check.Options{}), "auth"), "ok: 1 API key is valid")
	})
	t.Run("a store that does not say", func(t *testing.T) {
		more := file + fmt.Sprintf("\nstore: {url: %q}", "postgres://"+testkit.NewAddress(t))
		wantLines(t, of(check.Run(t.Context(), builtInConfig(t, dir, more), check.Options{}), "auth"))
	})
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// modulus returns an RSA modulus of so many bits.
func modulus(bits int) string {
	b := make([]byte, bits/8)
	b[0] = 0x80
	return base64url(b)
}

func TestKeySet(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes() // 4, X, Y
	if err != nil {
		t.Fatal(err)
	}
	p256 := fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":%q,"y":%q}`, base64url(point[1:33]), base64url(point[33:]))
	for name, tt := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"RSA":             {200, fmt.Sprintf(`{"keys":[{"kty":"RSA","n":%q,"e":"AQAB","alg":"RS256","use":"sig"}]}`, modulus(2048)), "ok: 127.0.0.1:* lists 1 key that tokens can be signed with"},
		"a short RSA key": {200, fmt.Sprintf(`{"keys":[{"kty":"RSA","n":%q,"e":"AQAB"}]}`, modulus(1024)), "fail: 127.0.0.1:* lists 1 key, but none can be used -> have the issuer publish an RSA key*"},
		"EC and Ed25519":  {200, fmt.Sprintf(`{"keys":[%s,{"kty":"OKP","crv":"Ed25519","x":%q}]}`, p256, modulus(256)), "ok: 127.0.0.1:* lists 2 keys that tokens can be signed with"},
		"some that cannot be used": {
			200, fmt.Sprintf(`{"keys":[%s,{"kty":"oct","k":"AAAA"},{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"},{"kty":"OKP","crv":"X25519","x":"AA"},`+
				`{"kty":"RSA","n":%[2]q,"use":"enc"},{"kty":"RSA","n":%[2]q,"alg":"HS256"},{"kty":"RSA","n":%[2]q,"key_ops":["wrapKey"]},7,{"kty":3}]}`, p256, modulus(2048)),
			"ok: 127.0.0.1:* lists 1 key that tokens can be signed with, and 8 that cannot be used",
		},
		"no key":              {200, `{"keys":[]}`, "fail: 127.0.0.1:* lists 0 keys, but none can be used -> have the issuer publish an RSA key of at least 2048 bits, an EC key of P-256, P-384 or P-521, or an Ed25519 key"},
		"a web page":          {200, "<html>", "fail: 127.0.0.1:* answered, but not with a JSON Web Key Set or a PEM public key -> check auth.jwt.jwksUrl*"},
		"another document":    {200, `{"issuer":"i"}`, "fail: 127.0.0.1:* answered, but not with a JSON Web Key Set or a PEM public key -> check auth.jwt.jwksUrl*"},
		"too large":           {200, `{"keys":[],"x":"` + strings.Repeat("x", 1<<20) + `"}`, "fail: 127.0.0.1:* answered, but not with a JSON Web Key Set or a PEM public key -> check auth.jwt.jwksUrl*"},
		"not there":           {404, "", "fail: 127.0.0.1:* answered with status 404 instead of keys -> check auth.jwt.jwksUrl: use the jwks_uri in the issuer's /.well-known/openid-configuration"},
		"a failure of theirs": {500, "s3cret", "fail: 127.0.0.1:* answered with status 500 instead of keys -> check auth.jwt.jwksUrl*"},
	} {
		t.Run(name, func(t *testing.T) {
			issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			t.Cleanup(issuer.Close)
			file := fmt.Sprintf("auth: {mode: token, jwt: {jwksUrl: %q, issuer: i, audience: a}}", issuer.URL+"/keys")
			report := check.Run(t.Context(), builtInConfig(t, t.TempDir(), file), check.Options{})
			wantLines(t, of(report, "auth"), "ok: no API key is valid; only JSON Web Tokens are accepted", tt.want)
			if report.OK != strings.HasPrefix(tt.want, "ok") {
				t.Errorf("report %+v", report)
			}
		})
	}
}

func TestKeySetThatDoesNotCome(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(release) })
	for name, tt := range map[string]struct{ address, want string }{
		"nothing listens": {"http://" + testkit.NewAddress(t), "fail: 127.0.0.1:* does not answer: nothing listens there -> check host and port, and that the service runs"},
		"no answer":       {slow.URL, "fail: 127.0.0.1:* does not answer: no answer in time -> check host and port, and that no firewall blocks the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			file := fmt.Sprintf("auth: {mode: token, jwt: {jwksUrl: %q, issuer: i, audience: a}}", tt.address)
			report := check.Run(t.Context(), builtInConfig(t, t.TempDir(), file), check.Options{Timeout: 200 * time.Millisecond})
			wantLines(t, of(report, "auth"), "ok: *", tt.want)
		})
	}
}

func TestPublicKeyFile(t *testing.T) {
	good, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	encoded := func(key any) []byte {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"good":    {encoded(&good.PublicKey), "ok: JSON Web Tokens of i are checked with the key in " + file},
		"short":   {encoded(&short.PublicKey), "fail: auth.jwt.publicKeyFile: * 1024 bits* -> provide *"},
		"damaged": {pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("s3cret")}), "fail: auth.jwt.publicKeyFile: * -> provide *"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			cfg := builtInConfig(t, t.TempDir(), fmt.Sprintf("auth: {mode: token, jwt: {publicKeyFile: %q, issuer: i, audience: a}}", file))
			wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "auth"), "ok: no API key is valid; only JSON Web Tokens are accepted", tt.want)
		})
	}
}

// TestOpaqueTokens: the servers that check tokens are asked about a random one, which they must reject.
func TestOpaqueTokens(t *testing.T) {
	for name, tt := range map[string]struct {
		status             int
		body               string
		want, wantExchange string
	}{
		"rejected": {401, `{"error":"x"}`, "ok: 127.0.0.1:* rejects a random token, as it must", "ok: 127.0.0.1:* rejects the exchange of a random token for permissions, as it must"},
		"not there": {
			404, "", "fail: 127.0.0.1:* answered with status 404 -> check auth.introspection.url", "fail: 127.0.0.1:* answered with status 404 -> check auth.uma.tokenUrl",
		},
		"accepted": {
			200, `{"active":true}`, "fail: 127.0.0.1:* accepted a random token -> check auth.introspection.url", "fail: 127.0.0.1:* answered, but not as specified -> check auth.uma.tokenUrl",
		},
		"a failure of theirs": {
			500, "s3cret", "fail: 127.0.0.1:* answered with status 500 -> check auth.introspection.url", "fail: 127.0.0.1:* answered with status 500 -> check auth.uma.tokenUrl",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			t.Cleanup(server.Close)
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "key.pem")
			if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg := builtInConfig(t, t.TempDir(), fmt.Sprintf("auth: {mode: token, jwt: {publicKeyFile: %q, anyIssuer: true, anyAudience: true}, "+
				"introspection: {url: %q}, uma: {tokenUrl: %q, clientId: c}}", file, server.URL, server.URL))
			wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "auth"),
				"ok: no API key of tutti is valid; only tokens of other servers are accepted",
				"ok: JSON Web Tokens of any issuer are checked with the key in "+file, tt.want, tt.wantExchange)
		})
	}
	rejecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(rejecting.Close)
	cfg := builtInConfig(t, t.TempDir(), fmt.Sprintf("auth: {mode: token, introspection: {url: %q, clientId: c, clientSecret: s}}", rejecting.URL))
	wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "auth"), "ok: *",
		"ok: 127.0.0.1:* rejects a random token, as it must; it may reject every token if clientId or clientSecret is wrong")
	at := "http://" + testkit.NewAddress(t)
	cfg = builtInConfig(t, t.TempDir(), fmt.Sprintf("auth: {mode: token, introspection: {url: %q}}", at))
	wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "auth"), "ok: *",
		"fail: 127.0.0.1:* does not answer: nothing listens there -> check host and port, and that the service runs")
}
