package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// ErrBadTarget is returned when the proxy's target is not an absolute http or https URL.
var ErrBadTarget = errors.New("target must be an http URL with a host")

// FaultRates configures a FaultProxy: the probability, from 0 to 1, of each kind of fault for a request. A request meets at most one
// fault, so the sum must not exceed 1.
type FaultRates struct {
	// TooManyRequests responds with 429 and Unavailable with 503, both with Retry-After: 0 and without calling the target.
	TooManyRequests, Unavailable float64
	// ResetRequest resets the connection before the target is called. ResetResponse calls the target, and resets the connection in the
	// middle of its response.
	ResetRequest, ResetResponse float64
	// Stall delays the request for StallFor (default 10 s) before the target is called.
	Stall    float64
	StallFor time.Duration
	// Cut sends half of the target's body, and ends it properly.
	Cut float64
}

// FaultCounts counts the requests of a FaultProxy. Requests counts all of them, Passed those without a fault.
type FaultCounts struct {
	Requests, Passed, TooManyRequests, Unavailable, ResetRequest, ResetResponse, Stalled, Cut int64
}

// FaultProxy is a reverse proxy on a loopback address that injects faults into some of the requests it forwards. Faults are off until
// On is called.
type FaultProxy struct {
	target *url.URL
	rates  FaultRates
	calls  *http.Transport
	addr   string
	on     atomic.Bool

	counts [faultKinds]atomic.Int64

	draw sync.Mutex
	rng  *rand.Rand

	mu      sync.Mutex
	server  *http.Server
	served  chan struct{}
	closing chan struct{}
	closed  bool
}

// faultKind is the fault of one request.
type faultKind int

const (
	faultNone faultKind = iota
	faultTooMany
	faultUnavailable
	faultResetRequest
	faultResetResponse
	faultStall
	faultCut
	faultKinds
)

// NewFaultProxy starts a proxy to the base URL target on a free port of 127.0.0.1. The faults depend on seed and the order of the
// requests. The caller must close it.
func NewFaultProxy(target string, seed uint64, rates FaultRates) (*FaultProxy, error) {
	base, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("starting a fault proxy: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("starting a fault proxy: %w", ErrBadTarget)
	}
	if rates.StallFor == 0 {
		rates.StallFor = 10 * time.Second
	}
	p := &FaultProxy{
		target: base, rates: rates, addr: "127.0.0.1:0", rng: rand.New(rand.NewPCG(seed, 1)),
		calls: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16},
	}
	return p, p.SetDown(false)
}

// URL returns the base URL that replaces the target's.
func (p *FaultProxy) URL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "http://" + p.addr + p.target.EscapedPath()
}

// On enables or disables faults.
func (p *FaultProxy) On(on bool) { p.on.Store(on) }

// Counts returns the counts so far.
func (p *FaultProxy) Counts() FaultCounts {
	var n [faultKinds]int64
	var all int64
	for i := range n {
		n[i] = p.counts[i].Load()
		all += n[i]
	}
	return FaultCounts{
		Requests: all, Passed: n[faultNone], TooManyRequests: n[faultTooMany], Unavailable: n[faultUnavailable],
		ResetRequest: n[faultResetRequest], ResetResponse: n[faultResetResponse], Stalled: n[faultStall], Cut: n[faultCut],
	}
}

// SetDown closes the proxy's port and all its connections, so that connections are refused, or opens the same port again.
func (p *FaultProxy) SetDown(down bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if down {
		p.stop()
		return nil
	}
	if p.server != nil || p.closed {
		return nil
	}
	listener, err := net.Listen("tcp", p.addr)
	if err != nil {
		return fmt.Errorf("opening the fault proxy's port: %w", err)
	}
	p.addr = listener.Addr().String()
	closing, served := make(chan struct{}), make(chan struct{})
	handlers := &drainGroup{}
	server := &http.Server{ReadHeaderTimeout: time.Minute}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !handlers.add() {
			return
		}
		defer handlers.done()
		p.serve(w, r, closing)
	})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with ErrServerClosed
		handlers.drain()
	}()
	p.server, p.served, p.closing = server, served, closing
	return nil
}

// stop stops the running server and waits for its handlers. p.mu must be held.
func (p *FaultProxy) stop() {
	if p.server == nil {
		return
	}
	close(p.closing)
	_ = p.server.Close()
	<-p.served
	p.server = nil
}

// Close stops the proxy permanently and waits for its handlers.
func (p *FaultProxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop()
	p.closed = true
	p.calls.CloseIdleConnections()
}

// pick selects the fault of one request.
func (p *FaultProxy) pick() faultKind {
	if !p.on.Load() {
		return faultNone
	}
	p.draw.Lock()
	x := p.rng.Float64()
	p.draw.Unlock()
	chances := [faultKinds]float64{
		faultTooMany: p.rates.TooManyRequests, faultUnavailable: p.rates.Unavailable,
		faultResetRequest: p.rates.ResetRequest, faultResetResponse: p.rates.ResetResponse,
		faultStall: p.rates.Stall, faultCut: p.rates.Cut,
	}
	for kind, chance := range chances {
		if x < chance {
			return faultKind(kind)
		}
		x -= chance
	}
	return faultNone
}

func (p *FaultProxy) serve(w http.ResponseWriter, r *http.Request, closing <-chan struct{}) {
	kind := p.pick()
	p.counts[kind].Add(1)
	switch kind {
	case faultTooMany, faultUnavailable:
		status := http.StatusTooManyRequests
		if kind == faultUnavailable {
			status = http.StatusServiceUnavailable
		}
		_, _ = io.Copy(io.Discard, r.Body) // like a server that reads the request first
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(status)
	case faultResetRequest:
		reset(w)
	case faultStall:
		stall := Fault{Wait: p.rates.StallFor}
		if !stall.wait(r, closing) {
			return
		}
		p.pass(w, r, kind)
	case faultNone, faultResetResponse, faultCut, faultKinds:
		p.pass(w, r, kind)
	}
}

// pass forwards the request to the target and returns the response.
func (p *FaultProxy) pass(w http.ResponseWriter, r *http.Request, kind faultKind) {
	// The response may begin while the request's body is still forwarded; net/http would close the body then, which breaks the connection
	// to the target.
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
		reset(w)
		return
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host = p.target.Scheme, p.target.Host
	out.Host = p.target.Host
	out.RequestURI = ""
	res, err := p.calls.RoundTrip(out)
	if err != nil {
		reset(w)
		return
	}
	defer res.Body.Close()
	var body io.Reader = res.Body
	size := res.ContentLength
	if kind == faultCut || kind == faultResetResponse {
		whole, err := io.ReadAll(res.Body)
		if err != nil {
			reset(w)
			return
		}
		half := whole[:len(whole)/2]
		body, size = bytes.NewReader(half), int64(len(whole))
		if kind == faultCut {
			size = int64(len(half))
		}
	}
	maps.Copy(w.Header(), res.Header)
	if size >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	}
	w.WriteHeader(res.StatusCode)
	_, err = io.Copy(w, body)
	if err != nil || kind == faultResetResponse {
		_ = http.NewResponseController(w).Flush()
		reset(w)
	}
}
