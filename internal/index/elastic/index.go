package elastic

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/transport"
)

var _ index.Index = (*Index)(nil)

// Index stores documents in an Elasticsearch cluster. All methods are safe for concurrent use.
type Index struct {
	client   *transport.Client
	cursors  *sealer
	logger   *slog.Logger
	now      func() time.Time
	timeout  time.Duration
	compress bool
	grown    func(alias string)
	shards   int
	replicas int
	// maxSourceBytes limits the bytes of documents that one Search keeps in memory.
	maxSourceBytes int64

	mu      sync.Mutex
	aliases map[string]*aliasState

	unknown  *unknownTypes
	gzippers sync.Pool // *gzip.Writer
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
	cursors, err := newSealer(cfg.CursorKey)
	if err != nil {
		return nil, err
	}
	return &Index{
		client: client, cursors: cursors, logger: cfg.Logger, now: cfg.Now, timeout: client.Timeout(), compress: cfg.Compress, grown: cfg.Grown,
		shards: cfg.Shards, replicas: cfg.Replicas, maxSourceBytes: transport.DefaultMaxResponseBytes,
		aliases: make(map[string]*aliasState),
		unknown: newUnknownTypes(cfg.Logger, cfg.Now),
	}, nil
}

// Close waits for the calls in progress and closes the connections. Later calls return core.CodeUnavailable.
func (x *Index) Close() error { return x.client.Close() }

// Ping returns nil when the cluster answers, core.CodeIndexBlocked when it rejects the credentials, otherwise
// core.CodeUnavailable.
func (x *Index) Ping(ctx context.Context) error {
	end, err := x.client.BeginCall()
	if err != nil {
		return err
	}
	defer end()
	_, err = x.client.Do(ctx, esapi.ClusterHealthRequest{FilterPath: []string{"status"}}, nil)
	switch failure := transport.ErrorOf(err); {
	case err == nil, failure != nil && failure.Status == http.StatusForbidden:
		// The cluster knows a user who lacks the privilege to read the cluster's health.
		return nil
	case core.CodeOf(err) == core.CodeIndexBlocked:
		return err
	default:
		return core.WrapError(core.CodeUnavailable, "the index does not answer", err)
	}
}

// Refresh makes all earlier writes visible to Count, Scan and searches.
func (x *Index) Refresh(ctx context.Context, alias string) error {
	end, err := x.client.Begin(alias)
	if err != nil {
		return err
	}
	defer end()
	reply, err := x.client.Do(ctx, esapi.IndicesRefreshRequest{Index: []string{alias}, FilterPath: []string{"_shards.failed"}}, nil)
	if err != nil {
		return err
	}
	return reply.CheckShards(alias)
}

// state returns the cached state of alias.
func (x *Index) state(alias string) *aliasState {
	x.mu.Lock()
	defer x.mu.Unlock()
	st := x.aliases[alias]
	if st == nil {
		st = newAliasState()
		x.aliases[alias] = st
	}
	return st
}
