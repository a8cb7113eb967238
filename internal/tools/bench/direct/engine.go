package direct

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

// Engine is the real Elasticsearch, called directly.
type Engine struct {
	Index  *elastic.Index
	Client *Client
}

// NewEngine connects to the first of the comma-separated URLs of an engine; indexes are created with tutti's defaults. The caller must close it.
func NewEngine(ctx context.Context, urls string) (*Engine, error) {
	url, _, _ := strings.Cut(urls, ",")
	defaults := config.Default().Index
	x, err := elastic.New(elastic.Config{Connection: elastic.Connection{URLs: []string{url}}, Shards: defaults.Shards, Replicas: defaults.Replicas})
	if err != nil {
		return nil, err
	}
	if err := x.Ping(ctx); err != nil {
		return nil, err
	}
	return &Engine{Index: x, Client: NewClient(strings.TrimRight(url, "/"))}, nil
}

// Close closes the connections; no call may be in progress.
func (e *Engine) Close() {
	e.Client.Close()
	_ = e.Index.Close() // nothing is in progress
}

// Make creates an alias with a mapping.
func (e *Engine) Make(ctx context.Context, alias string, mapping json.RawMessage) error {
	return e.Index.Ensure(ctx, index.Spec{Alias: alias, Mapping: mapping})
}

// Drop removes the index behind an alias.
func (e *Engine) Drop(ctx context.Context, alias string) error {
	answer, err := e.Client.Call(ctx, http.MethodGet, "/_alias/"+alias, "", nil)
	if err != nil {
		return err
	}
	for physical := range gjson.ParseBytes(answer).Map() {
		if _, err := e.Client.Call(ctx, http.MethodDelete, "/"+physical, "", nil); err != nil {
			return err
		}
	}
	return nil
}

// Holds checks that an alias contains the given number of documents.
func (e *Engine) Holds(ctx context.Context, alias string, documents int) error {
	if err := e.Index.Refresh(ctx, alias); err != nil {
		return err
	}
	got, err := e.Index.Count(ctx, alias, core.IndexScope{})
	if err != nil {
		return err
	}
	return HoldsAll(got, documents)
}

// UsedCPU returns the CPU time that all nodes of the engine have used.
func (e *Engine) UsedCPU(ctx context.Context) (time.Duration, error) {
	const path = "/_nodes/stats/process?filter_path=nodes.*.process.cpu.total_in_millis"
	answer, err := e.Client.Call(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return 0, err
	}
	var used time.Duration
	for _, node := range gjson.GetBytes(answer, "nodes").Map() {
		used += time.Duration(node.Get("process.cpu.total_in_millis").Int()) * time.Millisecond
	}
	return used, nil
}

// HoldsAll checks a count of documents.
func HoldsAll(got int64, documents int) error {
	if got == int64(documents) {
		return nil
	}
	return core.NewError(core.CodeInternal, fmt.Sprintf("the index holds %d documents instead of %d", got, documents))
}

// PageSize is the page size of direct requests to the engine.
const PageSize = 1000

// Pages reads the columns of all documents of an alias in the fastest way of the engine: page by page, from a point in time, in index
// order.
func (e *Engine) Pages(ctx context.Context, alias string, documents int, fields []string) (took time.Duration, err error) {
	opened, err := e.Client.Call(ctx, http.MethodPost, "/"+alias+"/_pit?keep_alive=1m", "", nil)
	if err != nil {
		return 0, err
	}
	point := gjson.GetBytes(opened, "id").String()
	defer func() {
		body, _ := json.Marshal(map[string]string{"id": point}) // strings only
		_, closeErr := e.Client.Call(context.WithoutCancel(ctx), http.MethodDelete, "/_pit", core.MediaJSON, body)
		err = errors.Join(err, closeErr)
	}()
	question := map[string]any{
		"size": PageSize, "pit": map[string]string{"id": point, "keep_alive": "1m"}, "sort": []string{"_shard_doc"},
		"_source": fields, "track_total_hits": false,
	}
	path := "/_search?filter_path=" + url.QueryEscape("hits.hits._source,hits.hits.sort")
	began := time.Now()
	for got := 0; ; {
		body, err := json.Marshal(question)
		if err != nil {
			return 0, core.WrapError(core.CodeInternal, "writing a search", err)
		}
		answer, err := e.Client.Call(ctx, http.MethodPost, path, core.MediaJSON, body)
		if err != nil {
			return 0, err
		}
		hits := gjson.GetBytes(answer, "hits.hits").Array()
		got += len(hits)
		if len(hits) < PageSize {
			return time.Since(began), HoldsAll(int64(got), documents)
		}
		question["search_after"] = json.RawMessage(hits[len(hits)-1].Get("sort").Raw)
	}
}
