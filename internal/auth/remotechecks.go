package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"tutti/internal/base/cache"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

const (
	// CheckedFor is how long a token that a server accepted is not checked again; a token that was revoked there may be accepted that
	// long.
	CheckedFor = 30 * time.Second
	// maxCheckedBytes is the size of the cache of such tokens, checkedTokenBytes that of one without scopes.
	maxCheckedBytes   = 4 << 20
	checkedTokenBytes = 512
	// maxCheckBytes bounds the response to a check.
	maxCheckBytes = 1 << 20
	// maxCallers bounds the callers that wait for a check, also those that have left.
	maxCallers = 1024
	// checkAgain is the Retry-After of responses while the server does not answer.
	checkAgain = 5 * time.Second
)

// errTooManyCallers: maxCallers wait.
var errTooManyCallers = errors.New("too many tokens are being checked")

// remoteChecks checks tokens at a server: concurrent checks of one token are one request, and accepted tokens are cached by their hash.
// It is safe for concurrent use.
type remoteChecks struct {
	// about is the name of the check in logs.
	about string
	// request returns the request about a token.
	request func(ctx context.Context, token string) (*http.Request, error)
	// decide parses a response: CodeUnauthenticated when it rejects the token, another error when it is not conclusive.
	decide func(status int, body []byte) (verifiedToken, error)
	// credentials and address are the keys of what the server is sent beside the token, and of its URL.
	credentials, address string
	client               *http.Client
	files                tlsconfig.Files // of client
	timeout              time.Duration
	now                  func() time.Time
	log                  *slog.Logger

	cache *cache.LRU[[sha256.Size]byte, checkedToken]
	group singleflight.Group
	// requests bounds the requests in flight to maxConnections: HTTP/2 would send many more on as many connections.
	requests *semaphore.Weighted
	// waiters are the goroutines that wait for requests, whose callers may have left; callers counts them.
	waiters sync.WaitGroup
	callers atomic.Int64
	// failing is true after a check without a result, so that an outage is logged once.
	failing atomic.Bool
}

type checkedToken struct {
	verifiedToken
	until time.Time
}

func newTokenCache() *cache.LRU[[sha256.Size]byte, checkedToken] {
	return cache.NewLRU[[sha256.Size]byte, checkedToken](maxCheckedBytes)
}

// bytes returns the approximate size of t in the cache.
func (t checkedToken) bytes() int64 {
	n := checkedTokenBytes + len(t.subject)
	for _, scope := range t.scopes {
		n += len(scope) + 16 // the string's header
	}
	return int64(n)
}

// close waits for the requests in flight, which their timeout bounds. No check may follow.
func (c *remoteChecks) close() {
	c.waiters.Wait()
	c.client.CloseIdleConnections()
}

// check checks a token at the server. CodeUnauthenticated when the server rejects it, CodeUnavailable without a conclusive response.
func (c *remoteChecks) check(ctx context.Context, token string) (verifiedToken, error) {
	key := sha256.Sum256([]byte(token))
	if checked, ok := c.cached(key); ok {
		return checked, nil
	}
	if c.callers.Add(1) > maxCallers {
		c.callers.Add(-1)
		return verifiedToken{}, c.unavailable(errTooManyCallers)
	}
	shared := c.group.DoChan(string(key[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		defer cancel()
		return c.checkOnce(ctx, key, token)
	})
	done := make(chan singleflight.Result, 1)
	c.waiters.Go(func() {
		done <- <-shared
		c.callers.Add(-1)
	})
	select {
	case r := <-done:
		verified, _ := r.Val.(verifiedToken)
		return verified, r.Err
	case <-ctx.Done():
		return verifiedToken{}, c.unavailable(ctx.Err())
	}
}

func (c *remoteChecks) cached(key [sha256.Size]byte) (verifiedToken, bool) {
	checked, ok := c.cache.Get(key)
	return checked.verifiedToken, ok && c.now().Before(checked.until)
}

// checkOnce is check without waiting for a running check of the token.
func (c *remoteChecks) checkOnce(ctx context.Context, key [sha256.Size]byte, token string) (verifiedToken, error) {
	if checked, ok := c.cached(key); ok { // by a check that ended after this one missed the cache
		return checked, nil
	}
	if err := c.requests.Acquire(ctx, 1); err != nil {
		return verifiedToken{}, c.unavailable(err)
	}
	defer c.requests.Release(1)
	sent := c.now()
	verified, err := c.ask(ctx, token)
	switch {
	case err == nil:
		checked := checkedToken{verified, sent.Add(CheckedFor)}
		c.cache.Put(key, checked, checked.bytes())
	case core.CodeOf(err) == core.CodeUnauthenticated:
		c.cache.Remove(key)
		c.log.DebugContext(ctx, "another server rejected a token", "check", c.about, "err", err)
	default:
		if !c.failing.Swap(true) {
			c.log.WarnContext(ctx, "tokens cannot be checked", "check", c.about, "err", err)
		}
		return verifiedToken{}, c.unavailable(err)
	}
	if c.failing.Swap(false) {
		c.log.InfoContext(ctx, "tokens can be checked again", "check", c.about)
	}
	return verified, err
}

// ask sends one request.
func (c *remoteChecks) ask(ctx context.Context, token string) (verifiedToken, error) {
	request, err := c.request(ctx, token)
	if err != nil {
		return verifiedToken{}, fmt.Errorf("making a request: %w", err)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return verifiedToken{}, fmt.Errorf("checking a token: %w", c.files.Explain(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxCheckBytes)) // a longer body is truncated and therefore not JSON
	if err != nil {
		return verifiedToken{}, fmt.Errorf("reading a response about a token: %w", err)
	}
	if c.refusesClient(response, body) {
		answer := tlsconfig.Answer{Status: http.StatusUnauthorized, Credentials: c.credentials}
		c.files.Answered(answer, c.recheck)
		return verifiedToken{}, answer.Failure("rejects the credentials of this client")
	}
	answer := tlsconfig.Answer{Status: response.StatusCode, Address: c.address}
	if rejected(answer.Status) {
		answer.Status = http.StatusOK // it is about the token
	}
	c.files.Answered(answer, c.recheck)
	if reason, _ := answer.Refusal(); reason != "" {
		return verifiedToken{}, answer.Failure(fmt.Sprintf("answered with status %d", answer.Status))
	}
	return c.decide(response.StatusCode, body)
}

// recheck sends a random token, and records whether the server checks it.
func (c *remoteChecks) recheck(ctx context.Context) { _ = c.probe(ctx) }

// refusesClient reports whether a response rejects the credentials of this client, not the token (RFC 6749, section 5.2). Keycloak's error
// is invalid_request, with this status for the client only.
func (c *remoteChecks) refusesClient(response *http.Response, body []byte) bool {
	if response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
		return false
	}
	var answer struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(body, &answer) // any response is read
	switch answer.Error {
	case "invalid_client", "unauthorized_client":
		return true
	case "invalid_request":
		return c.about == aboutIntrospection && response.StatusCode == http.StatusUnauthorized
	}
	challenge := strings.ToLower(response.Header.Get("WWW-Authenticate"))
	return c.about == aboutIntrospection && strings.HasPrefix(challenge, "basic")
}

// probe sends a random token, in the format of a UUID as API keys of Ego and Keycloak are, which must be rejected. CodeUpstream for
// another response; other errors are those of the connection.
func (c *remoteChecks) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var b [16]byte
	_, _ = rand.Read(b[:])
	_, err := c.ask(ctx, fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
	switch {
	case err == nil:
		return core.NewError(core.CodeUpstream, "accepted a random token")
	case core.CodeOf(err) == core.CodeUnauthenticated:
		return nil
	default:
		return err
	}
}

func (c *remoteChecks) unavailable(cause error) error {
	return &core.Error{
		Code: core.CodeUnavailable, Message: "the token cannot be checked now: the authorization server is not available",
		RetryAfter: checkAgain, Err: cause,
	}
}

// rejected reports whether a status rejects the token. The servers report a wrong client with the same status as a wrong token. The
// other client errors are not about the token, such as 404 for a wrong URL.
func rejected(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return true
	default:
		return false
	}
}

func errRejected(status int) error {
	return &core.Error{
		Code: core.CodeUnauthenticated, Message: "the token is not valid", Hint: "ask for a new token or API key", Err: badStatus(status),
	}
}

func badStatus(status int) error {
	return core.NewError(core.CodeUpstream, fmt.Sprintf("answered with status %d", status))
}

func notUnderstood(err error) error {
	return core.WrapError(core.CodeUpstream, "answered, but not as specified", err)
}
