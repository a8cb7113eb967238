package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// Unreached returns why a service did not answer, and a hint; neither holds more of an address than a host. Without a hint
// the cause is not one of those that are recognized, and the reason is the text of the innermost error.
func Unreached(err error) (reason, hint string) {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if !e.IsNotFound {
			return fmt.Sprintf("the name %s could not be resolved", e.Name), "check this machine's name server"
		}
		return fmt.Sprintf("the name %s is not known", e.Name), "check the host, and that this machine's name server knows it"
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("its certificate is not for %s", e.Host), "use the name that the certificate is for"
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
		return "its certificate is of an authority that is not trusted", "have this machine trust the authority"
	case unverified:
		return "its certificate is not valid", "see what is wrong with the certificate: openssl s_client shows it"
	case plain, errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS", "use http:// instead of https://, if that is meant"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there", "check host and port, and that the service runs"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to it", "check the host, and this machine's network"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, ErrTimeout),
		isNetwork && network.Timeout():
		return "no answer in time", "check host and port, and that no firewall stands between"
	case strings.Contains(err.Error(), "malformed HTTP response"):
		return "it does not speak plain HTTP", "use https:// instead of http://, if that is meant"
	}
	// The URL of a call is left out: only the last cause is told.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error(), ""
}
