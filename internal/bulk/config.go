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
	DefaultBatchCount       = 2000
	DefaultMaxAge           = 20 * time.Millisecond
	DefaultMaxFill          = 200 * time.Millisecond
	DefaultMaxInFlight      = 4
	DefaultMaxBodyAge       = 10 * time.Second
	DefaultMaxDocumentBytes = 100 << 20
	DefaultDocumentWeight   = 4
)

// Config tunes a Writer; its zero value is the default.
//
// A Writer holds at most (2 × MaxInFlight + 3 × active indexes) × BatchBytes of bodies: MaxInFlight batches that fly, as
// many that wait to be sent again, and for each index that is being written one that fills, one that flies and one that
// waits to be sent again even when the others use up all room. A batch is never larger than BatchBytes, unless it holds one
// document that alone is: that takes its weight of Memory. Beyond that Add waits. MaxInFlight + 1 empty buffers are kept for
// reuse, until the Writer was idle for 30 s.
//
// Each index has its own pace, from one request at a time to MaxInFlight, which halves when that index is overloaded. A
// free slot goes to the index that uses the fewest, and one that uses none need not wait for any.
type Config struct {
	// BatchBytes is the size at which a batch is sent, in bytes; default 2 MiB. The Writer lowers it by itself when the
	// engine says that a request was too large.
	BatchBytes int
	// BatchCount is the number of documents at which a batch is sent; default 2000.
	BatchCount int
	// MaxAge is how long a batch with a sealed Ticket in it waits while others of its index fly; default 20 ms. It does
	// not wait at all when none flies.
	MaxAge time.Duration
	// MaxFill is how long a batch may fill that nobody waits for yet; default 200 ms.
	MaxFill time.Duration
	// MaxInFlight is the greatest number of requests at one time over all indexes; default 4. An index without any may
	// send one even so.
	MaxInFlight int
	// MaxBodyAge is how old a document may be when it is sent, counted from its FetchedAt; default 10 s. Older ones are
	// given back as core.OutcomeRetry, to be fetched again (DESIGN, Bodies are short-lived).
	MaxBodyAge time.Duration
	// MaxDocumentBytes is the size above which a document is rejected without being sent, in bytes; default 100 MiB,
	// which is what Elasticsearch takes as one request (http.max_content_length).
	MaxDocumentBytes int
	// Memory bounds what documents over BatchBytes take, DocumentWeight times their size each, until they are written; nil
	// for no bound.
	Memory Memory
	// DocumentWeight is how many times its size the memory is that a document takes in the Writer and its engine; default 4.
	DocumentWeight int
	// Metrics counts what the Writer does; nil is off.
	Metrics *Metrics
	// Logger gets changes of pace; nil is silent.
	Logger *slog.Logger
	// Now is the clock by which ages are measured; default time.Now.
	Now func() time.Time
}

// withDefaults returns c with its zero values replaced, or names its first fault as core.CodeInvalid.
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
			return c, core.NewError(core.CodeInvalid, fmt.Sprintf("bulk writer: the limit of %s is negative", s.name))
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
			return c, core.NewError(core.CodeInvalid, fmt.Sprintf("bulk writer: the greatest age of %s is negative", t.name))
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
