package auth

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

const (
	// maxSetBytes bounds a key set.
	maxSetBytes = 1 << 20
	// The pause after a failed fetch starts with firstRetry and doubles up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// trustedFor is how long the keys of an unreachable issuer stay valid.
	trustedFor = 24 * time.Hour
)

// issuerKeys caches the keys of an issuer. One goroutine fetches them, periodically and on request.
type issuerKeys struct {
	url    string
	client *http.Client
	files  tlsconfig.Files // of client
	log    *slog.Logger
	now    func() time.Time
	// interval is the pause between two fetches, minInterval the minimum pause before a requested one, timeout bounds a fetch.
	interval, minInterval, timeout time.Duration

	refreshNow chan struct{}
	cancel     context.CancelFunc
	done       chan struct{}

	mu     sync.Mutex
	set    keySet
	loaded bool
	// loadedAt is when the fetch of set started.
	loadedAt time.Time
	// lastErr is the error of the last fetch, nil when it succeeded.
	lastErr error
	// running is true during a fetch; round is closed at the end of the running fetch, or else of the next one.
	running bool
	ended   time.Time
	round   chan struct{}
}

// start starts fetching in the background. The caller must call stop.
func (k *issuerKeys) start(ctx context.Context) {
	k.refreshNow, k.done, k.round = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	k.running = true // so that the first token waits for the first fetch
	ctx, k.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go k.run(ctx)
}

// stop ends fetching and waits for the goroutine. It may be called again.
func (k *issuerKeys) stop() {
	k.cancel()
	<-k.done
	k.client.CloseIdleConnections()
}

func (k *issuerKeys) run(ctx context.Context) {
	defer close(k.done)
	retry := firstRetry
	for {
		pause := k.interval
		if err := k.fetchRound(ctx); err != nil {
			pause = min(retry, k.interval)
			retry = min(2*retry, lastRetry)
		} else {
			retry = firstRetry
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-k.refreshNow:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// fetchRound fetches once and wakes the waiting callers. When it fails the known keys are kept.
func (k *issuerKeys) fetchRound(ctx context.Context) error {
	k.mu.Lock()
	k.running = true
	began := k.now()
	select { // no requests are sent during a fetch: this fetch answers earlier ones
	case <-k.refreshNow:
	default:
	}
	k.mu.Unlock()
	set, skipped, err := k.fetch(ctx)

	k.mu.Lock()
	failed, loaded := k.lastErr != nil, k.loaded
	if err == nil {
		k.set, k.loaded, k.loadedAt = set, true, began
	}
	k.lastErr, k.running, k.ended = err, false, k.now()
	close(k.round)
	k.round = make(chan struct{})
	k.mu.Unlock()

	switch {
	case ctx.Err() != nil:
	case err != nil:
		k.log.WarnContext(ctx, "fetching the token issuer's keys failed", "known", loaded, "err", err)
	case failed || !loaded:
		k.log.InfoContext(ctx, "fetched the token issuer's keys", "keys", len(set), "unusable", len(skipped))
	}
	for _, reason := range skipped {
		k.log.DebugContext(ctx, "ignored a key of the token issuer", "err", reason)
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
	request.Header.Set("Accept", "application/jwk-set+json, application/json, text/plain, */*;q=0.1")
	response, err := k.client.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("fetching a key set: %w", k.files.Explain(err))
	}
	defer response.Body.Close()
	answer := tlsconfig.Answer{Status: response.StatusCode, Credentials: k.files.Name("jwksUrl"), Address: k.files.Name("jwksUrl")}
	k.files.Answered(answer, nil) // keys are fetched again after a failure
	if response.StatusCode != http.StatusOK {
		return nil, nil, answer.Failure(fmt.Sprintf("answered with status %d instead of keys", response.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxSetBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("reading a key set: %w", err)
	}
	if len(body) > maxSetBytes {
		return nil, nil, notKeySet(fmt.Errorf("it has more than %d bytes", maxSetBytes))
	}
	set, skipped, err := parseKeys(body)
	if err != nil {
		return nil, nil, notKeySet(err)
	}
	return set, skipped, nil
}

func notKeySet(err error) error {
	return core.WrapError(core.CodeUpstream, "answered, but not with a JSON Web Key Set or a PEM public key", err)
}

// ProbeKeySet fetches the keys at cfg.JWKSURL once, and returns how many of its keys can sign tokens and how many cannot. CodeUpstream,
// with a message that follows the server's name, for a response without keys; other errors are those of the connection.
func ProbeKeySet(ctx context.Context, cfg JWTConfig) (usable, unusable int, err error) {
	if err := cfg.validate(); err != nil {
		return 0, 0, err
	}
	if cfg, err = cfg.withDefaults(); err != nil {
		return 0, 0, err
	}
	k := &issuerKeys{url: cfg.JWKSURL, client: cfg.Client, files: cfg.TLS, timeout: cfg.Timeout}
	defer k.client.CloseIdleConnections()
	set, skipped, err := k.fetch(ctx)
	return len(set), len(skipped), err
}

// keys returns the current keys. known is false before the first successful fetch, and when the last one is too old; fault is the
// error of the last fetch.
func (k *issuerKeys) keys() (set keySet, known bool, fault error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.set, k.loaded && k.now().Sub(k.loadedAt) < trustedFor, k.lastErr
}

// refresh waits for a fetch: the running one, or one that it requests unless the last ended less than minInterval ago. It reports whether
// a fetch has ended.
func (k *issuerKeys) refresh(ctx context.Context) bool {
	k.mu.Lock()
	if !k.running && k.now().Sub(k.ended) < k.minInterval {
		k.mu.Unlock()
		return false
	}
	if !k.running {
		select {
		case k.refreshNow <- struct{}{}:
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
