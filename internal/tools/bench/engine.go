package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
)

// engine is the real Elasticsearch, called directly.
type engine struct {
	index  *elastic.Index
	client *client
}

// newEngine connects to the first of the comma-separated URLs of an engine; indexes are created with tutti's defaults. The caller must close it.
func newEngine(ctx context.Context, urls string) (*engine, error) {
	url, _, _ := strings.Cut(urls, ",")
	defaults := config.Default().Index
	x, err := elastic.New(elastic.Config{URLs: []string{url}, Shards: defaults.Shards, Replicas: defaults.Replicas})
	if err != nil {
		return nil, err
	}
	if err := x.Ping(ctx); err != nil {
		return nil, err
	}
	return &engine{index: x, client: newClient(strings.TrimRight(url, "/"))}, nil
}

func (e *engine) close() {
	e.client.close()
	_ = e.index.Close() // nothing is in progress
}

// make creates an alias with a mapping.
func (e *engine) make(ctx context.Context, alias string, mapping json.RawMessage) error {
	return e.index.Ensure(ctx, index.Spec{Alias: alias, Mapping: mapping})
}

// drop removes the index behind an alias.
func (e *engine) drop(ctx context.Context, alias string) error {
	answer, err := e.client.call(ctx, http.MethodGet, "/_alias/"+alias, "", nil)
	if err != nil {
		return err
	}
	for physical := range gjson.ParseBytes(answer).Map() {
		if _, err := e.client.call(ctx, http.MethodDelete, "/"+physical, "", nil); err != nil {
			return err
		}
	}
	return nil
}

// holds checks that an alias contains the given number of documents.
func (e *engine) holds(ctx context.Context, alias string, documents int) error {
	if err := e.index.Refresh(ctx, alias); err != nil {
		return err
	}
	got, err := e.index.Count(ctx, alias, core.IndexScope{})
	if err != nil {
		return err
	}
	return holdsAll(got, documents)
}

// usedCPU returns the CPU time that all nodes of the engine have used.
func (e *engine) usedCPU(ctx context.Context) (time.Duration, error) {
	const path = "/_nodes/stats/process?filter_path=nodes.*.process.cpu.total_in_millis"
	answer, err := e.client.call(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return 0, err
	}
	var used time.Duration
	for _, node := range gjson.GetBytes(answer, "nodes").Map() {
		used += time.Duration(node.Get("process.cpu.total_in_millis").Int()) * time.Millisecond
	}
	return used, nil
}

// holdsAll checks a count of documents.
func holdsAll(got int64, documents int) error {
	if got == int64(documents) {
		return nil
	}
	return core.NewError(core.CodeInternal, fmt.Sprintf("the index holds %d documents instead of %d", got, documents))
}

// directPageSize is the page size of direct requests to the engine.
const directPageSize = 1000

// pages reads the columns of all documents of an alias in the fastest way of the engine: page by page, from a point in time, in index
// order.
func (e *engine) pages(ctx context.Context, alias string, documents int, fields []string) (took time.Duration, err error) {
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
		"_source": fields, "track_total_hits": false,
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
