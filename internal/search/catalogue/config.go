package catalogue

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"tutti/internal/search/catalogue/definition"
)

// Defaults of Config.
const (
	DefaultStartWait  = 500 * time.Millisecond
	DefaultCheckEvery = 30 * time.Second
	DefaultTimeout    = 10 * time.Second
	DefaultSettle     = 5 * time.Second
	// DefaultSampleEvery is the pause between samples of documents, DefaultSampleSoon the pause after one that failed or was
	// empty.
	DefaultSampleEvery = 10 * time.Minute
	DefaultSampleSoon  = time.Minute
)

// Config is the configuration of a Registry. The zero value is the default.
type Config struct {
	// StartWait is how long Start waits for the first responses. Default 500 ms; negative means not at all.
	StartWait time.Duration
	// CheckEvery is the interval for reading the mapping of an available catalogue. Default 30 s.
	CheckEvery time.Duration
	// Timeout limits one reading of a mapping. Default 10 s.
	Timeout time.Duration
	// Accept is called for every new Model before it is published, and rejects one that cannot be served, for example because it
	// has no valid schema; its error message becomes that of a schema_build_error. It may be called for several catalogues
	// concurrently. Nil accepts all.
	Accept func(*Model) error
	// Reload returns the current definitions, none if they cannot be read. It is called, one call at a time, while a definition
	// has or had an Err: only these follow their folders. The others stay as they were passed to New. Nil disables reloading.
	Reload func() []definition.Definition
	// Settle is how long the result of Reload must be unchanged before it is applied. Default 5 s; negative means not at all.
	Settle time.Duration
	// Documents reads samples of documents, which show the fields that hold several values: first once the catalogue is
	// available. Nil disables samples.
	Documents Documents
	// SampleEvery is the pause after a sample, default 10 min. SampleSoon is the pause after one that failed or had fewer than
	// SampleFew documents, and the longest pause after a change of the mapping; defaults 1 min and 1 document.
	SampleEvery, SampleSoon time.Duration
	SampleFew               int
	// Logger logs state changes and warnings. Nil disables logging.
	Logger *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
	// Random returns the jitter of the pauses, in [0, 1). Nil means rand.Float64.
	Random func() float64
}

func (c Config) withDefaults() Config {
	if c.StartWait == 0 {
		c.StartWait = DefaultStartWait
	}
	if c.CheckEvery <= 0 {
		c.CheckEvery = DefaultCheckEvery
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Settle == 0 {
		c.Settle = DefaultSettle
	}
	if c.SampleEvery <= 0 {
		c.SampleEvery = DefaultSampleEvery
	}
	if c.SampleSoon <= 0 {
		c.SampleSoon = DefaultSampleSoon
	}
	if c.SampleFew <= 0 {
		c.SampleFew = 1
	}
	if c.Accept == nil {
		c.Accept = func(*Model) error { return nil }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	return c
}
