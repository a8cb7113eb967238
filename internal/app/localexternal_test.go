package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// registry is a service for external validations: it knows the ids that begin with DO, and records the requests.
type registry struct {
	server *httptest.Server
	// hanging receives a value for each call below /hangs, which is answered once release is closed.
	hanging, release chan struct{}

	mu    sync.Mutex
	calls map[string]int
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{calls: map[string]int{}, hanging: make(chan struct{}, 100), release: make(chan struct{})}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// ServeHTTP answers 200 for an id that is known, 404 for others, 503 for those below /breaks, and those below /hangs late.
func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.calls[req.URL.RequestURI()]++
	r.mu.Unlock()
	switch {
	case strings.HasPrefix(req.URL.Path, "/hangs/"):
		r.hanging <- struct{}{}
		select {
		case <-r.release:
		case <-req.Context().Done():
		}
	case strings.HasPrefix(req.URL.Path, "/breaks/"):
		w.WriteHeader(http.StatusServiceUnavailable)
	case !strings.HasPrefix(req.URL.Query().Get("id"), "DO"):
		w.WriteHeader(http.StatusNotFound)
	}
}

// asked returns the number of requests for each address since the last call.
func (r *registry) asked() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = map[string]int{}
	return calls
}

// registerExternalType registers an analysis type whose donors are validated at a path of the registry.
func (b *builtIn) registerExternalType(name, address string) {
	b.t.Helper()
	b.mustSend(http.MethodPost, "/schemas", typeOf(name, "", fmt.Sprintf(
		`,"options":{"externalValidations":[{"url":%q,"jsonPath":"$.experiment.donors[*].id"}]}`, address)), http.StatusOK)
}

// donors returns an analysis of a type with donors of some ids.
func (b *builtIn) donors(kind string, ids ...string) string {
	var list []string
	for _, id := range ids {
		list = append(list, `{"id":`+quoted(id)+`}`)
	}
	return strings.Replace(b.payload("S1", `"donors":[`+strings.Join(list, ",")+`]`), `"plain"`, `"`+kind+`"`, 1)
}

// external allows some hosts for external validations.
func external(hosts, timeout string) string {
	return "schemas: {externalValidations: {allowedHosts: " + hosts + ", timeout: " + timeout + "}}\n"
}

// TestExternalValidations: every distinct value of a submission is validated by one request; an analysis with an unknown value is
// refused, with the pointer of the value.
func TestExternalValidations(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	b := startBuiltIn(t, plan{more: external(`["127.0.0.1"]`, "5s")})
	b.registerExternalType("donors", r.server.URL+"/{study}?id={value}")

	b.mustSend(http.MethodPost, "/submit/S1", b.donors("donors", "DO1", "DO 2&x=é/?", "DO1", "DO1"), http.StatusOK)
	want := map[string]int{"/S1?id=DO1": 1, "/S1?id=" + url.QueryEscape("DO 2&x=é/?"): 1}
	if got := r.asked(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("requests %v, want %v", got, want)
	}
	id := b.mustSend(http.MethodPost, "/submit/S1", b.donors("donors"), http.StatusOK).get("analysisId").String()
	if got := r.asked(); len(got) != 0 {
		t.Errorf("requests %v without values", got)
	}

	bad := b.donors("donors", "DO1", "XX7", "DO1", "XX7")
	a := b.mustSend(http.MethodPost, "/submit/S1", bad, http.StatusBadRequest)
	if a.get("errorId").String() != "schema.violation" || !strings.Contains(a.get("message").String(), "XX7") ||
		a.get("violations.#.pointer").Raw != `["/experiment/donors/1/id","/experiment/donors/3/id"]` ||
		a.get("violations.0.retryable").Bool() || strings.Contains(string(a.raw), r.server.URL) {
		t.Errorf("an unknown donor: %s", a.raw)
	}
	if got := r.asked(); got["/S1?id=DO1"] != 1 || got["/S1?id=XX7"] != 1 || len(got) != 2 {
		t.Errorf("requests %v, want each once", got)
	}
	// The same on a change; a call of a broken service is retried before the change is refused.
	b.mustSend(http.MethodPut, analysisPath("S1", id), bad, http.StatusBadRequest)
	b.mustSend(http.MethodPatch, analysisPath("S1", id), `{"experiment":{"donors":[{"id":"XX8"}]}}`, http.StatusBadRequest)
	b.mustSend(http.MethodPatch, analysisPath("S1", id), `{"experiment":{"donors":[{"id":"DO8"}]}}`, http.StatusOK)
	b.registerExternalType("broken", r.server.URL+"/breaks/{value}")
	r.asked()
	a = b.mustSend(http.MethodPost, "/submit/S1", b.donors("broken", "DO1"), http.StatusBadRequest)
	if !strings.Contains(a.get("message").String(), "503") || !a.get("violations.0.retryable").Bool() {
		t.Errorf("a broken service: %s", a.raw)
	}
	if got := r.asked(); got["/breaks/DO1"] != 3 {
		t.Errorf("requests %v to a broken service, want three", got)
	}
	b.publish("S1", id)
	if got := r.asked(); len(got) != 0 {
		t.Errorf("requests %v on publishing", got)
	}
	b.awaitConverged()
}

// TestExternalNotListed: without a list no address of this machine is called, and with one only the hosts in it.
func TestExternalNotListed(t *testing.T) {
	t.Parallel()
	for name, hosts := range map[string]string{"no list": "[]", "another host": `["example.org", "127.0.0.1:1"]`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t)
			b := startBuiltIn(t, plan{more: external(hosts, "5s")})
			for i, address := range []string{r.server.URL, strings.Replace(r.server.URL, "127.0.0.1", "localhost", 1)} {
				kind := fmt.Sprintf("donors%d", i)
				b.registerExternalType(kind, address+"/{study}?id={value}")
				a := b.mustSend(http.MethodPost, "/submit/S1", b.donors(kind, "DO1"), http.StatusBadRequest)
				if a.get("errorId").String() != "schema.violation" || a.get("violations.0.retryable").Bool() ||
					!strings.Contains(a.get("message").String(), "allowedHosts") {
					t.Errorf("asking %s: %s", address, a.raw)
				}
			}
			if got := r.asked(); len(got) != 0 {
				t.Errorf("requests %v", got)
			}
		})
	}
}

// TestExternalHangs: a service that hangs delays only the submissions that it validates.
func TestExternalHangs(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	b := startBuiltIn(t, plan{more: external(`["127.0.0.1"]`, "10m")})
	b.registerExternalType("stuck", r.server.URL+"/hangs/{value}")
	ready := b.submit("S1")
	const clients = 8
	answers := make([]answer, clients)
	errs := make([]error, clients)
	var held sync.WaitGroup
	for i := range clients {
		held.Go(func() {
			answers[i], errs[i] = b.send(http.MethodPost, "/submit/S1", b.donors("stuck", fmt.Sprintf("DO%d", i)))
		})
	}
	b.eventually(wait, func() (bool, string) {
		n := len(r.hanging)
		return n == clients, fmt.Sprintf("the service received %d requests", n)
	})
	b.publish("S1", ready)
	b.publish("S1", b.submit("S1"))
	b.awaitConverged()
	if n := len(b.documents()); n != 2 {
		t.Errorf("%d documents while a service hangs, want 2", n)
	}
	if n := len(b.storedAnalyses(everyState)); n != 2 {
		t.Errorf("%d analyses are kept while a service hangs, want 2", n)
	}
	close(r.release)
	held.Wait()
	for i, a := range answers {
		if errs[i] != nil || a.status != http.StatusOK {
			t.Errorf("an analysis whose service answered late: %v %s", errs[i], a.raw)
		}
	}
	if n := len(b.storedAnalyses(everyState)); n != 2+clients {
		t.Errorf("%d analyses are kept, want %d", n, 2+clients)
	}
}

// TestExternalHangsOneCaller: a large submission whose validation hangs takes no memory that those of other clients wait for, also
// behind a proxy; a second large submission of the same client waits for it.
func TestExternalHangsOneCaller(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	b := newBuiltIn(t, plan{
		server: `, maxBytesInFlight: 1048576, trustedProxies: ["127.0.0.0/8", "::1"]`, more: external(`["127.0.0.1"]`, "10m"),
	})
	b.startChild() // memory that was released is collected, which takes long in a process with those of other tests
	b.awaitPaused(false)
	b.prepareStudies("S1")
	b.registerExternalType("stuck", r.server.URL+"/hangs/{value}")
	sent := make(chan struct{}, 2)
	sending := httptrace.WithClientTrace(context.WithoutCancel(t.Context()), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
		select {
		case sent <- struct{}{}: // of the first two, which are awaited
		default:
		}
	}})
	client := *b.client
	client.Timeout = 0 // two submissions wait for as long as those of the other client take
	submit := func(address, body string) (int, error) {
		req, err := http.NewRequestWithContext(sending, http.MethodPost, b.url+"/submit/S1",
			strings.NewReader(body+strings.Repeat(" ", 70<<10)))
		if err != nil {
			return 0, err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Forwarded-For", address)
		res, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	hung := make(chan struct{})
	go func() {
		defer close(hung)
		if status, err := submit("192.0.2.1", b.donors("stuck", "DO1")); err != nil || status != http.StatusOK {
			t.Errorf("the one that hung: %d, %v", status, err)
		}
	}()
	<-r.hanging
	<-sent
	second := make(chan struct{})
	payload := b.payload("S1", "")
	go func() {
		defer close(second)
		status, err := submit("192.0.2.1", payload)
		for err == nil && status == http.StatusServiceUnavailable { // on a slow disk those of the other client take longer than it may wait
			status, err = submit("192.0.2.1", payload)
		}
		if err != nil || status != http.StatusOK {
			t.Errorf("the second of the same client: %d, %v", status, err)
		}
	}()
	<-sent
	for range 5 {
		if status, err := submit("192.0.2.2", b.payload("S1", "")); err != nil || status != http.StatusOK {
			t.Errorf("that of another client: %d, %v", status, err)
		}
	}
	select {
	case <-second:
		t.Error("the second of the same client was answered before the first")
	default:
	}
	close(r.release)
	<-hung
	<-second
}

// TestExternalTimeout: a service that times out is called three times; then the analysis is refused as retryable.
func TestExternalTimeout(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	b := startBuiltIn(t, plan{more: external(`["127.0.0.1"]`, "1s")})
	b.registerExternalType("stuck", r.server.URL+"/hangs/{value}")
	a := b.mustSend(http.MethodPost, "/submit/S1", b.donors("stuck", "DO1", "DO1"), http.StatusBadRequest)
	if a.get("violations.#(retryable==true)#.pointer").Raw != `["/experiment/donors/0/id","/experiment/donors/1/id"]` ||
		!strings.Contains(a.get("message").String(), "did not answer within 1s") {
		t.Errorf("an analysis whose service did not answer: %s", a.raw)
	}
	if got := r.asked(); len(got) != 1 || got["/hangs/DO1"] != 3 {
		t.Errorf("requests %v, want three", got)
	}
	if n := len(b.storedAnalyses(everyState)); n != 0 {
		t.Errorf("%d analyses are kept, want none", n)
	}
}
