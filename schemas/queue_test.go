package schemas_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/schemas"
)

// queued registers a type "a" whose validation asks about each of an analysis' values.
func queued(t *testing.T, cfg schemas.Config, url string) *schemas.Service {
	t.Helper()
	cfg.AllowedHosts = []string{"127.0.0.1"}
	s, _ := newService(t, cfg)
	register(t, s, `{"name":"a","schema":`+simple+`,"options":{"externalValidations":[{"url":"`+url+`/{value}","jsonPath":"experiment.d[*]"}]}}`)
	return s
}

func withValues(values string) string {
	return strings.Replace(analysis("a", ""), `"experiment":{}`, `"experiment":{"d":[`+values+`]}`, 1)
}

// TestQueueIsNoTimeout: a service of which more is asked than it may be asked at once answers each call in time, and so
// none counts as one without an answer.
func TestQueueIsNoTimeout(t *testing.T) {
	const takes, timeout, calls = 500 * time.Millisecond, 2 * time.Second, 6 * 32 // the last waits longer than timeout
	var now, most atomic.Int64
	external := newExternal(t, func(_ http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		select { // this long does the service take
		case <-time.After(takes):
		case <-r.Context().Done():
		}
	})
	s := queued(t, schemas.Config{Timeout: timeout}, external.URL)
	var group sync.WaitGroup
	for range calls {
		group.Go(func() {
			if _, err := s.Validate(t.Context(), "S1", withValues(`"x"`)); err != nil {
				t.Error(err, lines(err))
			}
		})
	}
	group.Wait()
	if most.Load() > 32 {
		t.Errorf("%d calls side by side", most.Load())
	}
	if got := len(external.requests()); got != calls {
		t.Errorf("%d calls, want %d", got, calls)
	}
}

// TestTimeForAllCalls: what is not known when it is over may be valid later, whether its call was cut or never made.
func TestTimeForAllCalls(t *testing.T) {
	const over = " could not be checked: the time limit for external validations was exceeded | retryable"
	external := newExternal(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := queued(t, schemas.Config{Timeout: time.Hour, TimeoutInAll: 200 * time.Millisecond}, external.URL)
	_, err := s.Validate(t.Context(), "S1", withValues(`"a","b","c","d","e","f","g","h","i"`))
	wantError(t, err, core.CodeInvalid, "schema.violation", `the analysis does not match version 1 of "a": `)
	if got := lines(err); strings.Count(got, over) != 9 {
		t.Errorf("got %s", got)
	}
	if got := len(external.requests()); got > 8 {
		t.Errorf("%d calls, of which 8 are made at once", got)
	}
	_, err = schemas.New(&fakeStore{}, schemas.Config{TimeoutInAll: -1})
	wantError(t, err, core.CodeInvalid, "", "the time-out, the wait and the cache of schemas must not be negative")
}

// TestCallerThatLeavesTheQueue is let go, and its place is free for the next.
func TestCallerThatLeavesTheQueue(t *testing.T) {
	arrived, release := make(chan struct{}, 64), make(chan struct{})
	external := newExternal(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	s := queued(t, schemas.Config{}, external.URL)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := s.Validate(t.Context(), "S1", withValues(`"a","b","c","d","e","f","g","h"`)); err != nil {
				t.Error(err, lines(err))
			}
		})
	}
	for range 32 {
		<-arrived
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Validate(ctx, "S1", withValues(`"x"`))
	wantError(t, err, core.CodeUnavailable, "", "the check was canceled")
	if got := len(external.requests()); got != 32 {
		t.Errorf("%d calls", got)
	}
	close(release)
	group.Wait()
	if _, err := s.Validate(t.Context(), "S1", withValues(`"x"`)); err != nil {
		t.Error(err)
	}
}
