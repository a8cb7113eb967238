package tlsconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"tutti/internal/core"
)

const (
	// refusedEvery is the shortest time between two requests that check whether a server still refuses the credentials.
	refusedEvery = 10 * time.Second
	// forgottenAfter is how long a failure of one of many servers is kept: their addresses are not settings, and may be used no more.
	forgottenAfter = time.Hour
)

// Failures has the connections whose last request was not answered, or refused until a setting is changed. It is safe for concurrent
// use; nil records nothing.
type Failures struct {
	mu sync.Mutex
	of map[server]failure
	// refused is by key and host; the host is empty unless the connection has many servers.
	refused map[[2]string]refusal
}

// server is one of the servers that a RoundTripper connects to.
type server struct {
	t            *roundTripper
	scheme, host string
}

// failure is why a server was not reached, and when a request failed last.
type failure struct {
	reason string
	at     time.Time
}

// refusal is why a server refused a request, and how to check that again.
type refusal struct {
	reason          string
	at, recheckedAt time.Time
	recheck         func(ctx context.Context)
}

// record records the end of a request, unless its caller canceled it.
func (f *Failures) record(t *roundTripper, req *http.Request, err error) {
	if f == nil || errors.Is(context.Cause(req.Context()), context.Canceled) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := server{t, req.URL.Scheme, req.URL.Host}
	if err == nil {
		delete(f.of, at)
		return
	}
	if f.of == nil {
		f.of = map[server]failure{}
	}
	now := time.Now()
	if before, failed := f.of[at]; failed && req.Context().Value(rechecking{}) != nil {
		now = before.at
	}
	f.of[at] = failure{t.source.files.sentence(err), now}
}

// Answer is how the server of a connection answered a request.
type Answer struct {
	Status int
	// Host is the host of the request; only for a connection to many servers.
	Host string
	// Credentials and Address are the keys of the credentials and of the address, to name in a hint.
	Credentials, Address string
}

// AboutCredentials reports whether the server rejects the credentials.
func (a Answer) AboutCredentials() bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden || a.Status == http.StatusProxyAuthRequired
}

// Refusal returns why every request is refused until the setting that hint names is changed; an empty reason for other answers.
func (a Answer) Refusal() (reason, hint string) {
	if a.AboutCredentials() {
		return fmt.Sprintf("it rejects the credentials with status %d", a.Status), "check " + a.Credentials
	}
	switch a.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return "", ""
	}
	if a.Status < http.StatusMultipleChoices || a.Status >= http.StatusInternalServerError {
		return "", ""
	}
	return fmt.Sprintf("it answers with status %d", a.Status), "check " + a.Address
}

// Failure returns an error of CodeUpstream with the message, whose text and hint name the key to change.
func (a Answer) Failure(message string) error {
	e := core.NewError(core.CodeUpstream, message)
	if _, hint := a.Refusal(); hint != "" {
		e.Hint, e.Err = hint, errors.New(hint)
	}
	return e
}

// Answered records an answer until the next one: Reasons has its refusal. recheck sends a request without effects and records its
// answer; nil if the caller sends requests until one is accepted.
func (f Files) Answered(a Answer, recheck func(ctx context.Context)) {
	reason, hint := a.Refusal()
	f.Refused(a.Host, reason, hint, recheck)
}

// Refused is Answered for a refusal that the status does not tell; an empty reason for an accepted request.
func (f Files) Refused(host, reason, hint string, recheck func(ctx context.Context)) {
	if f.Failures == nil {
		return
	}
	f.Failures.mu.Lock()
	defer f.Failures.mu.Unlock()
	key := [2]string{f.name(), host}
	if reason == "" {
		delete(f.Failures.refused, key)
		return
	}
	if f.Failures.refused == nil {
		f.Failures.refused = map[[2]string]refusal{}
	}
	now := time.Now()
	f.Failures.refused[key] = refusal{reason: f.named(reason + "; " + hint), at: now, recheckedAt: now, recheck: recheck}
}

// Forget removes the failures of a connection that is not used any more.
func (f Files) Forget() {
	if f.Failures == nil {
		return
	}
	f.Failures.mu.Lock()
	defer f.Failures.mu.Unlock()
	maps.DeleteFunc(f.Failures.of, func(at server, _ failure) bool { return at.t.source.files.name() == f.name() })
	maps.DeleteFunc(f.Failures.refused, func(key [2]string, _ refusal) bool { return key[0] == f.name() })
}

// name identifies the connection.
func (f Files) name() string { return f.Subject + "," + f.Key }

// Reasons returns one sentence for each failure, with its key and without addresses, sorted.
func (f *Failures) Reasons() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var reasons []string
	for _, one := range f.of {
		reasons = append(reasons, one.reason)
	}
	for _, one := range f.refused {
		reasons = append(reasons, one.reason)
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

// rechecking marks the context of requests of Recheck.
type rechecking struct{}

// Recheck sends each of the servers that were not reached a request without credentials: any answer ends the failure. At most every
// refusedEvery it checks whether requests are still refused.
func (f *Failures) Recheck(ctx context.Context) {
	ctx = context.WithValue(ctx, rechecking{}, true)
	servers, refusals := f.due(time.Now())
	var checks sync.WaitGroup
	for _, at := range servers {
		checks.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodHead, at.scheme+"://"+at.host+"/", http.NoBody)
			if err != nil {
				return
			}
			if res, err := at.t.RoundTrip(req); err == nil {
				_ = res.Body.Close() // HEAD has none
			}
		})
	}
	for _, recheck := range refusals {
		checks.Go(func() { recheck(ctx) })
	}
	checks.Wait()
}

// due forgets old failures, and returns what must be checked again.
func (f *Failures) due(now time.Time) (servers []server, refusals []func(ctx context.Context)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, one := range f.of {
		if at.t.source.files.ManyServers && now.Sub(one.at) >= forgottenAfter {
			delete(f.of, at)
			continue
		}
		servers = append(servers, at)
	}
	for key, one := range f.refused {
		switch {
		case key[1] != "" && now.Sub(one.at) >= forgottenAfter:
			delete(f.refused, key)
		case one.recheck != nil && now.Sub(one.recheckedAt) >= refusedEvery:
			one.recheckedAt = now
			f.refused[key] = one
			refusals = append(refusals, one.recheck)
		}
	}
	return servers, refusals
}

// sentence returns why the server of f was not reached, with its key.
func (f Files) sentence(err error) string {
	reason, hint := f.Failure(err)
	if hint == "" { // reason is the text of an error, which may contain an address
		reason = "it cannot be reached"
	} else {
		reason += "; " + hint
	}
	return f.named(reason)
}

// named returns a reason with its key.
func (f Files) named(reason string) string {
	if !strings.HasPrefix(reason, f.Key+".") {
		reason = f.Key + ": " + reason
	}
	if f.Subject != "" {
		reason = f.Subject + ", " + reason
	}
	return reason
}
