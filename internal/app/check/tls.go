package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tutti/http/server"
	"tutti/internal/config"
	"tutti/internal/core"
)

const subjectTLS = "server.tls"

// tlsProbe checks the server's certificate; nil without one.
func tlsProbe(files config.TLS) probe {
	if !files.Enabled() {
		return nil
	}
	return func(context.Context) []Finding { return []Finding{certificateFinding(files)} }
}

func certificateFinding(files config.TLS) Finding {
	const renew = "renew the certificate; a running tutti uses the new one within ten seconds"
	c, err := server.ReadCertificate(files.CertFile, files.KeyFile)
	if err != nil {
		return Finding{subjectTLS, StatusFail, core.MessageOf(err), core.HintOf(err)}
	}
	now, from, until := time.Now(), c.Leaf.NotBefore.UTC(), c.Leaf.NotAfter.UTC()
	names := server.CertificateNames(c)
	switch {
	case len(names) == 0:
		return Finding{subjectTLS, StatusFail, files.CertFile + " is valid for no host: it has no subject alternative name", "request a certificate with the names that clients use"}
	case now.After(until):
		return Finding{subjectTLS, StatusFail, fmt.Sprintf("%s expired at %s", files.CertFile, until.Format(time.RFC3339)), renew}
	case now.Before(from):
		return Finding{subjectTLS, StatusFail, fmt.Sprintf("%s is not valid before %s", files.CertFile, from.Format(time.RFC3339)), "check the clock of this machine, or wait"}
	}
	found := Finding{subjectTLS, StatusOK, fmt.Sprintf("%s is valid for %s and expires at %s", files.CertFile, strings.Join(names, ", "), until.Format(time.RFC3339)), ""}
	if until.Sub(now) < server.CertificateExpiresSoon {
		found.Status, found.Hint = StatusWarn, renew
	}
	return found
}
