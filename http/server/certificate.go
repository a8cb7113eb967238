package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

const (
	// certificatePollInterval is how often the files of a Certificate are read.
	certificatePollInterval = 10 * time.Second
	// CertificateExpiresSoon is how long before its expiry a certificate is logged as a warning.
	CertificateExpiresSoon = 14 * 24 * time.Hour
)

// ReadCertificate returns the certificate and the private key that two PEM files hold. Its error is a *core.Error of CodeInvalid that
// names the file.
func ReadCertificate(certFile, keyFile string) (*tls.Certificate, error) {
	pair, err := tlsconfig.ReadPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return pair.Certificate()
}

// Certificate is the TLS certificate of a Server. It polls its two files: new connections use a replaced pair within ten seconds; an
// invalid pair is ignored and the previous one stays in use. Create it with NewCertificate and call Stop at the end.
type Certificate struct {
	certFile, keyFile string
	logger            *slog.Logger
	metrics           *Metrics
	current           atomic.Pointer[tls.Certificate]
	cancel            context.CancelFunc
	work              sync.WaitGroup
}

// NewCertificate reads the files, as ReadCertificate does, and polls them until Stop. logger and metrics may be nil.
func NewCertificate(ctx context.Context, certFile, keyFile string, logger *slog.Logger, metrics *Metrics) (*Certificate, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	c := &Certificate{certFile: certFile, keyFile: keyFile, logger: logger, metrics: metrics}
	read, err := tlsconfig.ReadPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	first, err := read.Certificate()
	if err != nil {
		return nil, err
	}
	c.use(first)
	ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.work.Go(func() { c.poll(ctx, read) })
	return c, nil
}

// Stop stops polling the files and waits for the goroutine. The certificate stays usable. It may be called again.
func (c *Certificate) Stop(context.Context) error {
	c.cancel()
	c.work.Wait() // at most until two small files are read
	return nil
}

// poll reads the files periodically until ctx ends, and parses them when they differ from the last parsed pair.
func (c *Certificate) poll(ctx context.Context, parsed tlsconfig.Pair) {
	ticker := time.NewTicker(certificatePollInterval)
	defer ticker.Stop()
	lastError := "" // of reading the files, "" after a success
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		read, err := tlsconfig.ReadPair(c.certFile, c.keyFile)
		if err != nil {
			if reason := core.MessageOf(err); reason != lastError {
				lastError = reason
				c.reportRejected(err)
			}
			continue
		}
		lastError = ""
		if read.Equal(parsed) {
			continue
		}
		parsed = read
		next, err := read.Certificate()
		if err != nil {
			c.reportRejected(err)
			continue
		}
		c.use(next)
		c.metrics.certificateReloaded(true)
	}
}

// reportRejected logs and counts that the files were rejected and the current certificate stays in use.
func (c *Certificate) reportRejected(err error) {
	c.metrics.certificateReloaded(false)
	c.logger.Error("certificate not replaced, the previous one stays in use",
		"expires", c.Current().Leaf.NotAfter.UTC(), "hint", core.HintOf(err), "err", err)
}

func (c *Certificate) use(next *tls.Certificate) {
	c.current.Store(next)
	expires := next.Leaf.NotAfter.UTC()
	c.metrics.certificateExpires(expires)
	level, left := slog.LevelInfo, time.Until(expires)
	if left < CertificateExpiresSoon {
		level = slog.LevelWarn
	}
	c.logger.Log(context.Background(), level, "certificate in use", "file", c.certFile, "names", strings.Join(CertificateNames(next), " "), "expires", expires)
}

// Current returns the certificate that new connections get.
func (c *Certificate) Current() *tls.Certificate { return c.current.Load() }

// CertificateNames returns the hosts that a certificate is for.
func CertificateNames(c *tls.Certificate) []string {
	names := append([]string(nil), c.Leaf.DNSNames...)
	for _, ip := range c.Leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// config returns the TLS configuration of a Server.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{protocolHTTP2, protocolHTTP1},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.Current(), nil },
	}
}
