package sets

import (
	"log/slog"
	"time"

	"tutti/internal/core"
)

// Defaults of Config.
const (
	// DefaultRetention is the default of Config.Retention.
	DefaultRetention = 30 * 24 * time.Hour
	// DefaultMaxMembers is the default of Config.MaxMembers.
	DefaultMaxMembers = 100_000
	// DefaultMaxBytes is the default of Config.MaxBytes.
	DefaultMaxBytes = 16 << 20
	// DefaultMaxPerOwner is the default of Config.MaxPerOwner.
	DefaultMaxPerOwner = 1000
	// DefaultCacheBytes is the default of Config.CacheBytes.
	DefaultCacheBytes = 32 << 20
)

// Config configures a Service. The zero value is the default.
type Config struct {
	// Retention is how long a set is kept after its last use. Default DefaultRetention.
	Retention time.Duration
	// MaxMembers limits the number of members of a set, MaxBytes their total size in bytes. Defaults DefaultMaxMembers and
	// DefaultMaxBytes.
	MaxMembers, MaxBytes int
	// MaxPerOwner limits the sets of one owner. Default DefaultMaxPerOwner.
	MaxPerOwner int
	// CacheBytes limits the approximate memory of cached members, in bytes. Default DefaultCacheBytes.
	CacheBytes int
	// AllowAnonymous lets the owner "" have sets: without authentication it is the only local user. Default: no sets for it.
	AllowAnonymous bool
	// Logger receives warnings for operators. Default: no logging.
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
