package tlsconfig_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// folder is a folder of PEM files.
type folder string

func (d folder) path(name string) string { return filepath.Join(string(d), name) }

func (d folder) write(t *testing.T, name string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(d.path(name), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return d.path(name)
}

// issue writes a certificate and its key as NAME.pem and NAME.key.
func (d folder) issue(t *testing.T, a *testkit.Authority, name string, until time.Duration, hosts ...string) {
	t.Helper()
	cert, key, err := a.Certificate(time.Now().Add(-2*time.Hour), time.Now().Add(until), hosts...)
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, name+".pem", cert)
	d.write(t, name+".key", key)
}

func authority(t *testing.T) *testkit.Authority {
	t.Helper()
	a, err := testkit.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serve starts a server with a certificate of the folder; with clients not nil it requires a client certificate of that authority.
func serve(t *testing.T, d folder, name string, clients *testkit.Authority) *httptest.Server {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(d.path(name+".pem"), d.path(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients != nil {
		s.TLS.ClientCAs, s.TLS.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		s.TLS.ClientCAs.AppendCertsFromPEM(clients.PEM)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// call sends a request by the RoundTripper of files, and reads and writes by a connection of DialContext, which must fail alike.
func call(t *testing.T, files tlsconfig.Files, address string) error {
	t.Helper()
	source, err := tlsconfig.New(files)
	if err != nil {
		t.Fatal(err)
	}
	sender := source.RoundTripper(&http.Transport{})
	defer sender.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, sent := sender.RoundTrip(req)
	if sent == nil {
		_ = res.Body.Close()
	}
	conn, dialled := source.DialContext(t.Context(), &net.Dialer{}, "tcp", address)
	if dialled == nil {
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		_, read := io.ReadAll(conn)
		dialled = errors.Join(err, read, conn.Close())
	}
	if (dialled == nil) != (sent == nil) {
		t.Fatalf("a request fails with %v, a connection with %v", sent, dialled)
	}
	if sent != nil {
		a, _ := files.Failure(sent)
		if b, _ := files.Failure(dialled); a != b {
			t.Errorf("a request fails with %v, a connection with %v", sent, dialled)
		}
	}
	return sent
}

// TestFailures: each wrong setting has a reason, and a hint that names the key to change.
func TestFailures(t *testing.T) {
	d, ca, other := folder(t.TempDir()), authority(t), authority(t)
	d.write(t, "ca.pem", ca.PEM)
	d.write(t, "other.pem", other.PEM)
	d.issue(t, ca, "right", time.Hour, "127.0.0.1", "right.example")
	d.issue(t, ca, "name", time.Hour, "other.example")
	d.issue(t, ca, "expired", -time.Hour, "127.0.0.1")
	d.issue(t, ca, "client", time.Hour)
	d.issue(t, other, "foreign", time.Hour)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	type files = tlsconfig.Files
	for name, tt := range map[string]struct {
		server       *httptest.Server
		files        files
		reason, hint string
	}{
		"right":       {serve(t, d, "right", nil), files{CAFile: d.path("ca.pem")}, "", ""},
		"right name":  {serve(t, d, "name", nil), files{CAFile: d.path("ca.pem"), ServerName: "other.example"}, "", ""},
		"right pair":  {serve(t, d, "right", ca), files{CAFile: d.path("ca.pem"), ClientCertFile: d.path("client.pem"), ClientKeyFile: d.path("client.key")}, "", ""},
		"system's CA": {serve(t, d, "right", nil), files{}, "its certificate is signed by an unknown authority", "set some.key.caFile to a PEM file of the authority's certificate"},
		"other CA":    {serve(t, d, "right", nil), files{CAFile: d.path("other.pem")}, "its certificate is signed by an unknown authority", "set some.key.caFile to a PEM file of the authority's certificate"},
		"other name":  {serve(t, d, "name", nil), files{CAFile: d.path("ca.pem")}, "its certificate is for another host name", "set some.key.serverName to a name that the certificate is for"},
		"wrong name":  {serve(t, d, "right", nil), files{CAFile: d.path("ca.pem"), ServerName: "x.example"}, "its certificate is for another host name", "set some.key.serverName to a name that the certificate is for"},
		"expired":     {serve(t, d, "expired", nil), files{CAFile: d.path("ca.pem")}, "its certificate has expired or is not valid yet", "renew the certificate, or set this machine's clock"},
		"no pair":     {serve(t, d, "right", ca), files{CAFile: d.path("ca.pem")}, "it requires a client certificate", "set some.key.clientCertFile and its key"},
		"foreign pair": {
			serve(t, d, "right", ca),
			files{CAFile: d.path("ca.pem"), ClientCertFile: d.path("foreign.pem"), ClientKeyFile: d.path("foreign.key")},
			"it refused the client certificate", "set some.key.clientCertFile to a certificate that is valid and of an authority that the server trusts",
		},
		"not TLS": {plain, files{}, "it does not speak TLS", "use http:// instead of https://, if intended"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.files.Key = "some.key"
			err := call(t, tt.files, tt.server.Listener.Addr().String())
			if err == nil && tt.reason == "" {
				return
			}
			if reason, hint := tt.files.Failure(err); err == nil || reason != tt.reason || hint != tt.hint {
				t.Errorf("%v: got %q and %q, want %q and %q", err, reason, hint, tt.reason, tt.hint)
			}
		})
	}
}

// TestGeneralHints: the hints of a connection that has no key in the configuration, and those of the network.
func TestGeneralHints(t *testing.T) {
	d, ca := folder(t.TempDir()), authority(t)
	d.issue(t, ca, "right", time.Hour, "127.0.0.1")
	caFile := d.write(t, "ca.pem", ca.PEM)
	clientOnly := serve(t, d, "right", nil)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true, IsCA: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	clientOnly.TLS.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}
	usage := d.write(t, "usage.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	old := serve(t, d, "right", nil)
	old.TLS.MinVersion, old.TLS.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for name, tt := range map[string]struct {
		server       *httptest.Server
		files        tlsconfig.Files
		reason, hint string
	}{
		"authority":   {serve(t, d, "right", nil), tlsconfig.Files{}, "its certificate is signed by an unknown authority", "add the authority to this machine's trusted certificates"},
		"certificate": {serve(t, d, "right", ca), tlsconfig.Files{CAFile: caFile}, "it requires a client certificate", "send it a certificate"},
		"usage":       {clientOnly, tlsconfig.Files{CAFile: usage}, "its certificate is not valid", "inspect the certificate with openssl s_client"},
		"version":     {old, tlsconfig.Files{CAFile: caFile}, "it ended the TLS handshake: protocol version not supported", "compare the TLS versions and ciphers of the server with this client's"},
	} {
		t.Run(name, func(t *testing.T) {
			err := call(t, tt.files, tt.server.Listener.Addr().String())
			if err == nil {
				t.Fatal("it was accepted")
			}
			if reason, hint := tt.files.Failure(err); reason != tt.reason || hint != tt.hint {
				t.Errorf("%v: got %q and %q, want %q and %q", err, reason, hint, tt.reason, tt.hint)
			}
		})
	}
	names, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	go func() { // every name is unknown
		query := make([]byte, 512)
		for {
			n, from, err := names.ReadFrom(query)
			if err != nil {
				return
			}
			query[2], query[3] = query[2]|0x80, 3
			_, _ = names.WriteTo(query[:n], from)
		}
	}()
	resolver := func(address string) *net.Resolver {
		return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "udp", address)
		}}
	}
	for name, tt := range map[string]struct {
		dialer       *net.Dialer
		reason, hint string
	}{
		"unknown name": {&net.Dialer{Resolver: resolver(names.LocalAddr().String())}, "its host name does not exist", "check the host name and this machine's DNS server"},
		"no DNS":       {&net.Dialer{Resolver: resolver("127.0.0.1:1")}, "its host name could not be resolved", "check this machine's DNS server"},
		"no route": {
			&net.Dialer{Resolver: resolver("127.0.0.1:1"), Control: func(string, string, syscall.RawConn) error { return syscall.EHOSTUNREACH }},
			"there is no route to it", "check the host, and this machine's network",
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := "host.example.:443"
			if tt.dialer.Control != nil {
				address = "127.0.0.1:443"
			}
			_, err := tlsconfig.NewUnread(tlsconfig.Files{}).DialContext(t.Context(), tt.dialer, "tcp", address)
			if err == nil {
				t.Fatal("it was reached")
			}
			if reason, hint := tlsconfig.Failure(err); reason != tt.reason || hint != tt.hint {
				t.Errorf("%v: got %q and %q, want %q and %q", err, reason, hint, tt.reason, tt.hint)
			}
		})
	}
}

// TestWrongFiles: an error names the key and the file.
func TestWrongFiles(t *testing.T) {
	d, ca := folder(t.TempDir()), authority(t)
	d.issue(t, ca, "a", time.Hour)
	d.issue(t, ca, "b", time.Hour)
	none, text := d.path("none"), d.write(t, "text", []byte("text"))
	certificate, err := os.ReadFile(d.path("a.pem"))
	if err != nil {
		t.Fatal(err)
	}
	chain := d.write(t, "chain.pem", slices.Concat(ca.PEM, certificate))
	locked := d.write(t, "locked.key", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))
	const readable = "set the path of a file that tutti's user can read"
	for name, tt := range map[string]struct {
		files      tlsconfig.Files
		want, hint string
	}{
		"no CA":           {tlsconfig.Files{CAFile: none}, "k.caFile: " + none + " cannot be read: no such file or directory", readable},
		"not a CA":        {tlsconfig.Files{CAFile: text}, "k.caFile: " + text + " is not a certificate: no PEM block begins with -----BEGIN CERTIFICATE-----", "the file must hold the certificates of the authorities, as PEM"},
		"no cert":         {tlsconfig.Files{ClientCertFile: none, ClientKeyFile: d.path("a.key")}, "k.clientCertFile: " + none + " cannot be read: no such file or directory", readable},
		"no key":          {tlsconfig.Files{ClientCertFile: d.path("a.pem"), ClientKeyFile: none}, "k.clientKeyFile: " + none + " cannot be read: no such file or directory", readable},
		"cert only":       {tlsconfig.Files{ClientCertFile: d.path("a.pem")}, "k.clientKeyFile: is missing", "set the file of the certificate's private key"},
		"key only":        {tlsconfig.Files{ClientKeyFile: d.path("a.key")}, "k.clientCertFile: is missing", "set the file of the certificate"},
		"other key":       {tlsconfig.Files{ClientCertFile: d.path("a.pem"), ClientKeyFile: d.path("b.key")}, "k.clientCertFile: the key in " + d.path("b.key") + " is not that of the certificate in " + d.path("a.pem"), "use the key that the certificate was requested with; the certificate itself must be the first in its file"},
		"the chain first": {tlsconfig.Files{ClientCertFile: chain, ClientKeyFile: d.path("a.key")}, "k.clientCertFile: the key in " + d.path("a.key") + " is not that of the certificate in " + chain, "use the key that the certificate was requested with; the certificate itself must be the first in its file"},
		"no certificate":  {tlsconfig.Files{ClientCertFile: text, ClientKeyFile: d.path("a.key")}, "k.clientCertFile: " + text + " is not a certificate: no PEM block begins with -----BEGIN CERTIFICATE-----", "the file must hold the certificate itself first, then the intermediate certificates, as PEM"},
		"no private key":  {tlsconfig.Files{ClientCertFile: d.path("a.pem"), ClientKeyFile: locked}, "k.clientCertFile: " + locked + " is not a private key: failed to parse private key", "the file must hold the certificate's key as PEM, without a password"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.files.Key = "k"
			_, err := tlsconfig.New(tt.files)
			if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != tt.want || core.HintOf(err) != tt.hint {
				t.Errorf("got %v and the hint %q, want %s and %q", err, core.HintOf(err), tt.want, tt.hint)
			}
			if reason, _ := tlsconfig.Failure(err); reason != tt.want {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
	// What the hints advise works: the certificate first, then the authority's, and its own key.
	first := d.write(t, "first.pem", slices.Concat(certificate, ca.PEM))
	if _, err := tlsconfig.New(tlsconfig.Files{CAFile: d.write(t, "ca.pem", ca.PEM), ClientCertFile: first, ClientKeyFile: d.path("a.key")}); err != nil {
		t.Error(err)
	}
}

// TestFilesAreReadAgain: a replaced authority and a replaced client certificate are used by the next connection, also one of a RoundTripper
// that has open ones; while a file is wrong, requests fail and name it.
func TestFilesAreReadAgain(t *testing.T) {
	d, before, after := folder(t.TempDir()), authority(t), authority(t)
	ca := d.write(t, "ca.pem", before.PEM)
	d.issue(t, before, "client", time.Hour)
	d.issue(t, before, "before", time.Hour, "127.0.0.1")
	d.issue(t, after, "after", time.Hour, "127.0.0.1")
	first, second := serve(t, d, "before", before), serve(t, d, "after", after)
	files := tlsconfig.Files{Key: "k", CAFile: ca, ClientCertFile: d.path("client.pem"), ClientKeyFile: d.path("client.key")}
	source, err := tlsconfig.New(files)
	if err != nil {
		t.Fatal(err)
	}
	sender := source.RoundTripper(&http.Transport{})
	defer sender.CloseIdleConnections()
	send := func(s *httptest.Server) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := sender.RoundTrip(req)
		if err == nil {
			err = res.Body.Close()
		}
		return err
	}
	reasonOf := func(err error) string {
		if err == nil {
			return ""
		}
		reason, _ := files.Failure(err)
		return reason
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testkit.HangLimit)
		defer cancel()
		for !holds() {
			select {
			case <-ctx.Done():
				t.Fatal("in vain: " + what)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	if err := send(first); err != nil {
		t.Fatal(err)
	}
	if reason := reasonOf(send(second)); reason != "its certificate is signed by an unknown authority" {
		t.Error(reason)
	}
	d.write(t, "ca.pem", []byte("half"))
	until("the wrong file is named", func() bool {
		return strings.HasPrefix(reasonOf(send(first)), "k.caFile: "+ca+" is not a certificate")
	})
	d.write(t, "ca.pem", after.PEM)
	until("the new authority is trusted", func() bool { return reasonOf(send(second)) == "it refused the client certificate" })
	d.issue(t, after, "client", time.Hour)
	until("the new certificate is shown", func() bool { return send(second) == nil })
	if reason := reasonOf(send(first)); reason != "its certificate is signed by an unknown authority" {
		t.Errorf("the connection of before is used: %q", reason)
	}
}
