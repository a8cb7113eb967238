package tlsconfig

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Failures has the connections whose last request was not answered. It is safe for concurrent use; nil records nothing.
type Failures struct {
	mu sync.Mutex
	of map[*roundTripper]failure
}

// failure is why a server was not reached, and its address.
type failure struct{ reason, scheme, host string }

// record records the end of a request, unless its caller canceled it.
func (f *Failures) record(t *roundTripper, req *http.Request, err error) {
	if f == nil || errors.Is(context.Cause(req.Context()), context.Canceled) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.of, t)
		return
	}
	if f.of == nil {
		f.of = map[*roundTripper]failure{}
	}
	f.of[t] = failure{t.source.files.sentence(err), req.URL.Scheme, req.URL.Host}
}

// Reasons returns one sentence for each connection, with its key and without addresses, sorted.
func (f *Failures) Reasons() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var reasons []string
	for _, one := range f.of {
		reasons = append(reasons, one.reason)
	}
	slices.Sort(reasons)
	return reasons
}

// Recheck sends each of the servers a request without credentials. Any answer ends the failure.
func (f *Failures) Recheck(ctx context.Context) {
	f.mu.Lock()
	of := maps.Clone(f.of)
	f.mu.Unlock()
	var checks sync.WaitGroup
	for t, one := range of {
		checks.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodHead, one.scheme+"://"+one.host+"/", http.NoBody)
			if err != nil {
				return
			}
			if res, err := t.RoundTrip(req); err == nil {
				_ = res.Body.Close() // HEAD has none
			}
		})
	}
	checks.Wait()
}

// sentence returns why the server of f was not reached, with its key.
func (f Files) sentence(err error) string {
	reason, hint := f.Failure(err)
	if hint == "" { // reason is the text of an error, which may contain an address
		reason = "it cannot be reached"
	} else {
		reason += "; " + hint
	}
	if strings.HasPrefix(reason, f.Key+".") {
		return reason
	}
	return f.Key + ": " + reason
}
