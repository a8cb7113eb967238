package elastic

import (
	"log/slog"
	"time"

	"tutti/internal/core"
	"tutti/internal/index/elastic/search"
	"tutti/internal/index/elastic/transport"
)

const (
	// DefaultShards is the default of Config.Shards.
	DefaultShards = 1
	// CursorKeyBytes is the length of Config.CursorKey.
	CursorKeyBytes = search.CursorKeyBytes
)

// Config configures an Index. Only URLs is required.
type Config struct {
	// URLs are the cluster's nodes, such as https://index:9200; a path before the API is kept. Requests are distributed over
	// them, skipping those that do not answer.
	URLs []string
	// Username and Password are for basic authentication; set both or neither.
	Username string
	Password string
	// APIKey is an API key, either encoded as the cluster returns it or as id:key. It excludes Username.
	APIKey string
	// CAFile is a PEM file of certificate authorities to trust instead of the system's.
	CAFile string
	// Shards is the number of primary shards of an index created by Ensure; 0 means DefaultShards.
	Shards int
	// Replicas is the number of copies of each shard besides the primary; 0 means none.
	Replicas int
	// Timeout limits each request to the cluster, including reading the response; 0 means transport.DefaultTimeout.
	Timeout time.Duration
	// Compress sends bulk bodies compressed with gzip. It pays off only where the network is the bottleneck.
	Compress bool
	// CursorKey, of CursorKeyBytes bytes, encrypts the values in Hit.Sort that callers must not read. Processes with the same key
	// accept each other's cursors. Nil means a random key.
	CursorKey []byte
	// Grown is called with an alias after this process has extended its mapping. It must not block. Nil means none.
	Grown func(alias string)
	// Logger receives what is not returned to callers; nil disables logging.
	Logger *slog.Logger
	// Now is the clock for the names of physical indices and the age of documents; nil means time.Now.
	Now func() time.Time
}

func (c *Config) validate() error {
	if c.Shards < 0 || c.Replicas < 0 {
		return core.NewError(core.CodeInvalid, "shards, replicas and timeout of the index must not be negative")
	}
	if c.Shards == 0 {
		c.Shards = DefaultShards
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
	return nil
}

// transport returns the configuration of the transport.
func (c *Config) transport() transport.Config {
	return transport.Config{
		URLs: c.URLs, Username: c.Username, Password: c.Password, APIKey: c.APIKey, CAFile: c.CAFile,
		Timeout: c.Timeout, Logger: c.Logger,
	}
}
