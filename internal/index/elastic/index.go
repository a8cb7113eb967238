package elastic

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index"
)

var _ index.Index = (*Index)(nil)

// Index stores documents in an Elasticsearch cluster. All methods are safe for concurrent use.
type Index struct {
	client   *client
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

	// calls is read-locked by every call in progress, so that Close waits for them.
	calls  sync.RWMutex
	closed bool

	mu      sync.Mutex
	aliases map[string]*aliasState

	unknown  *unknownTypes
	buffers  sync.Pool // *bytes.Buffer, for responses and gzip bodies
	gzippers sync.Pool // *gzip.Writer
}

// New returns an Index. It does not connect: Ping reports whether the cluster answers. An error is core.CodeInvalid.
func New(cfg Config) (*Index, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	cursors, err := newSealer(cfg.CursorKey)
	if err != nil {
		return nil, err
	}
	return &Index{
		client: client, cursors: cursors, logger: cfg.Logger, now: cfg.Now, timeout: cfg.Timeout, compress: cfg.Compress, grown: cfg.Grown,
		shards: cfg.Shards, replicas: cfg.Replicas, maxSourceBytes: maxResponseBytes,
		aliases: make(map[string]*aliasState),
		unknown: newUnknownTypes(cfg.Logger, cfg.Now),
	}, nil
}

// Close waits for the calls in progress and closes the connections. Later calls return core.CodeUnavailable.
func (x *Index) Close() error {
	x.calls.Lock()
	defer x.calls.Unlock()
	if x.closed {
		return nil
	}
	x.closed = true
	return x.client.close()
}

// begin starts a call on alias ("" for none); leave ends it.
func (x *Index) begin(alias string) (leave func(), err error) {
	if alias != "" {
		if err := validAlias(alias); err != nil {
			return nil, err
		}
	}
	x.calls.RLock()
	if x.closed {
		x.calls.RUnlock()
		return nil, core.WrapError(core.CodeUnavailable, "the index has been closed", core.ErrIndexUnreachable)
	}
	return x.calls.RUnlock, nil
}

// validAlias rejects names that stand for several indices or change the path of a request.
func validAlias(alias string) error {
	bad := func(r rune) bool {
		return strings.ContainsRune(`\/*?"<>|,#: %`, r) || !unicode.IsPrint(r) || unicode.IsUpper(r)
	}
	if alias == "." || alias == ".." || len(alias) > 240 || strings.IndexFunc(alias, bad) >= 0 ||
		strings.IndexByte("-_+", alias[0]) >= 0 {
		return core.NewError(core.CodeInvalid, "the name of an index must be lower case, at most 240 bytes, "+
			`not start with -, _ or +, and contain none of \ / * ? " < > | , # : % or space`)
	}
	return nil
}

// Ping returns nil when the cluster answers, core.CodeIndexBlocked when it rejects the credentials, otherwise
// core.CodeUnavailable.
func (x *Index) Ping(ctx context.Context) error {
	leave, err := x.begin("")
	if err != nil {
		return err
	}
	defer leave()
	_, err = x.client.do(ctx, esapi.ClusterHealthRequest{FilterPath: []string{"status"}}, nil)
	switch failure := responseErrorOf(err); {
	case err == nil, failure != nil && failure.status == http.StatusForbidden:
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
	leave, err := x.begin(alias)
	if err != nil {
		return err
	}
	defer leave()
	reply, err := x.client.do(ctx, esapi.IndicesRefreshRequest{Index: []string{alias}, FilterPath: []string{"_shards.failed"}}, nil)
	if err != nil {
		return err
	}
	return reply.checkShards(alias)
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
