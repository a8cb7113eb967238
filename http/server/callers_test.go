package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tutti/http/api"
	"tutti/http/server"
	"tutti/internal/base/budget"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
	"tutti/internal/tools/fakes"
	"tutti/internal/tools/testkit"
)

// posting is a request whose body is as long as it says if sent is.
func posting(target string, size int, sent string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", target, size, sent)
}

// inBudget serves p with a budget of the default size to clients that have addresses.
func inBudget(t *testing.T, p *apitest.Ports, test func(crowd, *budget.Budget)) {
	synctest.Test(t, func(t *testing.T) {
		b, err := budget.New(budget.Default, func() {})
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		s := server.New(apitest.NewHandler(t, p.Bounded(b.Payloads), api.Config{Bodies: b.Requests}), server.Config{})
		s.Serve(l)
		test(crowd{t, l}, b)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // net/http leaves clients that long to read
	})
}

// TestHalfSentBodiesOfOneCaller: they delay only that caller's other bodies, until each has exceeded its time.
func TestHalfSentBodiesOfOneCaller(t *testing.T) {
	const target, size = "/notifications/song.ca", 10 << 20
	inBudget(t, holding(), func(c crowd, _ *budget.Budget) {
		for range 7 {
			conn := c.ask("10.0.0.1", posting(target, size, "["))
			defer func() { _ = conn.Close() }()
		}
		began := time.Now()
		own := c.ask("10.0.0.1", posting(target, 1<<20, "1"+strings.Repeat(" ", 1<<20-1)))
		other := c.ask("10.0.0.2", posting(target, 1<<20, "1"+strings.Repeat(" ", 1<<20-1)))
		c.want("a whole body of another caller", other, http.StatusAccepted)
		if d := time.Since(began); d != 0 {
			t.Errorf("it was answered after %s", d)
		}
		c.want("a whole body of the same caller", own, -1)
		time.Sleep(40 * time.Second) // each third of the seven is too slow after 10 s, the last of them after 30 s
		own = c.ask("10.0.0.1", posting(target, 1<<20, "1"+strings.Repeat(" ", 1<<20-1)))
		c.want("after all were too slow", own, http.StatusAccepted)
		_, _ = own.Close(), other.Close()
	})
}

// TestSlowBodiesLoseTheirMemory: a body that waits for memory is received once one that is too slow has lost it.
func TestSlowBodiesLoseTheirMemory(t *testing.T) {
	const target, size = "/notifications/song.ca", 8 << 20
	inBudget(t, holding(), func(c crowd, b *budget.Budget) {
		for _, address := range []string{"10.0.0.1", "10.0.0.2"} {
			for range 3 {
				conn := c.ask(address, posting(target, size, "["))
				defer func() { _ = conn.Close() }()
			}
		}
		began := time.Now()
		waiting := c.ask("10.0.0.3", posting(target, size, "1"+strings.Repeat(" ", size-1)))
		defer func() { _ = waiting.Close() }()
		time.Sleep(8 * time.Second)
		c.want("beside six bodies of 8 MiB", waiting, -1)
		time.Sleep(time.Second / 2)
		c.want("once they were too slow", waiting, http.StatusAccepted)
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("it was answered after %s", d)
		}
	})
}

// TestSubmissionsOfOneCaller: one that is worked on for long does not delay those of others.
func TestSubmissionsOfOneCaller(t *testing.T) {
	validated := make(chan struct{})
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.SubmitFn = func(_ string, body []byte, _ bool) (string, error) {
			if strings.HasPrefix(string(body), `"external`) {
				<-validated
			}
			return "A", nil
		}
	})
	inBudget(t, p, func(c crowd, _ *budget.Budget) {
		const size = 10<<20 - 10
		submission := func(word string) string {
			return posting("/submit/S", size, `"`+word+strings.Repeat(" ", size-2-len(word))+`"`)
		}
		validated = make(chan struct{}) // of the bubble
		external := c.ask("10.0.0.1", submission("external"))
		began := time.Now()
		other := c.ask("10.0.0.2", submission("large"))
		c.want("a submission of another caller", other, http.StatusOK)
		if d := time.Since(began); d != 0 {
			t.Errorf("it was answered after %s", d)
		}
		close(validated)
		c.want("the one that was validated", external, http.StatusOK)
		_, _ = external.Close(), other.Close()
	})
}

// noMemory is a Memory that has none left.
type noMemory struct{ core.Memory }

func (noMemory) Acquire(context.Context, core.Caller, int64) (func(), error) {
	return nil, core.NewError(core.CodeOverloaded, "full")
}

// TestRefusedForMemory: a client that sends its body whole before it reads gets the 503, not a reset.
func TestRefusedForMemory(t *testing.T) {
	_, addr := apitest.Start(t, apitest.Working(), api.Config{Bodies: noMemory{}})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(testkit.HangLimit))
	const size = 8 << 20
	if _, err := io.WriteString(conn, posting("/notifications/song.ca", size, strings.Repeat(" ", size))); err != nil {
		t.Fatalf("sending: %v", err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" ||
		!strings.Contains(string(body), "too many large bodies") {
		t.Errorf("got %d %v: %s, %v", res.StatusCode, res.Header, body, err)
	}
}

// callers is a Memory that notes who takes of it.
type callers struct{ asked *[]core.Caller }

func (c callers) Acquire(_ context.Context, caller core.Caller, _ int64) (func(), error) {
	*c.asked = append(*c.asked, caller)
	return func() {}, nil
}

// TestAccountable: a request counts as its principal, else as the network address of the client, which only trusted proxies may
// say; bodies, payloads and downloads alike.
func TestAccountable(t *testing.T) {
	const proxy, first, second = "10.1.0.1:80", "192.0.2.1", "192.0.2.2"
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	for name, tt := range map[string]struct {
		remote    string
		forwarded []string
		token     string
		open      bool
		want      core.Caller
	}{
		"an address":                  {remote: first + ":1", open: true, want: core.Caller{ID: "address:" + first}},
		"with authentication":         {remote: first + ":1", want: core.Caller{ID: "address:" + first, Group: "anonymous"}},
		"an address in IPv6":          {remote: "[::ffff:192.0.2.1]:1", open: true, want: core.Caller{ID: "address:" + first}},
		"a network of IPv6":           {remote: "[2001:db8::1:2:3:4%eth0]:1", open: true, want: core.Caller{ID: "address:2001:db8::"}},
		"no address":                  {remote: "pipe", open: true, want: core.Caller{ID: "address:invalid IP"}},
		"its own claim":               {remote: first + ":1", forwarded: []string{second}, open: true, want: core.Caller{ID: "address:" + first}},
		"a trusted proxy":             {remote: proxy, forwarded: []string{first}, open: true, want: core.Caller{ID: "address:" + first}},
		"with a port":                 {remote: proxy, forwarded: []string{first + ":99"}, open: true, want: core.Caller{ID: "address:" + first}},
		"with brackets":               {remote: proxy, forwarded: []string{"[2001:db8::1]"}, open: true, want: core.Caller{ID: "address:2001:db8::"}},
		"a claim before it":           {remote: proxy, forwarded: []string{second + ", " + first}, open: true, want: core.Caller{ID: "address:" + first}},
		"a claim in another header":   {remote: proxy, forwarded: []string{second, first}, open: true, want: core.Caller{ID: "address:" + first}},
		"two proxies":                 {remote: proxy, forwarded: []string{second + "," + first + ",10.1.0.2"}, open: true, want: core.Caller{ID: "address:" + first}},
		"only proxies":                {remote: proxy, forwarded: []string{"10.1.0.3,10.1.0.2"}, open: true, want: core.Caller{ID: "address:10.1.0.3"}},
		"a proxy that says nothing":   {remote: proxy, open: true, want: core.Caller{ID: "address:10.1.0.1"}},
		"a proxy that does not know":  {remote: proxy, forwarded: []string{first + ", unknown"}, open: true, want: core.Caller{ID: "address:10.1.0.1"}},
		"a proxy's own in IPv6":       {remote: "[::ffff:10.1.0.1]:80", forwarded: []string{first}, open: true, want: core.Caller{ID: "address:" + first}},
		"a principal at a proxy":      {remote: proxy, forwarded: []string{first}, token: apitest.SystemRight, want: core.Caller{Known: true}},
		"a principal, not its scopes": {remote: first + ":1", token: apitest.SystemRight, want: core.Caller{Known: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
				m.SubmitFn = func(string, []byte, bool) (string, error) { return "A", nil }
			})
			p.Catalogues = apitest.NewShelf(apitest.Participants())
			var downloads, asked []core.Caller
			answer := p.Searches.DownloadFn
			p.Searches.DownloadFn = func(ctx context.Context, id string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error {
				downloads = append(downloads, r.Caller)
				return answer(ctx, id, who, r, begin)
			}
			cfg := api.Config{
				Bodies: callers{&asked}, Hosts: []string{"*"},
				TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
			}
			h := apitest.NewHandler(t, p.Bounded(callers{&asked}), cfg)
			if !tt.open {
				h = apitest.GuardedHandler(t, p, d, cfg)
			}
			send := func(target, body string) {
				t.Helper()
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
				r.RemoteAddr = tt.remote
				r.Header["X-Forwarded-For"] = tt.forwarded
				r.Header.Set("Content-Type", "application/json")
				if tt.token != "" {
					r.Header["Authorization"] = d.Header(tt.token)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code/100 != 2 {
					t.Fatalf("%s: %d %s", target, w.Code, w.Body)
				}
			}
			large := strings.Repeat(" ", 70<<10)
			send("/participants/download", `{}`+large)
			if tt.open || tt.token != "" {
				send("/submit/S", `{}`+large)
			} else {
				send("/notifications/"+fakes.SignedRepository, `{}`+large)
				asked = append(asked, asked[0])
			}
			if len(asked) != 3 || len(downloads) != 1 {
				t.Fatalf("memory was taken for %v, downloads made for %v", asked, downloads)
			}
			for _, got := range append(asked, downloads...) {
				if tt.want.Known && strings.HasPrefix(got.ID, "key:") {
					got.ID = ""
				}
				if got != tt.want {
					t.Errorf("counted as %+v, want %+v", got, tt.want)
				}
			}
		})
	}
}
