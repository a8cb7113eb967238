package direct

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/index/bulk"
	"tutti/internal/index/elastic"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/upstream"
)

// bulkPath is the path of bulk requests of tutti and of the ceiling, with the shortest responses.
const bulkPath = "/_bulk?require_alias=true&filter_path=error,status,errors,items.*.status"

// Ceiling is the fastest way to write the documents: bulk bodies encoded before the measurement starts.
type Ceiling struct {
	bodies      [][]byte
	Documents   int
	Connections int
}

// NewCeiling encodes the documents of a corpus into bulk bodies of tutti's size.
func NewCeiling(engine *elastic.Index, c *standin.Corpus, block []byte) *Ceiling {
	ceil := &Ceiling{Documents: len(c.Analyses)}
	version := core.Version(time.Now().UnixNano())
	var body, doc []byte
	items := 0
	for _, a := range c.Analyses {
		if items == bulk.DefaultBatchCount || items > 0 && len(body)+len(a.Body)+len(block) > bulk.DefaultBatchBytes {
			ceil.bodies = append(ceil.bodies, bytes.Clone(body))
			body, items = body[:0], 0
		}
		doc = upstream.Splice(doc[:0], a.Body, block)
		body, _, _ = engine.Encode(body, core.Write{Op: core.OpIndex, ID: a.ID, Version: version, Document: doc})
		items++
	}
	ceil.bodies = append(ceil.bodies, bytes.Clone(body))
	return ceil
}

// Write sends all bodies to an alias over a number of connections, and returns the time it took.
func (c *Ceiling) Write(ctx context.Context, engine *Client, alias string, connections int) (time.Duration, error) {
	var next atomic.Int64
	began := time.Now()
	senders, ctx := errgroup.WithContext(ctx)
	for range connections {
		senders.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(c.bodies) {
					return nil
				}
				answer, err := engine.Call(ctx, http.MethodPost, "/"+alias+bulkPath, "application/x-ndjson", c.bodies[i])
				if err != nil {
					return err
				}
				if !bytes.HasPrefix(answer, []byte(`{"errors":false,`)) {
					return core.NewError(core.CodeInternal, fmt.Sprintf("the engine rejected documents: %.500s", answer))
				}
			}
		})
	}
	err := senders.Wait()
	return time.Since(began), err
}
