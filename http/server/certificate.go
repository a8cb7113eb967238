package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	pair, err := readPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return pair.certificate()
}

// certificatePair is what the files hold.
type certificatePair struct {
	certFile, keyFile string
	cert, key         []byte
}

func readPair(certFile, keyFile string) (certificatePair, error) {
	p := certificatePair{certFile: certFile, keyFile: keyFile}
	var err error
	if p.cert, err = readPEM(certFile); err != nil {
		return p, err
	}
	p.key, err = readPEM(keyFile)
	return p, err
}

func readPEM(file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if err != nil {
		return nil, certificateError(file+" cannot be read: "+err.Error(), "set the path of a file that tutti's user can read")
	}
	return content, nil
}

func certificateError(message, hint string) error {
	return &core.Error{Code: core.CodeInvalid, Message: message, Hint: hint}
}

// certificate parses the pair. The error texts of crypto/tls contain no key material.
func (p certificatePair) certificate() (*tls.Certificate, error) {
	if err := checkChain(p.cert); err != nil {
		return nil, certificateError(p.certFile+" is not a certificate: "+err.Error(),
			"the file must hold the server's certificate first, then the intermediate certificates, as PEM")
	}
	c, err := tls.X509KeyPair(p.cert, p.key)
	switch {
	case err == nil:
		return &c, nil
	case strings.Contains(err.Error(), "match"):
		return nil, certificateError(fmt.Sprintf("the key in %s is not that of the certificate in %s", p.keyFile, p.certFile),
			"use the key that the certificate was requested with; the server's certificate must be the first in its file")
	default:
		return nil, certificateError(p.keyFile+" is not a private key: "+strings.TrimPrefix(err.Error(), "tls: "),
			"the file must hold the certificate's key as PEM, without a password")
	}
}

// checkChain returns an error if a PEM file holds no certificate or an invalid one.
func checkChain(rest []byte) error {
	found := false
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		found = true
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return err
		}
	}
	if !found {
		return errors.New("no PEM block begins with -----BEGIN CERTIFICATE-----")
	}
	return nil
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
	read, err := readPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	first, err := read.certificate()
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
func (c *Certificate) poll(ctx context.Context, parsed certificatePair) {
	ticker := time.NewTicker(certificatePollInterval)
	defer ticker.Stop()
	lastError := "" // of reading the files, "" after a success
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		read, err := readPair(c.certFile, c.keyFile)
		if err != nil {
			if reason := core.MessageOf(err); reason != lastError {
				lastError = reason
				c.reportRejected(err)
			}
			continue
		}
		lastError = ""
		if bytes.Equal(read.cert, parsed.cert) && bytes.Equal(read.key, parsed.key) {
			continue
		}
		parsed = read
		next, err := read.certificate()
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
