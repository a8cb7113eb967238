package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// memory is a Memory of so many bytes.
type memory struct{ *semaphore.Weighted }

func (m memory) Acquire(ctx context.Context, _ core.Caller, n int64) (func(), error) {
	if err := m.Weighted.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { m.Release(n) }), nil
}

// TestBodyMemory: large bodies for which there is no memory wait, those that are received as those that are worked on, and
// are refused after a while; small ones pass.
func TestBodyMemory(t *testing.T) {
	json := http.Header{"Content-Type": {"application/json"}}
	for name, tt := range map[string]struct {
		target           string
		bodies, payloads core.Memory
	}{
		"received":  {"/notifications/song.ca", memory{semaphore.NewWeighted(150 << 10)}, nil},
		"worked on": {"/submit/S", nil, memory{semaphore.NewWeighted(6 * 150 << 10)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				free, began := make(chan struct{}), make(chan struct{}, 1)
				hold := func(body []byte) {
					if strings.Contains(string(body), "wait") {
						began <- struct{}{}
						<-free
					}
				}
				p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
					m.SubmitFn = func(_ string, body []byte, _ bool) (string, error) {
						hold(body)
						return "A", nil
					}
				})
				p.NotifyFn = func(_ string, body []byte, _, _ string) (core.NotificationResult, error) {
					hold(body)
					return core.NotificationResult{Accepted: 1}, nil
				}
				h := apitest.NewHandler(t, p.Bounded(tt.payloads), api.Config{Bodies: tt.bodies, MaxBodyBytes: 100 << 10})
				send := func(word string, size int) (*http.Response, string) {
					res, body := apitest.Do(t, h, apitest.Ask{
						Method: http.MethodPost, Target: tt.target, Body: `"` + word + strings.Repeat(" ", size) + `"`, Header: json,
					})
					return res, string(body)
				}
				first, later := make(chan int), make(chan int)
				go func() {
					res, _ := send("wait", 90<<10)
					first <- res.StatusCode
				}()
				<-began
				asked := time.Now()
				res, body := send("large", 90<<10)
				if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !strings.Contains(body, "too many large bodies") ||
					!strings.Contains(body, `"hint":"retry later"`) {
					t.Errorf("a second large body got %d: %s", res.StatusCode, body)
				}
				if waited := time.Since(asked); waited != 30*time.Second {
					t.Errorf("it was refused after %s", waited)
				}
				if res, body := send("small", 40<<10); res.StatusCode/100 != 2 {
					t.Errorf("a small body got %d: %s", res.StatusCode, body)
				}
				go func() {
					res, _ := send("large", 90<<10)
					later <- res.StatusCode
				}()
				synctest.Wait()
				close(free)
				if a, b := <-first, <-later; a/100 != 2 || b/100 != 2 {
					t.Errorf("with memory free again the answers were %d and %d", a, b)
				}
			})
		})
	}
}

// TestSmallBodies: bodies up to 64 KiB wait for memory only when there are many of them.
func TestSmallBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		p := apitest.WithMetadata(func(*apitest.MetadataMock) {})
		p.NotifyFn = func(string, []byte, string, string) (core.NotificationResult, error) {
			<-free
			return core.NotificationResult{Accepted: 1}, nil
		}
		bodies := memory{semaphore.NewWeighted(64 << 10)}
		h := apitest.NewHandler(t, p, api.Config{Bodies: bodies})
		send := func() int {
			res, _ := apitest.Do(t, h, apitest.Ask{
				Method: http.MethodPost, Target: "/notifications/song.ca", Body: strings.Repeat(" ", 64<<10-2) + "{}",
				Header: http.Header{"Content-Type": {"application/json"}},
			})
			return res.StatusCode
		}
		for round := range 2 {
			answers := make(chan int)
			sendMany := func(n int) {
				for range n {
					go func() { answers <- send() }()
				}
				synctest.Wait()
			}
			sendMany(256)
			if !bodies.TryAcquire(64 << 10) {
				t.Fatalf("round %d: 256 bodies count", round)
			}
			bodies.Release(64 << 10)
			sendMany(1)
			if bodies.TryAcquire(1) {
				t.Errorf("round %d: the 257th does not count", round)
			}
			if status := send(); status != http.StatusServiceUnavailable {
				t.Errorf("round %d: the 258th got %d", round, status)
			}
			for range 257 {
				free <- struct{}{}
				if status := <-answers; status/100 != 2 {
					t.Errorf("round %d: one of the others got %d", round, status)
				}
			}
		}
	})
}

// TestAnnouncedBodies: a small body takes memory as it arrives, not as announced.
func TestAnnouncedBodies(t *testing.T) {
	h := apitest.NewHandler(t, apitest.WithMetadata(func(*apitest.MetadataMock) {}), api.Config{})
	const requests = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range requests {
		r := httptest.NewRequest(http.MethodPost, "/notifications/song.ca", io.MultiReader(strings.NewReader("{")))
		r.ContentLength = 64 << 10
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / requests; each > 48<<10 {
		t.Errorf("a request that sends one byte of 64 KiB allocates %d bytes", each)
	}
}

// TestPayloadsHoldNoBodies: a submission that is worked on does not keep others from being received.
func TestPayloadsHoldNoBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
			m.SubmitFn = func(string, []byte, bool) (string, error) {
				<-free
				return "A", nil
			}
		})
		bodies := memory{semaphore.NewWeighted(100 << 10)}
		h := apitest.NewHandler(t, p, api.Config{Bodies: bodies})
		answered := make(chan int)
		go func() {
			res, _ := apitest.Do(t, h, apitest.Ask{Method: http.MethodPost, Target: "/submit/S", Body: `{"a":"` + strings.Repeat("x", 90<<10) + `"}`})
			answered <- res.StatusCode
		}()
		synctest.Wait()
		if !bodies.TryAcquire(100 << 10) {
			t.Error("the body of a submission that is worked on still counts as received")
		} else {
			bodies.Release(100 << 10)
		}
		close(free)
		if status := <-answered; status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	})
}
