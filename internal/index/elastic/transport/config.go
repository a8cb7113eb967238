package transport

import (
	"encoding/base64"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

// DefaultTimeout is the default of Config.Timeout.
const DefaultTimeout = 30 * time.Second

// Config configures a Client. Only URLs is required.
type Config struct {
	// URLs are the cluster's nodes, such as https://index:9200; a path before the API is kept. Requests are distributed over them,
	// skipping those that do not answer.
	URLs []string
	// Username and Password are for basic authentication; set both or neither.
	Username string
	Password string
	// APIKey is an API key, either encoded as the cluster returns it or as id:key. It excludes Username.
	APIKey string
	// AWS signs requests instead; it excludes Username and APIKey.
	AWS AWS
	// TLS names the files of connections to nodes with https.
	TLS tlsconfig.Files
	// Timeout limits each request to the cluster, including reading the response; 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxResponseBytes limits a response; 0 means DefaultMaxResponseBytes.
	MaxResponseBytes int64
	// Logger receives what is not returned to callers; nil disables logging.
	Logger *slog.Logger
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
	if c.AWS != (AWS{}) {
		if err := c.validateAWS(); err != nil {
			return err
		}
	}
	if c.Timeout < 0 {
		return core.NewError(core.CodeInvalid, "the timeout of the index must not be negative")
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxResponseBytes == 0 {
		c.MaxResponseBytes = DefaultMaxResponseBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func (c *Config) validateAWS() error {
	switch {
	case c.AWS.Region == "":
		return core.NewError(core.CodeInvalid, "signing requests to the index needs a region")
	case c.Username != "" || c.APIKey != "":
		return core.NewError(core.CodeInvalid, "the index takes signed requests or other credentials, not both")
	case c.AWS.Service == "":
		c.AWS.Service = ServiceOpenSearch
	case c.AWS.Service != ServiceOpenSearch && c.AWS.Service != ServiceServerless:
		return core.NewError(core.CodeInvalid, "requests to the index are signed for es or aoss")
	}
	return nil
}

// nodes parses the URLs. Its errors do not quote them, as they may contain a password.
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

// key returns the API key in the form of the Authorization header.
func (c *Config) key() string {
	if strings.Contains(c.APIKey, ":") {
		return base64.StdEncoding.EncodeToString([]byte(c.APIKey))
	}
	return c.APIKey
}
