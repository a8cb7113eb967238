package elastic

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"tutti/internal/core"
)

// Defaults of Config.
const (
	DefaultShards  = 1
	DefaultTimeout = 30 * time.Second
)

// Config says where the cluster is and how to speak to it. Only URLs is required.
type Config struct {
	// URLs are the cluster's nodes, such as https://index:9200; a path in front of the API is kept. Requests go to
	// them in turn, and around those that do not answer.
	URLs []string
	// Username and Password are for basic authentication; both or neither.
	Username string
	Password string
	// APIKey is an API key, either encoded as the cluster gives it or as id:key. It excludes Username.
	APIKey string
	// CAFile is a PEM file of the authorities to trust instead of the system's.
	CAFile string
	// Shards is the number of primary shards of an index that Ensure makes; 0 means DefaultShards.
	Shards int
	// Replicas is the number of copies of each shard beside the primary; 0 means none.
	Replicas int
	// Timeout bounds each request to the cluster, its answer included; 0 means DefaultTimeout.
	Timeout time.Duration
	// Compress sends bulk bodies as gzip. It costs more time than it saves where the network is not the limit.
	Compress bool
	// CursorKey is the key, of CursorKeyBytes, of what Hit.Sort must not tell; processes that accept each other's cursors have
	// the same. Nil means a random one.
	CursorKey []byte
	// Grown is told of each alias whose mapping this process has added to; it must not wait. Nil means that nobody is.
	Grown func(alias string)
	// Logger gets what no caller is told; nil means nothing is logged.
	Logger *slog.Logger
	// Now is the clock that names physical indices and by which documents grow too old; nil means time.Now.
	Now func() time.Time
}

func (c *Config) validate() error {
	if len(c.URLs) == 0 {
		return core.NewError(core.CodeInvalid, "the index needs at least one URL")
	}
	if (c.Username == "") != (c.Password == "") {
		return core.NewError(core.CodeInvalid, "the index needs a username and a password, or neither")
	}
	if c.APIKey != "" && c.Username != "" {
		return core.NewError(core.CodeInvalid, "the index takes an API key or a username, not both")
	}
	if c.Shards < 0 || c.Replicas < 0 || c.Timeout < 0 {
		return core.NewError(core.CodeInvalid, "shards, replicas and timeout of the index must not be negative")
	}
	if c.CursorKey != nil && len(c.CursorKey) != CursorKeyBytes {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("the key of the index' cursors must have %d bytes", CursorKeyBytes))
	}
	if c.Shards == 0 {
		c.Shards = DefaultShards
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
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

// nodes parses the URLs. The texts stay out of the messages, as they may hold a password.
func (c *Config) nodes() ([]*url.URL, error) {
	nodes := make([]*url.URL, 0, len(c.URLs))
	for _, text := range c.URLs {
		node, err := url.Parse(strings.TrimRight(strings.TrimSpace(text), "/"))
		if err != nil || node.Host == "" || (node.Scheme != "http" && node.Scheme != "https") {
			return nil, core.NewError(core.CodeInvalid, "a URL of the index is not of the form http(s)://host[:port]")
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// key gives the API key as the Authorization header wants it.
func (c *Config) key() string {
	if strings.Contains(c.APIKey, ":") {
		return base64.StdEncoding.EncodeToString([]byte(c.APIKey))
	}
	return c.APIKey
}

func (c *Config) authorities() ([]byte, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the index' CA file cannot be read", err)
	}
	return pem, nil
}
