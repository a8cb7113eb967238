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

// ErrBadTarget says that the proxy's target is not an absolute http or https URL.
var ErrBadTarget = errors.New("target must be an http URL with a host")

// FaultRates configures a FaultProxy: per kind of fault the probability, from 0 to 1, that a request meets it. One
// request meets one fault at most, so the sum must not be over 1.
type FaultRates struct {
	// TooManyRequests answers 429 and Unavailable 503, both with Retry-After: 0 and without asking the target.
	TooManyRequests, Unavailable float64
	// ResetRequest resets the connection before the target is asked. ResetResponse asks the target, and resets the
	// connection in the middle of its answer.
	ResetRequest, ResetResponse float64
	// Stall holds the request up for StallFor (default 10 s) before the target is asked.
	Stall    float64
	StallFor time.Duration
	// Cut sends half of the target's body, in good order.
	Cut float64
}

// FaultCounts says what a FaultProxy did. Requests counts all of them; Passed those without a fault.
type FaultCounts struct {
	Requests, Passed, TooManyRequests, Unavailable, ResetRequest, ResetResponse, Stalled, Cut int64
}

// FaultProxy is a reverse proxy on a loopback address that spoils some of the requests it passes on. It begins without
// faults, until On is called.
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

// faultKind is what happens to one request.
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

// NewFaultProxy starts a proxy to the base URL target on a free port of 127.0.0.1. The faults follow from seed and the
// order of the requests. It must be closed.
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

// URL returns the base URL that stands for the target's.
func (p *FaultProxy) URL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "http://" + p.addr + p.target.EscapedPath()
}

// On lets faults happen, or stops them.
func (p *FaultProxy) On(on bool) { p.on.Store(on) }

// Counts says what the proxy did so far.
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

// SetDown closes the proxy's port and all its connections, so that connecting is refused, or opens the same port
// again.
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
	handlers := &gate{}
	server := &http.Server{ReadHeaderTimeout: time.Minute}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !handlers.enter() {
			return
		}
		defer handlers.leave()
		p.serve(w, r, closing)
	})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with ErrServerClosed
		handlers.close()
	}()
	p.server, p.served, p.closing = server, served, closing
	return nil
}

// stop ends the running server and waits for its handlers. p.mu is held.
func (p *FaultProxy) stop() {
	if p.server == nil {
		return
	}
	close(p.closing)
	_ = p.server.Close()
	<-p.served
	p.server = nil
}

// Close ends the proxy for good and waits for what it was doing.
func (p *FaultProxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop()
	p.closed = true
	p.calls.CloseIdleConnections()
}

// pick draws the fault of one request.
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
		_, _ = io.Copy(io.Discard, r.Body) // as a server would that looked at the request first
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

// pass hands the request to the target, and the answer back.
func (p *FaultProxy) pass(w http.ResponseWriter, r *http.Request, kind faultKind) {
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
