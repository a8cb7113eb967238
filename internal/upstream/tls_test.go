package upstream_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/upstream"
)

// TestClientTLS: an upstream that requires a client certificate of an authority of its own is read; a wrong file is named with its key.
func TestClientTLS(t *testing.T) {
	t.Parallel()
	own, err := testkit.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	cert, key, err := own.Certificate(time.Now().Add(-time.Hour), time.Now().Add(time.Hour), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
	server.TLS.ClientCAs.AppendCertsFromPEM(own.PEM)
	server.StartTLS()
	defer server.Close()
	right := tlsconfig.Files{Key: "repositories[0]", CAFile: write("ca.pem", own.PEM), ClientCertFile: write("c.pem", cert), ClientKeyFile: write("c.key", key)}
	for name, tt := range map[string]struct {
		change        func(*tlsconfig.Files)
		message, hint string
	}{
		"right":     {func(*tlsconfig.Files) {}, "", ""},
		"authority": {func(f *tlsconfig.Files) { f.CAFile = "" }, "the upstream could not be reached: its certificate is signed by an unknown authority", "set repositories[0].caFile to a PEM file of the authority's certificate"},
		"name":      {func(f *tlsconfig.Files) { f.ServerName = "x.example" }, "the upstream could not be reached: its certificate is for another host name", "set repositories[0].serverName to a name that the certificate is for"},
		"no client": {func(f *tlsconfig.Files) { f.ClientCertFile, f.ClientKeyFile = "", "" }, "the upstream could not be reached: it requires a client certificate", "set repositories[0].clientCertFile and its key"},
	} {
		t.Run(name, func(t *testing.T) {
			files := right
			tt.change(&files)
			client, err := upstream.NewClient(upstream.Config{URL: server.URL, TLS: files})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			answer, err := client.Get(t.Context(), "", "x")
			if err == nil {
				answer.Close()
			}
			if (err == nil) != (tt.message == "") || err != nil && (core.MessageOf(err) != tt.message || core.HintOf(err) != tt.hint || core.CodeOf(err) != core.CodeUnavailable) {
				t.Errorf("got %v, %q", err, core.HintOf(err))
			}
		})
	}
	right.CAFile = "/none"
	if _, err := upstream.NewClient(upstream.Config{URL: server.URL, TLS: right}); core.MessageOf(err) != "repositories[0].caFile: /none cannot be read: no such file or directory" {
		t.Errorf("got %v", err)
	}
}
