package tlsconfig

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"tutti/internal/core"
)

// Pair is the content of the PEM files of a certificate and of its private key.
type Pair struct {
	certFile, keyFile string
	cert, key         []byte
}

// ReadPair reads the files. Its error is a *core.Error of CodeInvalid that names the file.
func ReadPair(certFile, keyFile string) (Pair, error) {
	p := Pair{certFile: certFile, keyFile: keyFile}
	var err error
	if p.cert, err = readFile(certFile); err != nil {
		return p, err
	}
	p.key, err = readFile(keyFile)
	return p, err
}

// Equal reports whether two pairs have the same content.
func (p Pair) Equal(q Pair) bool { return bytes.Equal(p.cert, q.cert) && bytes.Equal(p.key, q.key) }

// Certificate parses the pair. Its error is a *core.Error of CodeInvalid that names the file and contains no key material.
func (p Pair) Certificate() (*tls.Certificate, error) {
	if err := checkChain(p.cert); err != nil {
		return nil, invalid(p.certFile+" is not a certificate: "+err.Error(),
			"the file must hold the certificate itself first, then the intermediate certificates, as PEM")
	}
	c, err := tls.X509KeyPair(p.cert, p.key)
	switch {
	case err == nil:
		return &c, nil
	case strings.Contains(err.Error(), "match"):
		return nil, invalid(fmt.Sprintf("the key in %s is not that of the certificate in %s", p.keyFile, p.certFile),
			"use the key that the certificate was requested with; the certificate itself must be the first in its file")
	default:
		return nil, invalid(p.keyFile+" is not a private key: "+strings.TrimPrefix(err.Error(), "tls: "),
			"the file must hold the certificate's key as PEM, without a password")
	}
}

func readFile(file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if err != nil {
		return nil, invalid(file+" cannot be read: "+err.Error(), "set the path of a file that tutti's user can read")
	}
	return content, nil
}

func invalid(message, hint string) *core.Error {
	return &core.Error{Code: core.CodeInvalid, Message: message, Hint: hint}
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
