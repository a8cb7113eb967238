package upstream_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// failingTransport fails every request.
type failingTransport struct{ err error }

func (b failingTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }

// TestClientNamesTheCause: an unreachable upstream is an error that names a recognized cause, and contains nothing of the request or
// of received data.
func TestClientNamesTheCause(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	verified := func(err error) error { return &tls.CertificateVerificationError{Err: err} }
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"unknown name":      {dial(&net.DNSError{Name: "song.example", IsNotFound: true}), ": its host name does not exist"},
		"name server":       {dial(&net.DNSError{Name: "song.example", IsTimeout: true}), ": its host name could not be resolved"},
		"refused":           {dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), ": nothing listens there"},
		"no route":          {dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), ": there is no route to it"},
		"no network":        {dial(os.NewSyscallError("connect", syscall.ENETUNREACH)), ": there is no route to it"},
		"timeout":           {dial(os.NewSyscallError("connect", syscall.ETIMEDOUT)), ": no answer in time"},
		"unknown authority": {verified(x509.UnknownAuthorityError{}), ": its certificate is signed by an unknown authority"},
		"another's name": {
			verified(x509.HostnameError{Host: "song.example", Certificate: &x509.Certificate{}}), ": its certificate is for another host name",
		},
		"expired":            {verified(x509.CertificateInvalidError{Reason: x509.Expired}), ": its certificate has expired or is not valid yet"},
		"not a CA":           {verified(x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}), ": its certificate is not valid"},
		"plain text for TLS": {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, ": it does not speak TLS"},
		"reset":              {os.NewSyscallError("read", syscall.ECONNRESET), ": it reset the connection"},
		"broken pipe":        {os.NewSyscallError("write", syscall.EPIPE), ": it closed the connection"},
		"closed":             {io.EOF, ": it closed the connection"},
		"closed early":       {io.ErrUnexpectedEOF, ": it closed the connection"},
		"TLS for plain text": {fmt.Errorf("net/http: malformed HTTP response %q", "body"), ": it does not speak plain HTTP"},
		"another":            {errors.New("text of a body"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := upstream.NewClient(upstream.Config{
				URL: "http://song.example/path", Username: "user", Password: "password", Transport: failingTransport{tt.err},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, err = client.Get(t.Context(), "query=1", "segment")
			const message = "the upstream could not be reached"
			if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != message+tt.want {
				t.Errorf("%q with code %q", core.MessageOf(err), core.CodeOf(err))
			}
		})
	}
}

// TestClientNamesTLSErrors: recognizes the errors of real handshakes.
func TestClientNamesTLSErrors(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for name, tt := range map[string]struct{ url, want string }{
		"unknown authority": {secure.URL, "the upstream could not be reached: its certificate is signed by an unknown authority"},
		"plain HTTP":        {"https://" + plain.Listener.Addr().String(), "the upstream could not be reached: it does not speak TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := upstream.NewClient(upstream.Config{URL: tt.url})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err = client.Get(t.Context(), "", "x"); core.MessageOf(err) != tt.want {
				t.Errorf("%q", core.MessageOf(err))
			}
		})
	}
}

// TestClientNamesClosedConnections: recognizes the errors of real connections.
func TestClientNamesClosedConnections(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if tcp, ok := conn.(*net.TCPConn); ok && r.URL.Path == "/reset" {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}))
	defer server.Close()
	client, err := upstream.NewClient(upstream.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for path, want := range map[string]string{
		"closed": "the upstream could not be reached: it closed the connection",
		"reset":  "the upstream could not be reached: it reset the connection",
	} {
		if _, err := client.Get(t.Context(), "", path); core.MessageOf(err) != want || core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("%s: %q", path, core.MessageOf(err))
		}
	}
}
