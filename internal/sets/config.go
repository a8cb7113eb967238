package sets

import (
	"log/slog"
	"time"

	"tutti/internal/core"
)

// Defaults of Config.
const (
	// DefaultRetention is how long a set is kept that nobody uses unless Config says otherwise.
	DefaultRetention = 30 * 24 * time.Hour
	// DefaultMaxMembers is how many members a set has at most unless Config says otherwise.
	DefaultMaxMembers = 100_000
	// DefaultMaxBytes is how many bytes the members of a set are together at most unless Config says otherwise.
	DefaultMaxBytes = 16 << 20
	// DefaultMaxPerOwner is how many sets an owner has at most unless Config says otherwise.
	DefaultMaxPerOwner = 1000
	// DefaultCacheBytes is about how many bytes of members are kept in memory unless Config says otherwise.
	DefaultCacheBytes = 32 << 20
)

// Config configures a Service. The zero value is the default.
type Config struct {
	// Retention is how long a set is kept after its last use. Default DefaultKeep.
	Retention time.Duration
	// MaxMembers and MaxBytes bound the members of a set, the latter the bytes of them all. Defaults DefaultMaxMembers and
	// DefaultMaxBytes.
	MaxMembers, MaxBytes int
	// MaxPerOwner is how many sets somebody may have at once. Default DefaultMaxPerOwner.
	MaxPerOwner int
	// CacheBytes bounds the members that are kept in memory, in bytes. Default DefaultCacheBytes.
	CacheBytes int
	// AllowAnonymous lets the owner "" have sets: where nobody is asked for a token it is the one local user. Default: it owns
	// nothing.
	AllowAnonymous bool
	// Logger takes what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c Config) validate() error {
	for what, negative := range map[string]bool{
		"time that sets are kept": c.Retention < 0, "number of members of a set": c.MaxMembers < 0, "size of a set": c.MaxBytes < 0,
		"number of sets of an owner": c.MaxPerOwner < 0, "size of the cache of sets": c.CacheBytes < 0,
	} {
		if negative {
			return core.NewError(core.CodeInvalid, "the "+what+" must not be negative")
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Retention == 0 {
		c.Retention = DefaultRetention
	}
	if c.MaxMembers == 0 {
		c.MaxMembers = DefaultMaxMembers
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.MaxPerOwner == 0 {
		c.MaxPerOwner = DefaultMaxPerOwner
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
