package lyric

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// maxCategory bounds the response that describes a category, in bytes.
const maxCategory = 16 << 20

// Config configures a Client. URL and CategoryID are required.
type Config struct {
	// URL is the Lyric server's base URL.
	URL string
	// Token is sent as a bearer token; Username and Password as basic auth. Empty: none. Setting both is an error.
	Token              string
	Username, Password string
	// Timeout bounds connecting and receiving the headers together, and then each wait for more of the body, not the time spent in a
	// page's callback. Default 30 s.
	Timeout time.Duration
	// CategoryID is the id or the alias of the category to read.
	CategoryID string
	// ValidOnly makes records that violate their dictionary not Indexable. Default false.
	ValidOnly bool
	// Entity makes records of other entities not Indexable; empty accepts all. A category with a central entity lists only that
	// entity, but its change messages and single records include those of the other entities.
	Entity string
	// Concurrency is the number of idle connections to keep. Default 4.
	Concurrency int
	// UserAgent is the User-Agent header. Default "tutti".
	UserAgent string
	// MaxRecordBytes bounds a record; of a larger one only Record.TooLarge is returned. Default core.DefaultMaxRecordBytes.
	MaxRecordBytes int
	// Memory bounds the bytes of large records; nil means unbounded.
	Memory upstream.Memory
	// Repository is the code of the repository, the label of the Metrics.
	Repository string
	// Metrics may be nil.
	Metrics *upstream.Metrics
	// Transport replaces the client's own connections, for tests.
	Transport http.RoundTripper
}

// Client reads one category of one Lyric server. It is safe for concurrent use.
type Client struct {
	calls      *upstream.Client
	category   string
	validOnly  bool
	entity     string
	newScanner func() *upstream.Scanner
	scanners   sync.Pool // of *upstream.Scanner
}

// New returns a Client without connecting. CodeInvalid for a bad Config.
func New(cfg Config) (*Client, error) {
	if err := core.ValidID("the category's id", cfg.CategoryID); err != nil {
		return nil, err
	}
	if cfg.MaxRecordBytes < 0 {
		return nil, core.NewError(core.CodeInvalid, "the maximum size of a record must not be negative")
	}
	calls, err := upstream.NewClient(upstream.Config{
		URL: cfg.URL, Token: cfg.Token, Username: cfg.Username, Password: cfg.Password,
		Timeout: cfg.Timeout, Concurrency: cfg.Concurrency, UserAgent: cfg.UserAgent,
		Memory: cfg.Memory, Repository: cfg.Repository, Metrics: cfg.Metrics, Transport: cfg.Transport,
	})
	if err != nil {
		return nil, err
	}
	shape := upstream.Format{
		Array:        "records",
		Envelope:     []string{"pagination"},
		Members:      []string{"systemId", "organization", "entityName"},
		DetectMember: upstream.RepositoriesMember,
		BoolMember:   "isValid",
	}
	return &Client{
		calls: calls, category: cfg.CategoryID, validOnly: cfg.ValidOnly, entity: cfg.Entity,
		newScanner: func() *upstream.Scanner { return upstream.NewScanner(shape, cfg.MaxRecordBytes) },
	}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.calls.Close() }

// scanner returns a Scanner from the pool; the caller returns it with scanners.Put.
func (c *Client) scanner() *upstream.Scanner {
	if scanner, ok := c.scanners.Get().(*upstream.Scanner); ok {
		return scanner
	}
	return c.newScanner()
}

// Organizations returns the organizations that have data in the category, in the server's order. Errors are *core.Error:
// CodeUnavailable, CodeOverloaded or CodeUpstream, with ErrNoCategory when the server has no such category.
func (c *Client) Organizations(ctx context.Context) ([]string, error) {
	answer, err := c.calls.Get(ctx, "", "category", c.category)
	if err != nil {
		return nil, protocolError(err)
	}
	defer answer.Close()
	body, err := io.ReadAll(io.LimitReader(answer, maxCategory+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxCategory {
		return nil, core.WrapError(core.CodeUpstream, "the upstream's category is too large", upstream.ErrTooLarge)
	}
	var category struct {
		Organizations []*string `json:"organizations"`
	}
	if err := json.Unmarshal(body, &category); err != nil || category.Organizations == nil {
		answer.MarkFailed()
		return nil, formatError("category")
	}
	organizations := make([]string, len(category.Organizations))
	for i, name := range category.Organizations {
		if name == nil {
			answer.MarkFailed()
			return nil, formatError("category")
		}
		organizations[i] = *name
	}
	return organizations, nil
}
