//go:build services

package check_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"tutti/internal/app/check"
	"tutti/internal/tools/testkit"
)

// realEngine returns the URL of the Elasticsearch for tests, and a function that sends it a request.
func realEngine(t *testing.T) (engine string, call func(method, path, body string)) {
	t.Helper()
	if engine = os.Getenv("TUTTI_TEST_ELASTICSEARCH_URL"); engine == "" {
		t.Fatal("TUTTI_TEST_ELASTICSEARCH_URL is not set: eval \"$(deploy/local/engine/start | sed 's/^/export /')\"")
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return engine, func(method, path, body string) {
		t.Helper()
		req, err := http.NewRequest(method, strings.TrimSuffix(engine, "/")+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode/100 != 2 && method != http.MethodDelete {
			t.Fatalf("%s %s: status %d", method, path, resp.StatusCode)
		}
	}
}

// elasticsearch returns the version of an engine if it is Elasticsearch, else zeros.
func elasticsearch(t *testing.T, engine string) (major, minor int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(strings.TrimSuffix(engine, "/") + "/_nodes/_local?filter_path=nodes.*.version")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("X-Elastic-Product") == "" {
		return 0, 0
	}
	var info struct {
		Nodes map[string]struct{ Version string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&info); err != nil {
		t.Fatal(err)
	}
	for _, node := range info.Nodes {
		if _, err := fmt.Sscanf(node.Version, "%d.%d", &major, &minor); err != nil {
			t.Fatal(err)
		}
	}
	return major, minor
}

// TestRealElasticsearch probes an Elasticsearch: without an alias, with one, and with an index in
// the alias's place.
func TestRealElasticsearch(t *testing.T) {
	engine, call := realEngine(t)
	alias := fmt.Sprintf("check-%d", time.Now().UnixNano())
	physical := alias + "-1"
	t.Cleanup(func() {
		call(http.MethodDelete, "/"+physical, "")
		call(http.MethodDelete, "/"+alias, "")
	})
	upstream := song(t, testkit.SongConfig{}, "S1")
	cfg := parse(t, fmt.Sprintf("dataDir: %q\nindex: {url: %q}\nrepositories: [{code: a, type: song, indexName: %q, url: %q}]",
		t.TempDir(), engine, alias, upstream.URL()))
	look := func(want ...string) {
		t.Helper()
		report := check.Run(t.Context(), cfg, check.Options{})
		wantLines(t, of(report, "index"), "ok: * is *, cluster *", "ok: the cluster is *")
		wantLines(t, of(report, "index "+alias), want...)
	}
	look("ok: will be created", "warn: repository a was never indexed -> run tutti index a")
	call(http.MethodPut, "/"+physical, fmt.Sprintf(`{"aliases":{%q:{}},"settings":{"number_of_replicas":0}}`, alias))
	there := "ok: the alias points to " + physical
	look(there, "warn: the index contains no documents of repository a -> run tutti index a")
	limits := "index.mapping.nested_fields.limit (50 → 200), index.mapping.nested_objects.limit (10000 → 100000), index.mapping.total_fields.limit (1000 → 5000)"
	if major, minor := elasticsearch(t, engine); major > 9 || major == 9 && minor >= 5 {
		limits = "index.mapping.array_objects.limit (50000 → 100000), index.mapping.nested_fields.limit (100 → 200), " +
			"index.mapping.nested_objects.limit (10000 → 100000), index.mapping.nested_parents.limit (50 → 200) and 1 more"
	}
	wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "index of a"), "ok: a rebuild would change *, "+limits+"; all is in: tutti mapping plan a")
	for _, code := range []string{"other", "a"} {
		call(http.MethodPut, "/"+physical+"/_doc/"+code+"?refresh=true&op_type=index", fmt.Sprintf(`{"repositories":[{"code":%q}]}`, code))
		if code == "other" {
			look(there, "warn: the index contains no documents of repository a -> run tutti index a")
		}
	}
	look(there)
	call(http.MethodDelete, "/"+physical, "")
	call(http.MethodPut, "/"+alias, `{"settings":{"number_of_replicas":0}}`)
	look("fail: an index has this name; tutti needs the name for an alias -> choose another indexName, *")
}

// TestCataloguesOfARealElasticsearch checks catalogues against indices: one that is right, one without the fields that it
// names, and one whose index is not there.
func TestCataloguesOfARealElasticsearch(t *testing.T) {
	engine, call := realEngine(t)
	index := fmt.Sprintf("check-catalogue-%d", time.Now().UnixNano())
	t.Cleanup(func() { call(http.MethodDelete, "/"+index, "") })
	call(http.MethodPut, "/"+index, `{"settings":{"number_of_replicas":0},"mappings":{"properties":{"data":{"properties":{"age":{"type":"integer"}}}}}}`)
	base := func(index, more string) string {
		return fmt.Sprintf(`{"documentType": "donor", "esIndex": %q%s}`, index, more)
	}
	dir := configured(t, map[string]string{
		"right/base.json":     base(index, `, "nestingPrefix": "data", "extended": [{"fieldName": "age", "unit": "years"}]`),
		"lacking/base.json":   base(index, `, "nestingPrefix": "record"`),
		"guarded/base.json":   base(index, ""),
		"guarded/access.json": `{"field": "study", "scope": "{value}.READ"}`,
		"missing/base.json":   base(index+"-none", ""),
	})
	report := check.Run(t.Context(), withCatalogues(t, dir, engine, "", index+"-a", "{mode: token}"), check.Options{})
	const access = "ok: no access.json: anyone with a valid token can read it *"
	wantLines(t, of(report, "catalogue right"), "ok: documents of type donor in index "+index+"; 1 field", access)
	wantLines(t, of(report, "catalogue lacking"), `fail: *"record", which nestingPrefix names -> fix *`, access)
	wantLines(t, of(report, "catalogue guarded"), "ok: *; 2 fields", `warn: the access rule denies all: the mapping has no field "study"`)
	wantLines(t, of(report, "catalogue missing"), "fail: the index "+index+"-none does not exist -> create it, or *", access)
}
