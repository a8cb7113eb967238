package catalogue

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"tutti/internal/catalogue/definition"
)

// Defaults of Config.
const (
	DefaultStartWait  = 500 * time.Millisecond
	DefaultCheckEvery = 30 * time.Second
	DefaultTimeout    = 10 * time.Second
	DefaultSettle     = 5 * time.Second
	// DefaultSampleEvery is how often a sample of the documents is read, DefaultSampleSoon how often one that failed or was empty.
	DefaultSampleEvery = 10 * time.Minute
	DefaultSampleSoon  = time.Minute
)

// Config is how a Registry keeps its catalogues true. The zero value is the default.
type Config struct {
	// StartWait is how long Start waits for the first answers. Default 500 ms; negative means not at all.
	StartWait time.Duration
	// CheckEvery is how often the mapping of an available catalogue is read. Default 30 s.
	CheckEvery time.Duration
	// Timeout bounds one reading of a mapping. Default 10 s.
	Timeout time.Duration
	// Accept is asked about every new Model before anybody sees it, and refuses one that nothing can be served of, such as
	// one whose schema cannot be made; the message of its error becomes that of a schema_build_error. It is called for
	// several catalogues at once. Nil accepts all.
	Accept func(*Model) error
	// Reload returns the definitions as they are written now, none when they cannot be read. It is called, one call at a time,
	// while one has a Fault or had one: these follow their folders. The others stay as they were given to New. Nil means that
	// nobody can mend them.
	Reload func() []definition.Definition
	// Settle is how long what Reload gives must stay the same before it counts. Default 5 s; negative means not at all.
	Settle time.Duration
	// Documents reads samples of documents, which show the fields that hold several values: at first once the catalogue is
	// available. Nil means that no documents are read.
	Documents Documents
	// SampleEvery is the pause after a sample, default 10 min. SampleSoon is that after one that failed or held fewer than
	// SampleFew documents, and the longest after a change of the mapping; defaults 1 min and 1 document.
	SampleEvery, SampleSoon time.Duration
	SampleFew               int
	// Logger is told of every change of state and of warnings. Nil means nothing is logged.
	Logger *slog.Logger
	// Metrics counts; nil means off.
	Metrics *Metrics
	// Random returns the jitter of the pauses, at least 0 and below 1. Nil means rand.Float64.
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
