package schemas

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
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

// asker asks external services about values.
type asker struct {
	cfg    Config
	client *http.Client
	queues *queues
}

func newAsker(cfg Config) (*asker, error) {
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
	return &asker{cfg: cfg, client: client, queues: &queues{hosts: map[string]*queue{}}}, nil
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

func (a *asker) close() { a.client.CloseIdleConnections() }

// ask asks until there is an answer, at most maxAttempts times, or ctx ends.
func (a *asker) ask(ctx context.Context, q *question) answer {
	var last answer
	for attempt := range maxAttempts {
		if attempt > 0 && !a.wait(ctx, attempt) {
			return last
		}
		leave, ok := a.queues.enter(ctx, q.host)
		if !ok {
			return noTimeLeft()
		}
		began := time.Now()
		last = a.once(ctx, q.url)
		leave()
		a.cfg.Metrics.asked(last.result(), time.Since(began))
		if !last.silent {
			return last
		}
	}
	return last
}

func (an answer) result() string {
	switch {
	case an.silent:
		return "unavailable"
	case an.message != "":
		return "invalid"
	default:
		return "valid"
	}
}

// wait pauses before another attempt; false when ctx ended first.
func (a *asker) wait(ctx context.Context, attempt int) bool {
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

// noTimeLeft is the answer about a value when the time for a whole analysis, which the other calls and the wait for their
// turn have taken, is over. It says nothing of the service.
func noTimeLeft() answer {
	return answer{message: "could not be checked: there was no time left to ask the service", retryable: true}
}

// once makes one call.
func (a *asker) once(ctx context.Context, at string) answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return answer{message: "cannot be asked about: its address is not valid"}
	}
	request.Header.Set("User-Agent", a.cfg.UserAgent)
	response, err := a.client.Do(request)
	if err != nil && ctx.Err() != nil {
		return noTimeLeft()
	}
	if err != nil {
		return a.failed(err)
	}
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswerBytes)
	response.Body.Close()
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		return answer{}
	case status >= 500:
		return answer{message: "could not be checked: the service answered " + decimal(status), retryable: true, silent: true}
	default:
		return answer{message: "is not valid: the service answered " + decimal(status), retryable: status == http.StatusTooManyRequests}
	}
}

// failed says why there is no answer. The error's own text stays here: it names addresses.
func (a *asker) failed(err error) answer {
	switch timeout, ok := errors.AsType[net.Error](err); {
	case errors.Is(err, errForbiddenAddress):
		return answer{message: "cannot be checked: the address of the service is not among those that " +
			"schemas.externalValidations.allowedHosts lets this server ask"}
	case errors.Is(err, errRedirect):
		return answer{message: "is not valid: the service redirected to another host or too often"}
	case ok && timeout.Timeout():
		return answer{message: "could not be checked: the service did not answer within " + a.cfg.Timeout.String(), retryable: true, silent: true}
	default:
		return answer{message: "could not be checked: the service could not be reached", retryable: true, silent: true}
	}
}

// maxPerHost is how many calls of one host run side by side, whoever's they are.
const maxPerHost = 4 * maxAtOnce

// queues lets the calls of each host wait for their turn.
type queues struct {
	mu    sync.Mutex
	hosts map[string]*queue
}

type queue struct {
	// running has a place for each call.
	running chan struct{}
	// users are those that wait or call; a queue without any is forgotten.
	users int
}

// enter waits for a turn, which ends with leave. false when ctx ended first.
func (q *queues) enter(ctx context.Context, host string) (leave func(), ok bool) {
	q.mu.Lock()
	own := q.hosts[host]
	if own == nil {
		own = &queue{running: make(chan struct{}, maxPerHost)}
		q.hosts[host] = own
	}
	own.users++
	q.mu.Unlock()
	select {
	case own.running <- struct{}{}:
		return func() {
			<-own.running
			q.forsake(host, own)
		}, true
	case <-ctx.Done():
		q.forsake(host, own)
		return nil, false
	}
}

func (q *queues) forsake(host string, own *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(q.hosts, host)
	}
}
