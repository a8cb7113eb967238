package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"tutti/internal/core"
)

// minRSABits is the smallest RSA key that is accepted (RFC 7518, sections 3.3 and 3.5).
const minRSABits = 2048

// publicKey is a key that verifies tokens.
type publicKey struct {
	// id is "" for a key without one, alg "" for a key that may be used with every algorithm of its type.
	id, alg string
	key     crypto.PublicKey
}

// newPublicKey returns an error for a key that no accepted algorithm can use.
func newPublicKey(id, alg string, key any) (publicKey, error) {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSABits {
			return publicKey{}, fmt.Errorf("the RSA key has %d bits, which is under %d", k.N.BitLen(), minRSABits)
		}
	case *ecdsa.PublicKey:
		if curveAlgorithm(k.Curve) == "" {
			return publicKey{}, fmt.Errorf("no algorithm uses the curve %s", k.Curve.Params().Name)
		}
	case ed25519.PublicKey:
	default:
		return publicKey{}, fmt.Errorf("no accepted algorithm uses a key of type %T", key)
	}
	p := publicKey{id: id, alg: alg, key: key}
	if alg != "" && !p.hasType(alg) {
		return publicKey{}, fmt.Errorf("the algorithm %s does not fit a key of type %T", alg, key)
	}
	return p, nil
}

// supports reports whether a token of an algorithm may have been signed with the key.
func (p publicKey) supports(alg string) bool { return (p.alg == "" || p.alg == alg) && p.hasType(alg) }

// hasType reports whether the key is of an algorithm's type. golang-jwt itself would accept any curve for each ES algorithm.
func (p publicKey) hasType(alg string) bool {
	switch k := p.key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return alg == curveAlgorithm(k.Curve)
	case ed25519.PublicKey:
		return alg == jwt.SigningMethodEdDSA.Alg()
	default:
		return false
	}
}

// curveAlgorithm returns the algorithm of a curve (RFC 7518, section 3.4), "" when there is none.
func curveAlgorithm(curve elliptic.Curve) string {
	switch curve {
	case elliptic.P256():
		return jwt.SigningMethodES256.Alg()
	case elliptic.P384():
		return jwt.SigningMethodES384.Alg()
	case elliptic.P521():
		return jwt.SigningMethodES512.Alg()
	default:
		return ""
	}
}

// parsePEM reads the public keys and certificates of a PEM file, which must contain at least one.
func parsePEM(file []byte) ([]publicKey, error) {
	var keys []publicKey
	for rest := file; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if len(keys) == maxSetKeys {
			return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("the public key file has more than %d keys", maxSetKeys))
		}
		key, err := parseBlock(block)
		if err != nil {
			return nil, &core.Error{
				Code: core.CodeInvalid, Message: fmt.Sprintf("block %d of the public key file cannot be used: %v", len(keys)+1, err),
				Hint: "provide the issuer's RSA, EC or Ed25519 public key, or its certificate, as PEM", Err: err,
			}
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: "the public key file contains no PEM block",
			Hint: "provide the issuer's RSA, EC or Ed25519 public key, or its certificate, as PEM",
		}
	}
	return keys, nil
}

func parseBlock(block *pem.Block) (publicKey, error) {
	var key any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var certificate *x509.Certificate
		if certificate, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = certificate.PublicKey
		}
	default:
		return publicKey{}, fmt.Errorf("it is a %s", block.Type)
	}
	if err != nil {
		// The parser's error could quote the block.
		return publicKey{}, errors.New("it is damaged")
	}
	return newPublicKey("", "", key)
}
