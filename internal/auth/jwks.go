package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// maxSetBytes is the largest key set that is read.
	maxSetBytes = 1 << 20
	// The pause after a round that failed begins with firstRetry and doubles up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// trustedFor is how long the keys of an issuer that does not answer are taken for its keys still.
	trustedFor = 24 * time.Hour
	// maxRedirects is how many redirects of one fetch are followed.
	maxRedirects = 3
)

// issuerKeys holds the key set at an address and keeps it up to date: one goroutine fetches it, every so often and when it
// is asked to.
type issuerKeys struct {
	url    string
	client *http.Client
	log    *slog.Logger
	now    func() time.Time
	// every is the pause between two rounds, atLeast the least pause before one that is asked for, timeout bounds a fetch.
	every, atLeast, timeout time.Duration

	ask    chan struct{}
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	set    keySet
	loaded bool
	// loadedAt is when the round that fetched set began.
	loadedAt time.Time
	// fault is what ended the last round, nil when it succeeded.
	fault error
	// running is true during a round; round is closed when the one that is running, or else the next one, has ended.
	running bool
	ended   time.Time
	round   chan struct{}
}

// start begins to fetch. Whoever starts it stops it.
func (k *issuerKeys) start(ctx context.Context) {
	k.ask, k.done, k.round = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	k.running = true // so that the first token waits for the first round
	ctx, k.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go k.run(ctx)
}

// stop ends the fetching and waits for its end. It may be called again.
func (k *issuerKeys) stop() {
	k.cancel()
	<-k.done
	k.client.CloseIdleConnections()
}

func (k *issuerKeys) run(ctx context.Context) {
	defer close(k.done)
	retry := firstRetry
	for {
		pause := k.every
		if err := k.fetchRound(ctx); err != nil {
			pause = min(retry, k.every)
			retry = min(2*retry, lastRetry)
		} else {
			retry = firstRetry
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-k.ask:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// fetchRound fetches once, and lets go who waits for it. When it fails the keys that are known stay.
func (k *issuerKeys) fetchRound(ctx context.Context) error {
	k.mu.Lock()
	k.running = true
	began := k.now()
	select { // nobody asks while a round is running, so what was asked is answered by this one
	case <-k.ask:
	default:
	}
	k.mu.Unlock()
	set, skipped, err := k.fetch(ctx)

	k.mu.Lock()
	failed, loaded := k.fault != nil, k.loaded
	if err == nil {
		k.set, k.loaded, k.loadedAt = set, true, began
	}
	k.fault, k.running, k.ended = err, false, k.now()
	close(k.round)
	k.round = make(chan struct{})
	k.mu.Unlock()

	switch {
	case ctx.Err() != nil:
	case err != nil:
		k.log.WarnContext(ctx, "the keys of the token issuer could not be fetched", "known", loaded, "err", err)
	case failed || !loaded:
		k.log.InfoContext(ctx, "the keys of the token issuer are known", "keys", len(set), "unusable", len(skipped))
	}
	for _, reason := range skipped {
		k.log.DebugContext(ctx, "a key of the token issuer is not used", "err", reason)
	}
	return err
}

func (k *issuerKeys) fetch(ctx context.Context) (keySet, []error, error) {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("fetching a key set: %w", err)
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := k.client.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("fetching a key set: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("fetching a key set: status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxSetBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("reading a key set: %w", err)
	}
	if len(body) > maxSetBytes {
		return nil, nil, fmt.Errorf("reading a key set: it is over %d bytes", maxSetBytes)
	}
	return parseKeySet(body)
}

// keys returns what is known now. known is false before the first round that succeeded, and when the last one that did is
// too long ago; fault is that of the last round.
func (k *issuerKeys) keys() (set keySet, known bool, fault error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.set, k.loaded && k.now().Sub(k.loadedAt) < trustedFor, k.fault
}

// refresh waits for a round: the one that is running, or one that it asks for unless the last has only just ended. It
// reports whether one has ended meanwhile.
func (k *issuerKeys) refresh(ctx context.Context) bool {
	k.mu.Lock()
	if !k.running && k.now().Sub(k.ended) < k.atLeast {
		k.mu.Unlock()
		return false
	}
	if !k.running {
		select {
		case k.ask <- struct{}{}:
		default:
		}
	}
	round := k.round
	k.mu.Unlock()
	select {
	case <-round:
		return true
	case <-ctx.Done():
	case <-k.done:
	}
	return false
}

// withoutDowngrade refuses a redirect to plain http on another machine or after https, and a long chain of redirects.
func withoutDowngrade(request *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errors.New("too many redirects")
	}
	if request.URL.Scheme == "https" {
		return nil
	}
	if slices.ContainsFunc(via, func(r *http.Request) bool { return r.URL.Scheme == "https" }) {
		return errors.New("a redirect leads from https to http")
	}
	if !isLoopback(request.URL.Hostname()) {
		return errors.New("a redirect leads to another machine without encryption")
	}
	return nil
}
