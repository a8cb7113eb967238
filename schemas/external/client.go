package external

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// maxAttempts is how often a service that does not answer is asked in all.
	maxAttempts = 3
	// maxRedirects is how many redirects of one answer are followed.
	maxRedirects = 5
	// maxAnswerBytes is read of an answer so that its connection can be used again; nobody looks at it.
	maxAnswerBytes = 64 << 10
)

// errRedirect ends a call whose redirects lead elsewhere or do not end.
var errRedirect = errors.New("the redirect is not followed")

// Client calls external validation services. It is safe for concurrent use.
type Client struct {
	cfg    Settings
	client *http.Client
	queues *hostLimits
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
	// Observe records the result and the duration of each call.
	Observe func(result string, took time.Duration)
}

// NewClient returns a Client. CodeInvalid for an invalid host.
func NewClient(cfg Settings) (*Client, error) {
	g, err := newGuard(cfg.AllowedHosts)
	if err != nil {
		return nil, err
	}
	// There is no proxy: one would ask addresses that the guard never sees.
	transport := &http.Transport{
		DialContext: g.dial, ForceAttemptHTTP2: true,
		// No MaxConnsPerHost: its queue would count as the time that a service takes. queues bounds the calls.
		MaxIdleConns: 64, MaxIdleConnsPerHost: maxAtOnce, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: cfg.Timeout, ResponseHeaderTimeout: cfg.Timeout, MaxResponseHeaderBytes: maxAnswerBytes,
	}
	client := &http.Client{Transport: transport, Timeout: cfg.Timeout, CheckRedirect: sameHost}
	return &Client{cfg: cfg, client: client, queues: &hostLimits{hosts: map[string]*hostLimit{}}}, nil
}

// sameHost follows a redirect only to where the call went in the first place.
func sameHost(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if len(before) > maxRedirects || next.URL.Scheme != first.Scheme || next.URL.User != nil ||
		joinedHost(next.URL.Hostname(), next.URL.Port()) != joinedHost(first.Hostname(), first.Port()) {
		return errRedirect
	}
	return nil
}

func (a *Client) Close() { a.client.CloseIdleConnections() }

// call asks until there is an answer, at most maxAttempts times, or ctx ends.
func (a *Client) call(ctx context.Context, q *query) result {
	var last result
	for attempt := range maxAttempts {
		if attempt > 0 && !a.wait(ctx, attempt) {
			return last
		}
		leave, ok := a.queues.acquire(ctx, q.host)
		if !ok {
			return timedOut()
		}
		began := time.Now()
		last = a.request(ctx, q.url)
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

// wait pauses before another attempt; false when ctx ended first.
func (a *Client) wait(ctx context.Context, attempt int) bool {
	pause := a.cfg.RetryWait << (attempt - 1)
	timer := time.NewTimer(pause/2 + rand.N(pause+1)) //nolint:gosec // jitter needs no secrecy
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// timedOut is the answer about a value when the time for a whole analysis, which the other calls and the wait for their
// turn have taken, is over. It says nothing of the service.
func timedOut() result {
	return result{message: "could not be checked: there was no time left to ask the service", retryable: true}
}

// request makes one call.
func (a *Client) request(ctx context.Context, at string) result {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return result{message: "cannot be asked about: its address is not valid"}
	}
	request.Header.Set("User-Agent", a.cfg.UserAgent)
	response, err := a.client.Do(request)
	if err != nil && ctx.Err() != nil {
		return timedOut()
	}
	if err != nil {
		return a.failure(err)
	}
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswerBytes)
	response.Body.Close()
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		return result{}
	case status >= 500:
		return result{message: "could not be checked: the service answered " + strconv.Itoa(status), retryable: true, unresponsive: true}
	default:
		return result{message: "is not valid: the service answered " + strconv.Itoa(status), retryable: status == http.StatusTooManyRequests}
	}
}

// failure says why there is no answer. The error's own text stays here: it names addresses.
func (a *Client) failure(err error) result {
	switch timeout, ok := errors.AsType[net.Error](err); {
	case errors.Is(err, errForbiddenAddress):
		return result{message: "cannot be checked: the address of the service is not among those that " +
			"schemas.externalValidations.allowedHosts lets this server ask"}
	case errors.Is(err, errRedirect):
		return result{message: "is not valid: the service redirected to another host or too often"}
	case ok && timeout.Timeout():
		return result{message: "could not be checked: the service did not answer within " + a.cfg.Timeout.String(), retryable: true, unresponsive: true}
	default:
		return result{message: "could not be checked: the service could not be reached", retryable: true, unresponsive: true}
	}
}

// maxPerHost is how many calls of one host run side by side, whoever's they are.
const maxPerHost = 4 * maxAtOnce

// hostLimits lets the calls of each host wait for their turn.
type hostLimits struct {
	mu    sync.Mutex
	hosts map[string]*hostLimit
}

type hostLimit struct {
	// running has a place for each call.
	running chan struct{}
	// users are those that wait or call; a queue without any is forgotten.
	users int
}

// acquire waits for a turn, which ends with leave. false when ctx ended first.
func (q *hostLimits) acquire(ctx context.Context, host string) (leave func(), ok bool) {
	q.mu.Lock()
	own := q.hosts[host]
	if own == nil {
		own = &hostLimit{running: make(chan struct{}, maxPerHost)}
		q.hosts[host] = own
	}
	own.users++
	q.mu.Unlock()
	select {
	case own.running <- struct{}{}:
		return func() {
			<-own.running
			q.release(host, own)
		}, true
	case <-ctx.Done():
		q.release(host, own)
		return nil, false
	}
}

func (q *hostLimits) release(host string, own *hostLimit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(q.hosts, host)
	}
}
