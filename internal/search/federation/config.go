package federation

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"
)

// Defaults of Config.
const (
	DefaultTimeout      = 10 * time.Second
	DefaultFirstRetry   = time.Second
	DefaultLastRetry    = 60 * time.Second
	DefaultRefreshEvery = 5 * time.Minute
	DefaultMaxInFlight  = 16
	DefaultMaxBytes     = 32 << 20
)

// Config is the configuration of queries to remote nodes. The zero value is the default.
type Config struct {
	// Timeout limits one call of a remote node, including the wait for a free slot. Default 10 s.
	Timeout time.Duration
	// FirstRetry is the pause before the discovery of an unavailable remote node is retried. It doubles up to LastRetry. Defaults
	// 1 s and 60 s.
	FirstRetry, LastRetry time.Duration
	// RefreshEvery is the interval of the discovery of a remote node that responds. Default 5 min.
	RefreshEvery time.Duration
	// MaxInFlight limits the concurrent calls of one remote node; others wait. Default 16.
	MaxInFlight int
	// MaxBytes limits the response of a remote node, uncompressed. Default 32 MiB.
	MaxBytes int64
	// Changed is called with the ID of a catalogue whose federation has other fields than before, once Federation.Membership
	// returns them; it may be called concurrently. Nil means no calls.
	Changed func(catalogue string)
	// Transport makes the calls. Nil means the Federation's own connections.
	Transport http.RoundTripper
	// Random returns the jitter of the pauses, in [0, 1). Nil means rand.Float64.
	Random func() float64
	// Logger logs state changes of remote nodes. Nil disables logging.
	Logger *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
}

func (c Config) withDefaults() Config {
	positive := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	positive(&c.Timeout, DefaultTimeout)
	positive(&c.FirstRetry, DefaultFirstRetry)
	positive(&c.LastRetry, DefaultLastRetry)
	positive(&c.RefreshEvery, DefaultRefreshEvery)
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.Changed == nil {
		c.Changed = func(string) {}
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
