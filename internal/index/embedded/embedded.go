package embedded

import (
	"io"
	"log/slog"
	"runtime"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded/indexfile"
	"tutti/internal/index/mapping"
)

// Config configures an Index. All fields but Dir have a default.
type Config struct {
	// Dir is the folder of the index; it is created if necessary.
	Dir string
	// TombstoneAge is how long the version of a deleted document is kept. Default 24 h.
	TombstoneAge time.Duration
	// PruneEvery is the interval at which older tombstones are removed. Default 10 min.
	PruneEvery time.Duration
	// LoadWait is how long a search waits for columns that are still being loaded after a start; then it returns CodeUnavailable.
	// Default 20 s.
	LoadWait time.Duration
	// Memory bounds the memory of the large documents that are read at once. Default: no bound.
	Memory core.Memory
	// Limits are those of a new index, unless its mapping file has others. Default mapping.DefaultLimits.
	Limits mapping.Limits
	// Grown is called with the alias whose mapping a document or a Swap has changed. It must not block. Default: none.
	Grown func(alias string)
	// Logger receives the messages of background work. Default: none.
	Logger *slog.Logger
	// Now is the clock that tombstones age by. Default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.TombstoneAge == 0 {
		c.TombstoneAge = 24 * time.Hour
	}
	if c.PruneEvery == 0 {
		c.PruneEvery = 10 * time.Minute
	}
	if c.LoadWait == 0 {
		c.LoadWait = 20 * time.Second
	}
	if c.Limits == (mapping.Limits{}) {
		c.Limits = mapping.DefaultLimits()
	}
	if c.Memory == nil {
		c.Memory = unbounded{}
	}
	if c.Grown == nil {
		c.Grown = func(string) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	if c.Dir == "" {
		return core.NewError(core.CodeInvalid, "the embedded index needs a folder")
	}
	if c.TombstoneAge < 0 || c.PruneEvery < 0 || c.LoadWait < 0 {
		return core.NewError(core.CodeInvalid, "the durations of the embedded index must not be negative")
	}
	return nil
}

var _ index.Index = (*Index)(nil)

// Index is the embedded index. It is safe for concurrent use.
type Index struct {
	*admin
	*writer
	*reader
	*searcher
	file *indexfile.File
}

// shared is what the parts of an Index have in common.
type shared struct {
	cfg   Config
	file  *indexfile.File
	types mapping.Declarations
}

// Open opens the index in cfg.Dir, creating an empty one if necessary. It returns CodeConflict when the index is already open in
// this or another process, and CodeUnsupported when the file was written by a newer tutti.
func Open(cfg Config) (*Index, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	file, err := indexfile.Open(indexfile.Config{
		Dir: cfg.Dir, TombstoneAge: cfg.TombstoneAge, PruneEvery: cfg.PruneEvery, Logger: cfg.Logger, Now: cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	s := &shared{cfg: cfg, file: file}
	return &Index{
		admin: &admin{shared: s}, writer: &writer{shared: s}, reader: &reader{s},
		searcher: &searcher{shared: s, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}, file: file,
	}, nil
}

// Backup calls add with the name and the size of each file of the index and a function that writes its content, all as of one moment
// after the call. Reads and writes go on meanwhile; the index file grows by what is written until Backup returns.
func (x *Index) Backup(add func(name string, size int64, write func(io.Writer) error) error) error {
	return x.file.Backup(add)
}

// Close waits for the calls in progress, then closes the file. It may be called more than once; other calls return CodeUnavailable
// afterwards.
func (x *Index) Close() error { return x.file.Close() }
