package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// directPageSize is the page size of direct requests to the engine.
const directPageSize = 1000

// downloadElastic measures a server on a real engine and the engine itself.
func (b *bench) downloadElastic(ctx context.Context, report *Report) (err error) {
	e, err := b.newEngine(ctx)
	if err != nil {
		return err
	}
	defer e.close()
	dir, err := b.newFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := downloadRun{b: b, dir: dir, alias: b.newName("download"), engine: "Elasticsearch", engineURL: b.ElasticsearchURL}
	defer func() { err = errors.Join(err, e.drop(context.WithoutCancel(ctx), r.alias)) }()
	if err := r.stock(ctx, e.index); err != nil {
		return err
	}
	r.alone = func(ctx context.Context) (time.Duration, error) { return e.pages(ctx, r.alias, b.Sizes.Downloaded) }
	return r.run(ctx, report)
}

// pages reads the columns of all documents of an alias in the fastest way of the engine: page by page, from a point in time, in index
// order.
func (e *engine) pages(ctx context.Context, alias string, documents int) (took time.Duration, err error) {
	opened, err := e.client.call(ctx, http.MethodPost, "/"+alias+"/_pit?keep_alive=1m", "", nil)
	if err != nil {
		return 0, err
	}
	point := gjson.GetBytes(opened, "id").String()
	defer func() {
		body, _ := json.Marshal(map[string]string{"id": point}) // strings only
		_, closeErr := e.client.call(context.WithoutCancel(ctx), http.MethodDelete, "/_pit", core.MediaJSON, body)
		err = errors.Join(err, closeErr)
	}()
	question := map[string]any{
		"size": directPageSize, "pit": map[string]string{"id": point, "keep_alive": "1m"}, "sort": []string{"_shard_doc"},
		"_source": hitFields(), "track_total_hits": false,
	}
	path := "/_search?filter_path=" + url.QueryEscape("hits.hits._source,hits.hits.sort")
	began := time.Now()
	for got := 0; ; {
		body, err := json.Marshal(question)
		if err != nil {
			return 0, core.WrapError(core.CodeInternal, "writing a search", err)
		}
		answer, err := e.client.call(ctx, http.MethodPost, path, core.MediaJSON, body)
		if err != nil {
			return 0, err
		}
		hits := gjson.GetBytes(answer, "hits.hits").Array()
		got += len(hits)
		if len(hits) < directPageSize {
			return time.Since(began), holdsAll(int64(got), documents)
		}
		question["search_after"] = json.RawMessage(hits[len(hits)-1].Get("sort").Raw)
	}
}
