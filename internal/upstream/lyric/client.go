package lyric

import (
	"context"
	"encoding/json"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// Config configures a Client. URL and CategoryID are required.
type Config struct {
	upstream.Config
	// CategoryID is the id or the alias of the category to read.
	CategoryID string
	// ValidOnly makes records that violate their dictionary not Indexable. Default false.
	ValidOnly bool
	// Entity makes records of other entities not Indexable. Empty accepts those that the category lists: of its central entity, or of
	// all entities if it has none.
	Entity string
	// DictionaryURL is the base URL of the Lectern that has the category's dictionary, empty for none.
	DictionaryURL string
}

// Client reads one category of one Lyric server. It is safe for concurrent use.
type Client struct {
	calls     *upstream.Client
	lectern   *upstream.Client // nil for none
	category  string
	validOnly bool
	entity    string

	central    centralEntity
	dictionary dictionary
}

// New returns a Client without connecting. CodeInvalid for a bad Config.
func New(cfg Config) (*Client, error) {
	if err := core.ValidID("the category's id", cfg.CategoryID); err != nil {
		return nil, err
	}
	cfg.Format = upstream.Format{
		Array:        "records",
		Envelope:     []string{"pagination"},
		Members:      []string{"systemId", "organization", "entityName"},
		DetectMember: upstream.RepositoriesMember,
		BoolMember:   "isValid",
	}
	calls, err := upstream.NewClient(cfg.Config)
	if err != nil {
		return nil, err
	}
	c := &Client{
		calls: calls, category: cfg.CategoryID, validOnly: cfg.ValidOnly, entity: cfg.Entity,
		central:    centralEntity{calls: semaphore.NewWeighted(1), name: cfg.Entity, fixed: cfg.Entity != ""},
		dictionary: dictionary{call: semaphore.NewWeighted(1)},
	}
	if cfg.DictionaryURL != "" {
		lectern := cfg.Config // another server, which gets no credentials of this one
		lectern.URL, lectern.Token, lectern.Username, lectern.Password, lectern.Metrics = cfg.DictionaryURL, "", "", "", nil
		if c.lectern, err = upstream.NewClient(lectern); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() {
	c.calls.Close()
	if c.lectern != nil {
		c.lectern.Close()
	}
}

// Organizations returns the organizations that have data in the category, in the server's order. Errors are *core.Error:
// CodeUnavailable, CodeOverloaded or CodeUpstream, with ErrNoCategory when the server has no such category.
func (c *Client) Organizations(ctx context.Context) ([]string, error) {
	r := upstream.Request{Segments: []string{"category", c.category}, Error: protocolError}
	return c.calls.Names(ctx, r, "category", func(document []byte) ([]*string, error) {
		var category struct {
			Organizations []*string `json:"organizations"`
		}
		err := json.Unmarshal(document, &category)
		return category.Organizations, err
	})
}
