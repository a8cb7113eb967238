package transport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"tutti/internal/core"
)

// Names of AWS services, for AWS.Service.
const (
	// ServiceOpenSearch is Amazon OpenSearch Service.
	ServiceOpenSearch = "es"
	// ServiceServerless is Amazon OpenSearch Serverless, which does not report its version.
	ServiceServerless = "aoss"
)

// AWS configures the signing of requests with AWS Signature Version 4. The zero value disables it.
type AWS struct {
	// Region is such as eu-west-1.
	Region string
	// Service is ServiceOpenSearch or ServiceServerless; "" means ServiceOpenSearch.
	Service string
}

// payloadHeader has the hash of the body, which ServiceServerless requires.
const payloadHeader = "X-Amz-Content-Sha256"

// signingTransport signs requests just before they are sent, when their node is chosen and their headers are complete.
type signingTransport struct {
	next   http.RoundTripper
	signer *v4.Signer
	aws    AWS

	mu sync.Mutex
	// chain is nil after its credentials were missing or rejected.
	chain *aws.Config
}

// newSigningTransport returns a signing transport with the standard chain of credentials: environment, shared files, web identity,
// container, instance. It reads no credentials yet; an error is core.CodeInvalid, of a shared file that cannot be read.
func newSigningTransport(next http.RoundTripper, cfg AWS) (*signingTransport, error) {
	t := &signingTransport{next: next, signer: v4.NewSigner(), aws: cfg}
	if _, err := t.load(context.Background()); err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the AWS configuration cannot be read", err)
	}
	return t, nil
}

// load returns the chain. It reads the environment and the shared files after forget; credentials that expire are read again by the
// chain itself.
func (t *signingTransport) load(ctx context.Context) (*aws.Config, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.chain == nil {
		chain, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(t.aws.Region))
		if err != nil {
			return nil, err
		}
		t.chain = &chain
	}
	return t.chain, nil
}

// forget makes the next request load the chain again.
func (t *signingTransport) forget(chain *aws.Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.chain == chain {
		t.chain = nil
	}
}

// credentialsError is why no request could be signed.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "reading the AWS credentials: " + e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// RoundTrip implements http.RoundTripper.
func (t *signingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	hash, err := hashPayload(req)
	if err != nil {
		return nil, err
	}
	chain, err := t.load(req.Context())
	if err != nil {
		return nil, &credentialsError{err}
	}
	credentials, err := chain.Credentials.Retrieve(req.Context())
	if err != nil {
		t.forget(chain)
		return nil, &credentialsError{err}
	}
	signed := req.Clone(req.Context())
	// A header without a value is not sent and must not be signed.
	idempotency, marked := signed.Header["Idempotency-Key"]
	delete(signed.Header, "Idempotency-Key")
	signed.Header.Set(payloadHeader, hash)
	signed.ContentLength = 0 // ServiceServerless rejects it as a signed header; the hash covers the body
	if err := t.signer.SignHTTP(req.Context(), credentials, signed, hash, t.aws.Service, t.aws.Region, time.Now()); err != nil {
		return nil, &credentialsError{err}
	}
	if marked {
		signed.Header["Idempotency-Key"] = idempotency
	}
	signed.ContentLength = req.ContentLength
	res, err := t.next.RoundTrip(signed)
	if err == nil && res.StatusCode == http.StatusForbidden && !credentials.CanExpire {
		t.forget(chain) // a shared file may have new ones
	}
	return res, err
}

// hashPayload returns the SHA-256 of the body as it will be sent, in hexadecimal.
func hashPayload(req *http.Request) (string, error) {
	sum := sha256.New()
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return "", errors.New("the body of a request cannot be read twice")
		}
		body, err := req.GetBody()
		if err != nil {
			return "", err
		}
		if _, err := io.Copy(sum, body); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
