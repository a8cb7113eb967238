package tlsconfig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
)

const hintClosed = "check its log, and the log of a proxy in front of it"

// Failure returns why a service could not be reached, and a hint; neither contains an address. An empty hint means that the cause is
// unknown; reason is then the text of the innermost error.
func Failure(err error) (reason, hint string) { return Files{}.Failure(err) }

// Failure is like the function, with hints that name the keys of f.
func (f Files) Failure(err error) (reason, hint string) {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if !e.IsNotFound {
			return "its host name could not be resolved", "check this machine's DNS server"
		}
		return "its host name does not exist", "check the host name and this machine's DNS server"
	}
	if reason, hint = f.TLSFailure(err); reason != "" {
		return reason, hint
	}
	network, isNetwork := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there", "check host and port, and that the service runs"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to it", "check the host, and this machine's network"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isNetwork && network.Timeout():
		return "no answer in time", "check host and port, and that no firewall blocks the connection"
	case errors.Is(err, syscall.ECONNRESET):
		return "it reset the connection", hintClosed
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE):
		return "it closed the connection", hintClosed
	case strings.Contains(err.Error(), "malformed HTTP response"):
		return "it does not speak plain HTTP", "use https:// instead of http://, if intended"
	}
	// The innermost error does not contain the URL of the call.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error(), ""
}

// Explain returns err with the reason and the hint of Failure as its text, for logs and clients.
func (f Files) Explain(err error) error {
	reason, hint := f.Failure(err)
	if hint != "" {
		reason += "; " + hint
	}
	return explainedError{reason, err}
}

type explainedError struct {
	text string
	err  error
}

func (e explainedError) Error() string { return e.text }
func (e explainedError) Unwrap() error { return e.err }

// TLSFailure is Failure for errors of TLS and its files; reason is empty for any other error.
func (f Files) TLSFailure(err error) (reason, hint string) {
	if e, ok := errors.AsType[fileError](err); ok {
		return e.of.Message, e.of.Hint
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		const hint = "use the name that the certificate is for"
		if f.ManyServers {
			return "its certificate is for another host name", hint
		}
		return "its certificate is for another host name", f.hint(hint, "set %s to a name that the certificate is for", "serverName")
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return "its certificate has expired or is not valid yet", "renew the certificate, or set this machine's clock"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" {
		return f.alert(e.Err)
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case unknown:
		return "its certificate is signed by an unknown authority", f.hint("add the authority to this machine's trusted certificates",
			"set %s to a PEM file of the authority's certificate", "caFile")
	case unverified:
		return "its certificate is not valid", "inspect the certificate with openssl s_client"
	case plain, errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS", "use http:// instead of https://, if intended"
	}
	return "", ""
}

// hint returns general, or the hint that names a key if f has one.
func (f Files) hint(general, format, key string) string {
	if f.Key == "" && !f.Flags {
		return general
	}
	return fmt.Sprintf(format, f.Name(key))
}

// alert classifies an alert of the server, of which crypto/tls exports only the text.
func (f Files) alert(err error) (reason, hint string) {
	switch strings.TrimPrefix(err.Error(), "tls: ") {
	case "bad certificate", "certificate required", "unknown certificate", "unknown certificate authority", "unsupported certificate",
		"revoked certificate", "expired certificate", "access denied":
		return f.ClientRefused()
	default:
		return "it ended the TLS handshake: " + strings.TrimPrefix(err.Error(), "tls: "), "compare the TLS versions and ciphers of the server with this client's"
	}
}

// ClientRefused is Failure for a server that refused the connection for the client's certificate, or for want of one.
func (f Files) ClientRefused() (reason, hint string) {
	if f.ClientCertFile == "" {
		return "it requires a client certificate", f.hint("send it a certificate", "set %s and its key", "clientCertFile")
	}
	return "it refused the client certificate", f.hint("use a certificate that it accepts",
		"set %s to a certificate that is valid and of an authority that the server trusts", "clientCertFile")
}
