package elastic

import (
	"bytes"
	"context"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/klauspost/compress/gzip"

	"tutti/internal/core"
	"tutti/internal/index/elastic/transport"
)

// shardWait is how long a write waits in the cluster for an unavailable shard.
const shardWait = 2 * time.Second

// Write sends b as one bulk request and returns one Result per item, in order. Documents with unknown paths extend the mapping
// and are sent again within the call. The Code of a Result with OutcomeRetry says why. An error is a *core.Error for the whole
// request: CodeOverloaded (429, 503, or b.Deadline has passed), CodeUnavailable (no complete response; the documents may or may
// not have been written), CodeTooLarge (413), CodeInvalid (400, with the cluster's reason in its cause), or CodeIndexBlocked.
// Write neither changes b's bytes nor reads them after it has returned.
func (x *Index) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	end, err := x.client.Begin(b.Index)
	if err != nil {
		return nil, err
	}
	defer end()
	if len(b.Items) == 0 {
		return nil, nil
	}
	st := x.state(b.Index)
	x.addFieldsAhead(ctx, st, b)
	body := b.Payload()
	if st.trimFirst.Load() {
		if trimmed := x.trimAhead(st, b); trimmed != nil {
			body = trimmed
		}
	}
	results, err := x.send(ctx, b, b.Items, body)
	if err != nil {
		return nil, err
	}
	x.growMapping(ctx, st, b, results)
	return results, nil
}

// send sends items of b, encoded in body, as one bulk request. It fails after b.Deadline: a shard that reopened has lost the
// versions of deletions and would accept an outdated document.
func (x *Index) send(ctx context.Context, b core.Batch, items []core.BatchItem, body []byte) ([]core.Result, error) {
	if !b.Deadline.IsZero() && !x.now().Before(b.Deadline) {
		return nil, core.NewError(core.CodeOverloaded, "the documents became too old before they could be sent")
	}
	into := x.client.GetBuffer()
	defer x.client.PutBuffer(into)
	r := x.bulkRequest(b.Index, body)
	if x.compress {
		packed := x.client.GetBuffer()
		defer x.client.PutBuffer(packed)
		if err := x.gzip(packed, body); err != nil {
			return nil, core.WrapError(core.CodeInternal, "the bulk body cannot be compressed", err)
		}
		r = x.bulkRequest(b.Index, packed.Bytes())
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := x.client.Do(ctx, r, into)
	if err != nil {
		return nil, err
	}
	return x.results(answer.Body, b.Index, items)
}

func (x *Index) gzip(dst *bytes.Buffer, body []byte) error {
	zip, ok := x.gzippers.Get().(*gzip.Writer)
	if !ok {
		var err error
		if zip, err = gzip.NewWriterLevel(dst, gzip.BestSpeed); err != nil {
			return err
		}
	}
	zip.Reset(dst)
	defer x.gzippers.Put(zip)
	if _, err := zip.Write(body); err != nil {
		return err
	}
	return zip.Close()
}

// bulkRequest returns a bulk request. The cluster stops waiting for a missing shard long before the request times out: the
// outcome is known, other indices are not delayed, and no document becomes outdated in the cluster before it is written.
func (x *Index) bulkRequest(alias string, body []byte) esapi.BulkRequest {
	return esapi.BulkRequest{
		Index: alias, Body: bytes.NewReader(body), Header: transport.NDJSON(),
		RequireAlias: new(true), Timeout: min(shardWait, x.timeout/2), FilterPath: []string{bulkFilterPath},
	}
}
