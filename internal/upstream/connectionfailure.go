package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
)

const hintClosed = "check its log, and the log of a proxy in front of it"

// ConnectionFailure returns why a service could not be reached, and a hint; neither contains an address. An empty hint means that the
// cause is unknown; reason is then the text of the innermost error.
func ConnectionFailure(err error) (reason, hint string) {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if !e.IsNotFound {
			return "its host name could not be resolved", "check this machine's DNS server"
		}
		return "its host name does not exist", "check the host name and this machine's DNS server"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate is for another host name", "use the name that the certificate is for"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return "its certificate has expired or is not valid yet", "renew the certificate, or set this machine's clock"
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	network, isNetwork := errors.AsType[net.Error](err)
	switch {
	case unknown:
		return "its certificate is signed by an unknown authority", "add the authority to this machine's trusted certificates"
	case unverified:
		return "its certificate is not valid", "inspect the certificate with openssl s_client"
	case plain, errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS", "use http:// instead of https://, if intended"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there", "check host and port, and that the service runs"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to it", "check the host, and this machine's network"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, ErrTimeout),
		isNetwork && network.Timeout():
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
