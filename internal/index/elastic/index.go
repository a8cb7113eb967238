package elastic

import (
	"context"

	"tutti/internal/index"
	"tutti/internal/index/elastic/admin"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/elastic/read"
	"tutti/internal/index/elastic/search"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/elastic/write"
)

var _ index.Index = (*Index)(nil)

// Index stores documents in an Elasticsearch cluster. All methods are safe for concurrent use.
type Index struct {
	*admin.Reporter
	*admin.Creator
	*admin.Mover
	*write.Writer
	*read.Reader
	*search.Searcher
	client *transport.Client
}

// New returns an Index. It does not connect: Ping reports whether the cluster answers. An error is core.CodeInvalid.
func New(cfg Config) (*Index, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := transport.New(cfg.Connection)
	if err != nil {
		return nil, err
	}
	meta := aliases.New(client, cfg.Logger, cfg.Grown)
	searcher, err := search.New(client, meta, cfg.CursorKey, cfg.Memory, cfg.Now)
	if err != nil {
		return nil, err
	}
	reporter, creator, mover := admin.New(client, meta, admin.Config{
		Shards: cfg.Shards, Replicas: cfg.Replicas, Limits: cfg.Limits, Logger: cfg.Logger, Now: cfg.Now,
	})
	return &Index{
		Reporter: reporter,
		Creator:  creator,
		Mover:    mover,
		Writer:   write.New(client, meta, write.Config{Compress: cfg.Compress, Logger: cfg.Logger, Now: cfg.Now}),
		Reader:   read.New(client, meta, cfg.Memory),
		Searcher: searcher,
		client:   client,
	}, nil
}

// Engine returns the cluster's engine, zero with an error when it cannot be identified or is not supported.
func (x *Index) Engine(ctx context.Context) (flavour.Engine, error) { return x.client.Engine(ctx) }

// Defect returns what a node of the cluster is known to do wrong, "" if nothing. Like every call it identifies the engine when that is due.
func (x *Index) Defect(ctx context.Context) string {
	_, _ = x.client.Engine(ctx) // what it rejects, Check returns
	return x.client.Defect()
}

// Close waits for the calls in progress and closes the connections. Later calls return core.CodeUnavailable.
func (x *Index) Close() error { return x.client.Close() }
