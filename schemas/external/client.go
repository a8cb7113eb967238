package external

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"tutti/internal/base/cache"
	"tutti/internal/base/keylock"
	"tutti/internal/base/retry"
	"tutti/internal/base/tlsconfig"
)

const (
	// maxAttempts is the maximum number of calls of one URL while the service does not answer.
	maxAttempts = 3
	// maxRedirects bounds the redirects of one call.
	maxRedirects = 5
	// maxAnswerBytes is how much of a response is read and discarded, so that its connection can be reused.
	maxAnswerBytes = 64 << 10
	// maxLogged is the number of hosts whose failure is not logged again while its reason stays the same.
	maxLogged = 256
)

// errRedirect is returned for a redirect to another host, and for too many redirects.
var errRedirect = errors.New("the redirect is not followed")

// Client calls external validation services. It is safe for concurrent use.
type Client struct {
	cfg    Settings
	client *http.Client
	// hosts bound the concurrent calls of each host.
	hosts keylock.Locks
	// logged has the logged reason why each host could not be reached.
	logged *cache.LRU[string, string]
}

// Settings configure a Client. All times must be positive.
type Settings struct {
	// AllowedHosts are the only hosts that are called, each a name or an address, with or without a port. Default: every public address.
	AllowedHosts []string
	// Timeout bounds one call, TotalTimeout all calls for one analysis.
	Timeout, TotalTimeout time.Duration
	// RetryWait is the wait before the first retry; it doubles, with jitter.
	RetryWait time.Duration
	UserAgent string
	TLS       tlsconfig.Files
	// Logger receives why a service could not be reached.
	Logger *slog.Logger
	// Observe records the result and the duration of each call.
	Observe func(result string, took time.Duration)
}

// NewClient returns a Client. CodeInvalid for an invalid host or file.
func NewClient(cfg Settings) (*Client, error) {
	g, err := newGuard(cfg.AllowedHosts)
	if err != nil {
		return nil, err
	}
	secure, err := tlsconfig.New(cfg.TLS)
	if err != nil {
		return nil, err
	}
	// No proxy: it would connect to addresses that the guard does not check.
	transport := secure.RoundTripper(&http.Transport{
		DialContext: g.dial, ForceAttemptHTTP2: true,
		// No MaxConnsPerHost: its queue would count towards the timeout of a call. Client.hosts bounds the calls.
		MaxIdleConns: 64, MaxIdleConnsPerHost: maxAtOnce, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: cfg.Timeout, ResponseHeaderTimeout: cfg.Timeout, MaxResponseHeaderBytes: maxAnswerBytes,
	})
	client := &http.Client{Transport: transport, Timeout: cfg.Timeout, CheckRedirect: sameHost}
	return &Client{cfg: cfg, client: client, hosts: keylock.Locks{Holders: maxPerHost}, logged: cache.NewLRU[string, string](maxLogged)}, nil
}

// sameHost allows redirects to the original scheme, host and port only.
func sameHost(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if len(before) > maxRedirects || next.URL.Scheme != first.Scheme || next.URL.User != nil ||
		joinedHost(next.URL.Hostname(), next.URL.Port()) != joinedHost(first.Hostname(), first.Port()) {
		return errRedirect
	}
	return nil
}

// Close closes idle connections.
func (a *Client) Close() { a.client.CloseIdleConnections() }

// call calls the service until it answers, at most maxAttempts times, or until ctx ends.
func (a *Client) call(ctx context.Context, q *query) result {
	var last result
	for attempt := range maxAttempts {
		if attempt > 0 && retry.Sleep(ctx, retry.Delay(attempt-1, a.cfg.RetryWait, math.MaxInt64)) != nil {
			return last
		}
		leave, err := a.hosts.Lock(ctx, q.host)
		if err != nil {
			return timedOut()
		}
		began := time.Now()
		last = a.request(ctx, q)
		leave()
		a.cfg.Observe(last.label(), time.Since(began))
		if !last.unresponsive {
			return last
		}
	}
	return last
}

func (an result) label() string {
	switch {
	case an.unresponsive:
		return "unavailable"
	case an.message != "":
		return "invalid"
	default:
		return "valid"
	}
}

// timedOut is the result for a value that was not checked because the calls of the analysis exceeded Settings.TotalTimeout. It
// does not count against the service.
func timedOut() result {
	return result{message: "could not be checked: the time limit for external validations was exceeded", retryable: true}
}

// request makes one call.
func (a *Client) request(ctx context.Context, q *query) result {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, q.url, nil)
	if err != nil {
		return result{message: "cannot be checked: its address is not valid"}
	}
	request.Header.Set("User-Agent", a.cfg.UserAgent)
	response, err := a.client.Do(request)
	if err != nil && ctx.Err() != nil {
		return timedOut()
	}
	if err != nil {
		return a.failure(ctx, q.host, err)
	}
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswerBytes)
	response.Body.Close()
	// Only these statuses are not about the value.
	if answer := (tlsconfig.Answer{Status: response.StatusCode, Credentials: a.cfg.TLS.Name("clientCertFile") + " and the url of the validation"}); answer.AboutCredentials() {
		reason, hint := answer.Refusal()
		a.cfg.TLS.Refused(q.host, reason, hint, func(ctx context.Context) { a.request(ctx, q) })
		a.logOnce(ctx, q.host, errors.New(reason+"; "+hint))
		return result{message: "could not be checked: the service rejects the credentials with status " + strconv.Itoa(answer.Status), retryable: true}
	}
	a.cfg.TLS.Refused(q.host, "", "", nil)
	a.logged.Remove(q.host)
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		return result{}
	case status >= 500:
		return result{message: "could not be checked: the service answered " + strconv.Itoa(status), retryable: true, unresponsive: true}
	default:
		return result{message: "is not valid: the service answered " + strconv.Itoa(status), retryable: status == http.StatusTooManyRequests}
	}
}

// failure returns the result of a failed call. It does not contain the error's text, which names addresses.
func (a *Client) failure(ctx context.Context, host string, err error) result {
	if !errors.Is(err, errForbiddenAddress) && !errors.Is(err, errRedirect) {
		a.logOnce(ctx, host, a.cfg.TLS.Explain(err))
	}
	switch timeout, ok := errors.AsType[net.Error](err); {
	case errors.Is(err, errForbiddenAddress):
		return result{message: "cannot be checked: the address of the service is not among the hosts that " +
			"schemas.externalValidations.allowedHosts allows"}
	case errors.Is(err, errRedirect):
		return result{message: "is not valid: the service redirected to another host or too often"}
	case ok && timeout.Timeout():
		return result{message: "could not be checked: the service did not answer within " + a.cfg.Timeout.String(), retryable: true, unresponsive: true}
	default:
		return result{message: "could not be checked: the service could not be reached", retryable: true, unresponsive: true}
	}
}

// logOnce logs why a host cannot be used, unless that is known.
func (a *Client) logOnce(ctx context.Context, host string, why error) {
	if before, _ := a.logged.Get(host); before != why.Error() {
		a.logged.Put(host, why.Error(), 1)
		a.cfg.Logger.WarnContext(ctx, "an external validation service cannot be used; values that it validates are rejected until it can", "host", host, "err", why)
	}
}

// maxPerHost bounds the concurrent calls of one host, by all analyses.
const maxPerHost = 4 * maxAtOnce
