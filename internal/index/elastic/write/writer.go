package write

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/klauspost/compress/gzip"

	"tutti/internal/core"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/transport"
)

// shardWait is how long a write waits in the cluster for an unavailable shard.
const shardWait = 2 * time.Second

// Writer writes documents with bulk requests. All methods are safe for concurrent use.
type Writer struct {
	client   *transport.Client
	meta     *aliases.Aliases
	cfg      Config
	mapper   mapper
	decoder  *resultDecoder
	gzippers sync.Pool // *gzip.Writer
}

// Config configures a Writer. Logger and Now are required.
type Config struct {
	// Compress sends bulk bodies compressed with gzip.
	Compress bool
	Logger   *slog.Logger
	// Now returns the current time, for deadlines and for log intervals.
	Now func() time.Time
}

// New returns a Writer.
func New(client *transport.Client, meta *aliases.Aliases, cfg Config) *Writer {
	w := &Writer{client: client, meta: meta, cfg: cfg, decoder: newResultDecoder(cfg.Logger, cfg.Now)}
	w.mapper = mapper{meta: meta, logger: cfg.Logger, send: w.send}
	return w
}

// Write sends b as one bulk request and returns one Result per item, in order. Documents with unknown paths extend the mapping
// and are sent again within the call. The Code of a Result with OutcomeRetry says why. An error is a *core.Error for the whole
// request: CodeOverloaded (429, 503, or b.Deadline has passed), CodeUnavailable (no complete response; the documents may or may
// not have been written), CodeTooLarge (413), CodeInvalid (400, with the cluster's reason in its cause), or CodeIndexBlocked.
// Write neither changes b's bytes nor reads them after it has returned.
func (w *Writer) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	end, err := w.client.Begin(b.Index)
	if err != nil {
		return nil, err
	}
	defer end()
	if len(b.Items) == 0 {
		return nil, nil
	}
	st := w.meta.Alias(b.Index)
	rejected, err := w.mapper.inexact(ctx, st, b)
	if err != nil {
		return nil, err
	}
	if len(rejected) == 0 {
		return w.write(ctx, st, b)
	}
	return b.WriteExcept(rejected, func(rest core.Batch) ([]core.Result, error) { return w.write(ctx, st, rest) })
}

// write is Write for documents without inexact numbers.
func (w *Writer) write(ctx context.Context, st *aliases.Alias, b core.Batch) ([]core.Result, error) {
	w.mapper.addAhead(ctx, st, b)
	body := b.Payload()
	if st.TrimFirst.Load() {
		if trimmed := trimAhead(st, b); trimmed != nil {
			body = trimmed
		}
	}
	results, err := w.send(ctx, b, b.Items, body)
	if err != nil {
		return nil, err
	}
	w.mapper.grow(ctx, st, b, results)
	return results, nil
}

// send sends items of b, encoded in body, as one bulk request. It fails after b.Deadline: a shard that reopened has lost the
// versions of deletions and would accept an outdated document.
func (w *Writer) send(ctx context.Context, b core.Batch, items []core.BatchItem, body []byte) ([]core.Result, error) {
	if !b.Deadline.IsZero() && !w.cfg.Now().Before(b.Deadline) {
		return nil, core.NewError(core.CodeOverloaded, "the documents became too old before they could be sent")
	}
	into := w.client.GetBuffer()
	defer w.client.PutBuffer(into)
	count := len(items)
	if onlyDeletions(items) {
		body = append(slices.Clip(body), neverApplied...)
		items = append(slices.Clip(items), core.BatchItem{Op: core.OpIndex})
	}
	r := w.bulkRequest(b.Index, body)
	if w.cfg.Compress {
		packed := w.client.GetBuffer()
		defer w.client.PutBuffer(packed)
		if err := w.gzip(packed, body); err != nil {
			return nil, core.WrapError(core.CodeInternal, "the bulk body cannot be compressed", err)
		}
		r = w.bulkRequest(b.Index, packed.Bytes())
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := w.client.Do(ctx, r, into)
	if err != nil {
		return nil, err
	}
	results, err := w.decoder.decode(answer.Body, b.Index, items)
	if err != nil {
		return nil, err
	}
	return results[:count], nil
}

// onlyDeletions reports whether items are all deletions. The cluster applies require_alias only to writes of documents: for a request
// of versioned deletions alone it would create an index with the name of a missing alias.
func onlyDeletions(items []core.BatchItem) bool {
	return !slices.ContainsFunc(items, func(item core.BatchItem) bool { return item.Op != core.OpDelete })
}

func (w *Writer) gzip(dst *bytes.Buffer, body []byte) error {
	zip, ok := w.gzippers.Get().(*gzip.Writer)
	if !ok {
		var err error
		if zip, err = gzip.NewWriterLevel(dst, gzip.BestSpeed); err != nil {
			return err
		}
	}
	zip.Reset(dst)
	defer w.gzippers.Put(zip)
	if _, err := zip.Write(body); err != nil {
		return err
	}
	return zip.Close()
}

// bulkRequest returns a bulk request. Its timeout makes the cluster stop waiting for a missing shard well before the request times
// out, so that the outcome is known, other indices are not delayed, and no document waits in the cluster until it is outdated.
func (w *Writer) bulkRequest(alias string, body []byte) esapi.BulkRequest {
	return esapi.BulkRequest{
		Index: alias, Body: bytes.NewReader(body), Header: transport.NDJSON(),
		RequireAlias: new(true), Timeout: min(shardWait, w.client.Timeout()/2), FilterPath: []string{bulkFilterPath},
	}
}
