//go:build services

package elastic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/indextest"
	"tutti/internal/tools/indextest/sharedtest"
	"tutti/internal/tools/testkit"
)

// The tests of these files need deploy/local/engine: `start` prints TUTTI_TEST_ELASTICSEARCH_URL. The one test of
// the secure node starts it if it does not run.

func environment(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set; deploy/local/engine/start prints it", name)
	}
	return value
}

func cluster(t testing.TB, change ...func(*elastic.Config)) *elastic.Index {
	t.Helper()
	return open(t, environment(t, "TUTTI_TEST_ELASTICSEARCH_URL"), change...)
}

// fresh returns the name of an alias for this test only; its indices are deleted when the test ends.
func fresh(t testing.TB) string {
	t.Helper()
	alias := "test-" + uuid.NewString()
	t.Cleanup(func() { admin(t, http.MethodDelete, "/"+PhysicalIndex(t, alias), "") })
	return alias
}

// PhysicalIndex returns the index behind alias, "" when there is none.
func PhysicalIndex(t testing.TB, alias string) string {
	t.Helper()
	var found map[string]json.RawMessage
	if err := json.Unmarshal([]byte(admin(t, http.MethodGet, "/_alias/"+alias, "")), &found); err != nil {
		t.Fatal(err)
	}
	owner := strings.TrimSuffix(strings.TrimSuffix(alias, core.NextSuffix), core.PreviousSuffix)
	for name := range found {
		if strings.HasPrefix(name, owner) {
			return name
		}
	}
	return alias
}

// admin speaks to the cluster around the engine.
func admin(t testing.TB, method, path, body string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.HangLimit)
	defer cancel()
	url := environment(t, "TUTTI_TEST_ELASTICSEARCH_URL") + path
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// tidy is an engine whose indices go when the test ends.
type tidy struct {
	*elastic.Index
	t    *testing.T
	once *sync.Map
}

func (x tidy) Ensure(ctx context.Context, spec index.Spec) error {
	if _, known := x.once.LoadOrStore(spec.Alias, true); !known {
		x.t.Cleanup(func() {
			admin(x.t, http.MethodDelete, "/"+PhysicalIndex(x.t, spec.Alias), "")
			admin(x.t, http.MethodDelete, "/"+PhysicalIndex(x.t, core.PreviousAlias(spec.Alias)), "")
		})
	}
	return x.Index.Ensure(ctx, spec)
}

func tidyCluster(t *testing.T) index.Index { return tidyIndex(t) }

func tidyIndex(t *testing.T, change ...func(*elastic.Config)) index.Index {
	return tidy{Index: cluster(t, change...), t: t, once: new(sync.Map)}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	indextest.Run(t, func(t *testing.T) index.Index { return tidyCluster(t) }, indexDialect(t))
	sharedtest.Run(t, func(t *testing.T) index.Index { return tidyCluster(t) })
}

// indexDialect returns how the engine departs from Elasticsearch 8.
func indexDialect(t testing.TB) indextest.Dialect {
	switch engine := engineOf(t); {
	case engine.Product == flavour.OpenSearch:
		d := openSearchDialect()
		d.OneBound = !engine.Version.Less(flavour.Version{Major: 3, Minor: 3}) // 3.2 and 3.8 were tried
		return d
	case engine.Version.Major < 8:
		return indextest.Dialect{ParsingType: "mapper_parsing_exception", Older: true, Accepted: blankNames(), Rejected: []string{
			`{"t":-1}`, `{"t":"-0"}`, `{"date":{"gte":-1}}`, `{"date":{"gte":"+10000-01-01"}}`, `{"date":{"gte":"-10000-01-01"}}`,
			`{"date":{"gte":-9223372036854775807}}`, `{"date":{"gt":-9223372036854775807}}`, `{"date":{"lt":-9223372036854775807}}`,
			`{"date":{"lte":-9223372036854775807}}`, `{"date":{"gte":"-9223372036854775807"}}`,
			`{"o":{"p":{"type":"Point","coordinates":[2,1]}}}`, `{"o":{"p":{"type":"point","coordinates":[2,1]}}}`, `{"o":{"p":{"type":"Point","coordinates":[2,1,3]}}}`,
			`{"o":{"p":[{"type":"Point","coordinates":[2,1]}]}}`, `{"o":{"p":{"type":"POINT","coordinates":[2,1]}}}`,
		}}
	case engine.Version.Major == 9:
		return indextest.Dialect{Accepted: []string{`{"t":9223372036855}`, `{"o":{"p":"POINT Z (2 1 3)"}}`}}
	default:
		return indextest.Dialect{}
	}
}

func openSearchDialect() indextest.Dialect {
	return indextest.Dialect{ParsingType: "mapper_parsing_exception", NoRuntimeFields: true, Older: true, Rejected: indextest.LongPaths(), Accepted: append(blankNames(),
		`{"t":"2024-03-05T"}`, `{"t":"2024-03-05T10"}`, `{"t":"2024-03-05T10Z"}`, `{"t":"2024-03-05T10:20"}`, `{"t":"2024-03-05T10:20+01:00"}`,
	)}
}

// blankNames returns documents with names of blanks that OpenSearch and Elasticsearch 7 accept.
func blankNames() []string {
	return []string{`{"x":{" ":null}}`, `{"x":[{},{" ":null}]}`, `{"d":{" ":null}}`, `{"d":{" ":[]}}`, `{"d":{" ":[null]}}`, `{"d":{" ":{}}}`, `{"d":{" ":1}}`}
}

// engineOf returns the engine that the tests run on.
func engineOf(t testing.TB) flavour.Engine {
	t.Helper()
	client, err := transport.New(transport.Config{URLs: []string{environment(t, "TUTTI_TEST_ELASTICSEARCH_URL")}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	engine, err := client.Engine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func ensure(t testing.TB, x *elastic.Index, spec index.Spec) {
	t.Helper()
	if err := x.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, x *elastic.Index, alias string, writes ...core.Write) []core.Result {
	t.Helper()
	results, err := x.Write(t.Context(), batch(x, alias, writes...))
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func outcomes(results []core.Result) []core.Outcome {
	out := make([]core.Outcome, len(results))
	for i := range results {
		out[i] = results[i].Outcome
	}
	return out
}

func typeAt(t testing.TB, x *elastic.Index, alias, path string) mapping.Type {
	t.Helper()
	raw, err := x.Mapping(t.Context(), alias)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	field := tree.Lookup(path)
	if field == nil {
		return ""
	}
	return field.Type
}

func wantDocument(t testing.TB, x *elastic.Index, alias, id, source string) {
	t.Helper()
	doc, found, err := x.Get(t.Context(), alias, id)
	if err != nil || !found {
		t.Fatalf("%q: found %t, %v", id, found, err)
	}
	if diff := cmp.Diff(source, string(doc.Source)); diff != "" {
		t.Errorf("%q: %s", id, diff)
	}
}

// TestBlocks makes the index unavailable in each possible way and available again.
func TestBlocks(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	if err := x.Check(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	name := PhysicalIndex(t, alias)
	setting := func(block, value string) {
		admin(t, http.MethodPut, "/"+name+"/_settings", `{"index.blocks.`+block+`":`+value+`}`)
	}
	tests := []struct {
		name       string
		take, give func()
		message    string
	}{
		{
			"closed", func() { admin(t, http.MethodPost, "/"+name+"/_close", "") },
			func() { admin(t, http.MethodPost, "/"+name+"/_open?wait_for_active_shards=1", "") },
			"the index " + alias + " is closed",
		},
		{
			"write block", func() { setting("write", "true") }, func() { setting("write", "null") },
			"the index " + alias + " is blocked for writes",
		},
		{
			"read only", func() { setting("read_only", "true") }, func() { setting("read_only", "null") },
			"the index " + alias + " is blocked for writes",
		},
		{
			"full disk", func() { setting("read_only_allow_delete", "true") }, func() { setting("read_only_allow_delete", "null") },
			"the index " + alias + " accepts no writes: a disk of the index engine is over its flood-stage watermark",
		},
		{
			"alias gone", func() {
				admin(t, http.MethodDelete, "/"+name+"/_alias/"+alias, "")
			}, func() { admin(t, http.MethodPut, "/"+name+"/_alias/"+alias, "") },
			"the alias " + alias + " is missing, but an index of it exists",
		},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.take()
			// The second document brings an unknown path, the third one is deleted.
			got := write(t, x, alias, put("a", 1, `{}`), put("b", 1, fmt.Sprintf(`{"u%d":1}`, i)), remove("c", 1))
			for _, r := range got {
				if r.Outcome != core.OutcomeRetry || r.Code != core.CodeIndexBlocked {
					t.Errorf("got %+v", r)
				}
			}
			err := x.Check(t.Context(), alias)
			wantError(t, err, core.CodeIndexBlocked, tt.message)
			if errors.Is(err, core.ErrIndexMissing) {
				t.Error("an index that is there is missing")
			}
			tt.give()
			if err := x.Check(t.Context(), alias); err != nil {
				t.Fatal(err)
			}
			got = write(t, x, alias, put("a", 1, `{}`), put("b", 1, fmt.Sprintf(`{"u%d":1}`, i)), remove("c", 1))
			if diff := cmp.Diff([]core.Outcome{core.OutcomeIndexed, core.OutcomeIndexed, core.OutcomeRemoved}, outcomes(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if n, err := x.Count(t.Context(), alias, core.IndexScope{}); err != nil || n > 2 {
		t.Errorf("Check has left a document: %d, %v", n, err)
	}
}

func TestMissingAlias(t *testing.T) {
	x := cluster(t)
	alias := "test-" + uuid.NewString()
	_, _, getErr := x.Get(t.Context(), alias, "a")
	_, countErr := x.Count(t.Context(), alias, core.IndexScope{Field: "studyId", Organization: "S"})
	_, mappingErr := x.Mapping(t.Context(), alias)
	scanErr := x.Scan(t.Context(), alias, core.IndexScope{}, 0, func(string, core.Version) error { return nil })
	for _, err := range []error{getErr, countErr, mappingErr, scanErr, x.Refresh(t.Context(), alias)} {
		wantError(t, err, core.CodeIndexBlocked, "the index is missing")
	}
	wantError(t, x.Check(t.Context(), alias), core.CodeIndexBlocked, "there is no alias "+alias)
}

// TestScanManyPages scans more than one page of several organizations while documents are written.
func TestScanManyPages(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	const count = 11_000
	for from := 0; from < count; from += 1000 {
		var writes []core.Write
		for i := from; i < from+1000; i++ {
			doc := fmt.Sprintf(`{"studyId":"S%d","repositories":[{"code":"r%d","name":"x"}]}`, i%2, i%5)
			writes = append(writes, put(fmt.Sprint(i), core.Version(1763716000000000000+i), doc))
		}
		write(t, x, alias, writes...)
	}
	if err := x.Refresh(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		scope core.IndexScope
		below core.Version
		want  int
	}{
		{"all", core.IndexScope{}, 0, count},
		{"below", core.IndexScope{}, 1763716000000000000 + 7, 7},
		{"organization", core.IndexScope{Field: "studyId", Organization: "S1"}, 0, count / 2},
		{"organization and repository", core.IndexScope{Repository: "r3", Field: "studyId", Organization: "S1"}, 0, count / 10},
		{"unknown field", core.IndexScope{Field: "nope", Organization: "S1"}, 0, 0},
		{"unknown organization", core.IndexScope{Field: "studyId", Organization: "S"}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seen := map[string]bool{}
			err := x.Scan(t.Context(), alias, tt.scope, tt.below, func(id string, v core.Version) error {
				if seen[id] || fmt.Sprint(v-1763716000000000000) != id {
					t.Fatalf("%s with version %d, seen before: %t", id, v, seen[id])
				}
				seen[id] = true
				if len(seen) == 1 {
					write(t, x, alias, put(id, v, `{"studyId":"moved"}`), put(id, v, fmt.Sprintf(
						`{"studyId":"S%d","repositories":[{"code":"r%d"}]}`, v%2, (v-1763716000000000000)%5)))
				}
				return nil
			})
			if err != nil || len(seen) != tt.want {
				t.Errorf("%d documents, want %d: %v", len(seen), tt.want, err)
			}
			if tt.below != 0 {
				return
			}
			if n, err := x.Count(t.Context(), alias, tt.scope); err != nil || n != int64(tt.want) {
				t.Errorf("counted %d, want %d: %v", n, tt.want, err)
			}
		})
	}
	stop := errors.New("stop")
	if err := x.Scan(t.Context(), alias, core.IndexScope{}, 0, func(string, core.Version) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if open := admin(t, http.MethodGet, "/"+alias+"/_stats/search?filter_path=_all.total.search.open_contexts", ""); !strings.Contains(open, `"open_contexts":0`) {
		t.Errorf("points in time were left open: %s", open)
	}
}

func TestScopeNeedsAKeyword(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Mapping: json.RawMessage(
		`{"properties":{"studyId":{"type":"text"},"repositories":{"properties":{"code":{"type":"keyword"}}}}}`)})
	write(t, x, alias, put("a", 1, `{"studyId":"S","repositories":[{"code":"r"}]}`))
	if err := x.Refresh(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	_, err := x.Count(t.Context(), alias, core.IndexScope{Field: "studyId", Organization: "S"})
	wantError(t, err, core.CodeUnsupported, "the field studyId of "+alias+
		" needs the type keyword, or a sub-field of that type, to select by it")
	if n, err := x.Count(t.Context(), alias, core.IndexScope{Repository: "r"}); err != nil || n != 1 {
		t.Errorf("%d documents, %v", n, err)
	}
}

// secureNode returns the variables of the secure node of the flavour TUTTI_TEST_SECURE, and stops the node when the test ends unless it ran
// before.
func secureNode(t *testing.T) map[string]string {
	t.Helper()
	engine := "elasticsearch-8"
	if other := os.Getenv("TUTTI_TEST_SECURE"); other != "" {
		engine = other
	}
	const scripts = "../../../deploy/local/engine/"
	var out, progress strings.Builder
	start := exec.CommandContext(t.Context(), scripts+"start", "--secure", "--clean", engine)
	start.Stdout, start.Stderr = &out, &progress
	if err := start.Run(); err != nil {
		t.Fatalf("starting the secure node: %v\n%s", err, progress.String())
	}
	if strings.Contains(progress.String(), "starting on port") {
		t.Cleanup(func() {
			if text, err := exec.Command(scripts+"stop", "--secure", engine).CombinedOutput(); err != nil {
				t.Errorf("stopping the secure node: %v\n%s", err, text)
			}
		})
	}
	found := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		_, name, _ = strings.Cut(name, "_SECURE_")
		found[name] = value
	}
	return found
}

func TestSecureCluster(t *testing.T) {
	node := secureNode(t)
	url, ca, password, user := node["URL"], node["CA"], node["PASSWORD"], node["ADMIN"]
	alias := "test-" + uuid.NewString()
	x := open(t, url, func(c *elastic.Config) { c.TLS.CAFile, c.Username, c.Password = ca, user, password })
	if err := x.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	if got := write(t, x, alias, put("a", 1, `{"u":1}`)); got[0].Outcome != core.OutcomeIndexed {
		t.Errorf("got %+v", got)
	}
	refused := map[string]func(*elastic.Config){
		"none":     func(c *elastic.Config) { c.TLS.CAFile = ca },
		"password": func(c *elastic.Config) { c.TLS.CAFile, c.Username, c.Password = ca, user, password+"x" },
		"key":      func(c *elastic.Config) { c.TLS.CAFile, c.APIKey = ca, "id:key" },
	}
	for name, change := range refused {
		x := open(t, url, change)
		wantError(t, x.Ping(t.Context()), core.CodeIndexBlocked, "the index rejected the credentials")
		_, err := x.Write(t.Context(), batch(x, alias, put("a", 2, `{}`)))
		wantError(t, err, core.CodeIndexBlocked, "the index rejected the credentials")
		if strings.Contains(err.Error(), password) {
			t.Errorf("%s: the error holds the password", name)
		}
	}
	untrusted := open(t, url, func(c *elastic.Config) { c.Username, c.Password = user, password })
	wantError(t, untrusted.Ping(t.Context()), core.CodeUnavailable, "the index does not answer: its certificate is signed by an unknown authority")
	t.Run("rights", func(t *testing.T) { testRights(t, node) })
}

func BenchmarkWrite(b *testing.B) {
	x := cluster(b)
	alias := fresh(b)
	ensure(b, x, index.Spec{Alias: alias, Known: mapping.Song()})
	doc := []byte(`{"analysisId":"a","studyId":"S","analysisState":"PUBLISHED","files":[{"fileName":"` + strings.Repeat("x", 1900) + `","fileSize":1}]}`)
	const size = 1000
	documents := 0
	for b.Loop() {
		writes := make([]core.Write, size)
		for i := range writes {
			writes[i] = core.Write{ID: uuid.NewString(), Version: 1, Document: doc}
		}
		write(b, x, alias, writes...)
		documents += size
	}
	b.ReportMetric(float64(documents)/b.Elapsed().Seconds(), "documents/s")
}

// TestMissingPrimary: while one of two primaries is unassigned there is no mark and Check says so; not so afterwards.
func TestMissingPrimary(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	name := alias + "-1"
	admin(t, http.MethodPut, "/"+name+"?wait_for_active_shards=0", `{"aliases":{"`+alias+`":{}},"settings":{"number_of_shards":2,`+
		`"number_of_replicas":1,"index.routing.allocation.total_shards_per_node":1}}`)
	admin(t, http.MethodGet, "/_cluster/health/"+name+"?wait_for_active_shards=1&timeout=30s", "")
	if checkpoint, err := x.Checkpoint(t.Context(), alias); checkpoint != "" || err != nil {
		t.Errorf("with an unassigned primary: %q, %v", checkpoint, err)
	}
	wantError(t, x.Check(t.Context(), alias), core.CodeUnavailable, "a shard of the index "+alias+" does not answer")
	admin(t, http.MethodPut, "/"+name+"/_settings", `{"index.routing.allocation.total_shards_per_node":2}`)
	admin(t, http.MethodGet, "/_cluster/health/"+name+"?wait_for_status=yellow&timeout=30s", "")
	if checkpoint, err := x.Checkpoint(t.Context(), alias); checkpoint != core.CheckpointNone || err != nil {
		t.Errorf("with all primaries: %q, %v", checkpoint, err)
	}
	if err := x.Check(t.Context(), alias); err != nil {
		t.Errorf("with all primaries: %v", err)
	}
}
