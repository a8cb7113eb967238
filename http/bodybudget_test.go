package http_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tuttihttp "tutti/http"
	"tutti/internal/core"
)

// TestBodyBudget: large bodies that have no room beside those in hand wait, and are refused after a while; small ones pass.
func TestBodyBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := working()
		free, began := make(chan struct{}), make(chan struct{}, 1)
		p.notify = func(_ string, body []byte, _, _ string) (core.Notified, error) {
			if strings.Contains(string(body), "wait") {
				began <- struct{}{}
				<-free
			}
			return core.Notified{Accepted: 1}, nil
		}
		h := newHandler(t, p, tuttihttp.Config{MaxBodyBytes: 100 << 10, BodyBudget: 150 << 10})
		send := func(word string, size int) (int, string) {
			res, body := do(t, h, ask{
				method: http.MethodPost, target: "/notifications/song.ca", body: `"` + word + strings.Repeat(" ", size) + `"`,
				header: http.Header{"Content-Type": {"application/json"}},
			})
			return res.StatusCode, string(body)
		}
		first := make(chan int)
		go func() {
			status, _ := send("wait", 90<<10)
			first <- status
		}()
		<-began
		asked := time.Now()
		if status, body := send("large", 90<<10); status != http.StatusServiceUnavailable || !strings.Contains(body, "too many large bodies") {
			t.Errorf("a second large body got %d: %s", status, body)
		}
		if waited := time.Since(asked); waited != 5*time.Second {
			t.Errorf("it was refused after %s", waited)
		}
		if status, body := send("small", 40<<10); status != http.StatusAccepted {
			t.Errorf("a small body got %d: %s", status, body)
		}
		later := make(chan int)
		go func() {
			status, _ := send("large", 90<<10)
			later <- status
		}()
		synctest.Wait()
		close(free)
		if a, b := <-first, <-later; a != http.StatusAccepted || b != http.StatusAccepted {
			t.Errorf("with room again the answers were %d and %d", a, b)
		}
	})
}
