package elastic_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/index/elastic"
	"tutti/internal/tools/testkit"
)

// signature verifies AWS Signature Version 4 as its specification says, from the request as received.
type signature struct {
	mu                     sync.Mutex
	keyID, secret, session string
	region, service        string
	verified               int
}

func (s *signature) set(keyID, secret, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keyID, s.secret, s.session = keyID, secret, session
}

// verify returns why the request is not signed by the credentials.
func (s *signature) verify(r *http.Request, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if scheme != "AWS4-HMAC-SHA256" {
		return errors.New("the request is not signed")
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(rest, ", ") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	date := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil || time.Since(at).Abs() > 5*time.Minute {
		return fmt.Errorf("the signature is of %q", date)
	}
	scope := date[:8] + "/" + s.region + "/" + s.service + "/aws4_request"
	if parts["Credential"] != s.keyID+"/"+scope {
		return fmt.Errorf("the credential is %s, want %s", parts["Credential"], s.keyID+"/"+scope)
	}
	if got := r.Header.Get("X-Amz-Security-Token"); got != s.session {
		return errors.New("the session token is not the current one")
	}
	sum := sha256.Sum256(body)
	if hash := hex.EncodeToString(sum[:]); r.Header.Get("X-Amz-Content-Sha256") != hash {
		return fmt.Errorf("the hash of the body is %s, want %s", r.Header.Get("X-Amz-Content-Sha256"), hash)
	}
	signed := strings.Split(parts["SignedHeaders"], ";")
	if s.service == "aoss" && slices.Contains(signed, "content-length") {
		return errors.New("the header content-length is signed, which OpenSearch Serverless rejects")
	}
	for name := range r.Header {
		if name = strings.ToLower(name); (strings.HasPrefix(name, "x-amz-") || name == "content-type") && !slices.Contains(signed, name) {
			return fmt.Errorf("the header %s is not signed", name)
		}
	}
	var headers strings.Builder
	for _, name := range signed {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		default:
			if len(r.Header.Values(name)) == 0 {
				return fmt.Errorf("the header %s is signed, but was not sent", name)
			}
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	path, query, _ := strings.Cut(r.RequestURI, "?")
	pairs := []string{}
	if query != "" {
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			pairs = append(pairs, reencode(name)+"="+reencode(value))
		}
	}
	slices.Sort(pairs)
	canonical := strings.Join([]string{
		r.Method, encode(path, "/"), strings.Join(pairs, "&"), headers.String(), parts["SignedHeaders"], hex.EncodeToString(sum[:]),
	}, "\n")
	sum = sha256.Sum256([]byte(canonical))
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", date, scope, hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + s.secret)
	for _, text := range []string{date[:8], s.region, s.service, "aws4_request", toSign} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		key = mac.Sum(nil)
	}
	if want := hex.EncodeToString(key); parts["Signature"] != want {
		return fmt.Errorf("the signature does not match\n%s", canonical)
	}
	s.verified++
	return nil
}

// encode percent-encodes every byte but the unreserved ones of RFC 3986 and those in keep.
func encode(text, keep string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~"+keep, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// reencode encodes a part of a query as the specification does, however the client has encoded it.
func reencode(part string) string {
	plain, err := url.QueryUnescape(part)
	if err != nil {
		return part
	}
	return encode(plain, "")
}

// signedEngine is an engine that takes only signed requests, and passes them on to handler.
func signedEngine(t *testing.T, s *signature, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = s.verify(r, body)
		}
		if err != nil {
			t.Logf("%s %s: %v", r.Method, r.RequestURI, err)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"message":"The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key."}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// isolateCredentials keeps the machine's own credentials from a test.
func isolateCredentials(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "credentials")
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(filepath.Dir(file), "config"))
	return file
}

func writeCredentials(t *testing.T, file, keyID, secret, session string) {
	t.Helper()
	text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\naws_session_token = %s\n", keyID, secret, session)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func openSigned(t *testing.T, url, service string, compress bool) *elastic.Index {
	t.Helper()
	x, err := elastic.New(elastic.Config{
		Connection: elastic.Connection{URLs: []string{url}, AWS: elastic.SignFor("eu-west-1", service)}, Compress: compress,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

// TestSigned checks that requests of every kind are signed as they are sent: with credentials of the environment and of a shared file,
// for both services, with compressed bodies, parameters and names that are escaped.
func TestSigned(t *testing.T) {
	file := isolateCredentials(t)
	writeCredentials(t, file, "FILEKEY", "file/secret+1", "file-session")
	for _, c := range []struct {
		name, service                   string
		environment                     bool
		keyID, secret, session, signFor string
	}{
		{"shared file", "es", false, "FILEKEY", "file/secret+1", "file-session", "es"},
		{"environment", "", true, "ENVKEY", "env/secret+2", "", "es"},
		{"serverless", "aoss", true, "ENVKEY", "env/secret+2", "", "aoss"},
	} {
		for _, compress := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/compressed %t", c.name, compress), func(t *testing.T) {
				if c.environment {
					t.Setenv("AWS_ACCESS_KEY_ID", c.keyID)
					t.Setenv("AWS_SECRET_ACCESS_KEY", c.secret)
				}
				s := &signature{region: "eu-west-1", service: c.signFor}
				s.set(c.keyID, c.secret, c.session)
				var paths []string
				server := signedEngine(t, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					paths = append(paths, r.Method+" "+r.URL.Path)
					w.Header().Set("Content-Type", "application/json")
					switch {
					case r.URL.Path == "/":
						fmt.Fprint(w, `{"version":{"number":"2.19.3","distribution":"opensearch"}}`)
					case strings.HasSuffix(r.URL.Path, "/_bulk"):
						fmt.Fprint(w, `{"errors":false,"items":[{"index":{"status":201}}]}`)
					case strings.HasSuffix(r.URL.Path, "/_mget"):
						fmt.Fprint(w, `{"docs":[{"found":false}]}`)
					default:
						fmt.Fprint(w, `{}`)
					}
				}))
				x := openSigned(t, server.URL, c.service, compress)
				id := `odd / id + with %20, "quotes", ü and a very long tail ` + strings.Repeat("x", 300)
				b := core.Batch{Index: "analyses", Items: []core.BatchItem{{ID: id, Version: 7}}}
				b.Body, b.Items[0].DocStart, b.Items[0].DocEnd = x.Encode(nil, core.Write{ID: id, Version: 7, Document: []byte(`{"a":"ü"}`)})
				b.Items[0].End = len(b.Body)
				_, getErr := x.Mapping(t.Context(), "ünï+co-de")
				_, writeErr := x.Write(t.Context(), b)
				_, _, readErr := x.Get(t.Context(), "analyses", id)
				for _, err := range []error{x.Ping(t.Context()), x.Refresh(t.Context(), "analyses"), writeErr, readErr, getErr} {
					if f := core.CodeOf(err); f == core.CodeIndexBlocked {
						t.Errorf("%v", err)
					}
				}
				if s.verified < 5 || len(paths) != s.verified {
					t.Errorf("%d requests were verified: %v", s.verified, paths)
				}
				if c.signFor == "aoss" && slices.Contains(paths, "GET /") {
					t.Error("the version of a serverless was requested")
				}
			})
		}
	}
}

// TestSignedRotates checks that a process reads credentials again that were missing or rejected, and that such have a clear error.
func TestSignedRotates(t *testing.T) {
	file := isolateCredentials(t)
	s := &signature{region: "eu-west-1", service: "es"}
	s.set("KEY", "secret", "second")
	server := signedEngine(t, s, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"green"}`) }))
	x := openSigned(t, server.URL, "es", false)
	err := x.Ping(t.Context())
	var known *core.Error
	if !errors.As(err, &known) || known.Code != core.CodeUnavailable || !errors.Is(err, core.ErrIndexUnreachable) {
		t.Fatalf("without credentials: %v", err)
	}
	wantHint(t, err, "provide credentials by the environment, a shared file or a role; they are read again with the next request")
	writeCredentials(t, file, "KEY", "secret", "first")
	err = x.Refresh(t.Context(), "analyses")
	wantError(t, err, core.CodeIndexBlocked, "AWS rejected the signature of requests to the index")
	wantHint(t, err, "check index.aws, the credentials, and this machine's clock")
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%q contains the secret", err)
	}
	writeCredentials(t, file, "KEY", "secret", "second")
	if err := x.Ping(t.Context()); err != nil {
		t.Errorf("with the new session: %v", err)
	}
}

// TestRotatingProcess checks that a process takes over credentials that expire while it runs, from the endpoint of its container.
func TestRotatingProcess(t *testing.T) {
	isolateCredentials(t)
	var generation int
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		generation++
		fmt.Fprintf(w, `{"AccessKeyId":"KEY%d","SecretAccessKey":"secret%d","Token":"session%d","Expiration":%q}`,
			generation, generation, generation, time.Now().Add(time.Second).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(endpoint.Close)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", endpoint.URL)
	s := &signature{region: "eu-west-1", service: "es"}
	server := signedEngine(t, s, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"green"}`) }))
	x := openSigned(t, server.URL, "es", false)
	for n := 1; n <= 3; n++ {
		s.set(fmt.Sprint("KEY", n), fmt.Sprint("secret", n), fmt.Sprint("session", n))
		ctx, cancel := context.WithTimeout(t.Context(), testkit.HangLimit)
		if err := x.Ping(ctx); err != nil {
			t.Errorf("generation %d: %v", n, err)
		}
		cancel()
	}
}

func TestSignedContradictions(t *testing.T) {
	for name, c := range map[string]elastic.Connection{
		"signing requests to the index needs a region":                       {AWS: elastic.AWS{Service: "es"}},
		"requests to the index are signed for es or aoss":                    {AWS: elastic.AWS{Region: "r", Service: "s3"}},
		"the index takes signed requests or other credentials, not both":     {AWS: elastic.AWS{Region: "r"}, APIKey: "a:b"},
		"the index takes signed requests or other credentials, not both\x00": {AWS: elastic.AWS{Region: "r"}, Username: "u", Password: "p"},
	} {
		c.URLs = []string{"http://127.0.0.1:1"}
		if _, err := elastic.New(elastic.Config{Connection: c}); core.MessageOf(err) != strings.TrimSuffix(name, "\x00") {
			t.Errorf("%v, want %s", err, name)
		}
	}
}
