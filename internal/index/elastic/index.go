package elastic

import (
	"tutti/internal/index"
	"tutti/internal/index/elastic/transport"
)

var _ index.Index = (*Index)(nil)

// Index stores documents in an Elasticsearch cluster. All methods are safe for concurrent use.
type Index struct {
	*admin
	*writer
	*reader
	*Searcher
	client *transport.Client
}

// New returns an Index. It does not connect: Ping reports whether the cluster answers. An error is core.CodeInvalid.
func New(cfg Config) (*Index, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := transport.New(cfg.transport())
	if err != nil {
		return nil, err
	}
	meta := newMetadata(client, cfg.Logger, cfg.Grown)
	searcher, err := NewSearcher(client, meta, cfg.CursorKey, cfg.Now)
	if err != nil {
		return nil, err
	}
	return &Index{
		admin:    newAdmin(client, meta, adminConfig{Shards: cfg.Shards, Replicas: cfg.Replicas, Logger: cfg.Logger, Now: cfg.Now}),
		writer:   newWriter(client, meta, writerConfig{Compress: cfg.Compress, Logger: cfg.Logger, Now: cfg.Now}),
		reader:   newReader(client, meta),
		Searcher: searcher,
		client:   client,
	}, nil
}

// Close waits for the calls in progress and closes the connections. Later calls return core.CodeUnavailable.
func (x *Index) Close() error { return x.client.Close() }
