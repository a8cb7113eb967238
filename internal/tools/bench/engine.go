package bench

import (
	"context"
	"encoding/json"
	"net/http"
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

// newEngine connects to the engine; indexes are created with tutti's defaults. The caller must close it.
func (b *bench) newEngine(ctx context.Context) (*engine, error) {
	url, _, _ := strings.Cut(b.ElasticsearchURL, ",")
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
