package bulk

import (
	"fmt"
	"log/slog"
	"time"

	"tutti/internal/core"
)

// Defaults of Config.
const (
	DefaultBatchBytes       = 2 << 20
	SmallBatchBytes         = 64 << 10 // some milliseconds of an engine
	DefaultBatchCount       = 2000
	DefaultMaxAge           = 20 * time.Millisecond
	DefaultMaxFill          = 200 * time.Millisecond
	DefaultMaxInFlight      = 4
	DefaultMaxBodyAge       = 10 * time.Second
	DefaultMaxDocumentBytes = 100 << 20
	DefaultDocumentWeight   = 4
)

// Config configures a Writer; its zero value is the default.
//
// A Writer holds at most (2 × MaxInFlight + 3 × active indexes) × BatchBytes of bodies: MaxInFlight batches in flight, as many
// waiting to be retried, and for each active index one batch that is filling, one in flight and one waiting to be retried, even
// when other indexes use all slots. A batch is never larger than BatchBytes, unless it has a single larger document, which counts
// by its weight against Memory. Beyond these limits Add blocks. MaxInFlight + 1 empty buffers are kept for reuse, until the Writer
// has been idle for 30 s.
//
// Each index has its own concurrency, from one request to MaxInFlight, which is halved when that index is overloaded. A free slot
// goes to the index that uses the fewest, and an index that uses none does not wait for one.
type Config struct {
	// BatchBytes is the size at which a batch is sent, in bytes; default 2 MiB. The Writer reduces it when the engine reports that
	// a request was too large.
	BatchBytes int
	// Small reports whether batches are to be at most SmallBatchBytes now; nil for never.
	Small func() bool
	// BatchCount is the number of documents at which a batch is sent; default 2000.
	BatchCount int
	// MaxAge is how long a batch with a sealed Ticket waits while others of its index are in flight; default 20 ms. It does not
	// wait when none is in flight.
	MaxAge time.Duration
	// MaxFill is how long a batch without a sealed Ticket may fill; default 200 ms.
	MaxFill time.Duration
	// MaxInFlight is the maximum number of concurrent requests over all indexes; default 4. An index without a request may send one
	// beyond it.
	MaxInFlight int
	// MaxBodyAge is the maximum age of a document when it is sent, from its FetchedAt; default 10 s. Older ones end as
	// core.OutcomeRetry, to be fetched again (DESIGN, Bodies are short-lived).
	MaxBodyAge time.Duration
	// MaxDocumentBytes is the size above which a document is rejected without being sent, in bytes; default 100 MiB,
	// Elasticsearch's default of http.max_content_length.
	MaxDocumentBytes int
	// Memory bounds the memory of documents larger than BatchBytes, DocumentWeight times their size each, until they are written;
	// nil for no bound.
	Memory core.OwnedMemory
	// DocumentWeight is the memory that a document needs in the Writer and its engine, in multiples of its size; default 4.
	DocumentWeight int
	// Metrics receives the metrics of the Writer; nil is off.
	Metrics *Metrics
	// Logger receives changes of concurrency and batch size; nil is silent.
	Logger *slog.Logger
	// Now is the clock for ages; default time.Now.
	Now func() time.Time
}

// withDefaults returns c with its zero values replaced, or CodeInvalid for its first invalid value.
func (c Config) withDefaults() (Config, error) {
	sizes := []struct {
		name  string
		value *int
		def   int
	}{
		{"batch bytes", &c.BatchBytes, DefaultBatchBytes},
		{"batch count", &c.BatchCount, DefaultBatchCount},
		{"requests in flight", &c.MaxInFlight, DefaultMaxInFlight},
		{"document bytes", &c.MaxDocumentBytes, DefaultMaxDocumentBytes},
		{"a document's weight", &c.DocumentWeight, DefaultDocumentWeight},
	}
	for _, s := range sizes {
		if *s.value < 0 {
			return c, core.NewError(core.CodeInvalid, fmt.Sprintf("bulk writer: the limit of %s must not be negative", s.name))
		}
		if *s.value == 0 {
			*s.value = s.def
		}
	}
	times := []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"a batch", &c.MaxAge, DefaultMaxAge},
		{"a filling batch", &c.MaxFill, DefaultMaxFill},
		{"a body", &c.MaxBodyAge, DefaultMaxBodyAge},
	}
	for _, t := range times {
		if *t.value < 0 {
			return c, core.NewError(core.CodeInvalid, fmt.Sprintf("bulk writer: the maximum age of %s must not be negative", t.name))
		}
		if *t.value == 0 {
			*t.value = t.def
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
