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

// Config is how remote nodes are asked. The zero value is the default.
type Config struct {
	// Timeout bounds one call of a remote node, the wait for its turn included. Default 10 s.
	Timeout time.Duration
	// FirstRetry is the pause before a remote node that did not answer is asked for its fields again. It doubles up to
	// LastRetry. Defaults 1 s and 60 s.
	FirstRetry, LastRetry time.Duration
	// RefreshEvery is how often a remote node is asked for its fields that answers. Default 5 min.
	RefreshEvery time.Duration
	// MaxInFlight is how many calls of one remote node there are at once at most; others wait for their turn. Default 16.
	MaxInFlight int
	// MaxBytes bounds the answer of a remote node, unpacked. Default 32 MiB.
	MaxBytes int64
	// Changed is told the id of a catalogue whose federation has other fields than before, after Federation.Of returns them; it
	// may be called for several at once. Nil means nobody is told.
	Changed func(catalogue string)
	// Transport makes the calls. Nil means connections of the Federation's own.
	Transport http.RoundTripper
	// Random returns the jitter of the pauses, at least 0 and below 1. Nil means rand.Float64.
	Random func() float64
	// Logger is told of every change of a remote node's state. Nil means nothing is logged.
	Logger *slog.Logger
	// Metrics counts; nil means off.
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
