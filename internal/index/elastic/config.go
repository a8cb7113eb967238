package elastic

import (
	"log/slog"
	"time"

	"tutti/internal/core"
	"tutti/internal/index/elastic/search"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
)

const (
	// DefaultShards is the default of Config.Shards.
	DefaultShards = 1
	// CursorKeyBytes is the length of Config.CursorKey.
	CursorKeyBytes = search.CursorKeyBytes
)

// Connection configures the connections to a cluster. Only URLs is required.
type Connection = transport.Config

// AWS configures the signing of requests.
type AWS = transport.AWS

// ServiceServerless is the service of Amazon OpenSearch Serverless.
const ServiceServerless = transport.ServiceServerless

// SignFor returns the AWS of a region and a service, zero for no region.
func SignFor(region, service string) AWS {
	if region == "" {
		return AWS{}
	}
	return AWS{Region: region, Service: service}
}

// Config configures an Index. Only the connection's URLs are required.
type Config struct {
	Connection
	// Shards is the number of primary shards of an index created by Ensure; 0 means DefaultShards.
	Shards int
	// Replicas is the number of copies of each shard besides the primary; 0 means none.
	Replicas int
	// Limits are those of an index created by Ensure, unless its mapping file has others; zero means mapping.DefaultLimits.
	Limits mapping.Limits
	// Compress sends bulk bodies compressed with gzip. It pays off only where the network is the bottleneck.
	Compress bool
	// CursorKey, of CursorKeyBytes bytes, encrypts the values in Hit.Sort that callers must not read. Processes with the same key
	// accept each other's cursors. Nil means a random key.
	CursorKey []byte
	// Grown is called with an alias after this process has extended its mapping, or moved it to another index. It must not block. Nil
	// means none.
	Grown func(alias string)
	// Memory bounds the memory of the documents that are read at once. Nil means no bound.
	Memory Memory
	// Now is the clock for the names of physical indices and the age of documents; nil means time.Now.
	Now func() time.Time
}

// Memory bounds the memory of documents: of pages, and of those that are read for indexing.
type Memory interface {
	core.ResponseMemory
	core.Memory
}

func (c *Config) validate() error {
	if c.Shards < 0 || c.Replicas < 0 {
		return core.NewError(core.CodeInvalid, "the shards and replicas of the index must not be negative")
	}
	if c.Shards == 0 {
		c.Shards = DefaultShards
	}
	if c.Limits == (mapping.Limits{}) {
		c.Limits = mapping.DefaultLimits()
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
