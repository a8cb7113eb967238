package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
)

// idOrder is the order by document id.
func idOrder() []index.Sort { return []index.Sort{{Field: query.Field{Path: "_id", Type: "keyword"}}} }

// search runs one request.
func search(t *testing.T, x *embedded.Index, alias string, req index.SearchRequest) index.SearchResult {
	t.Helper()
	results, err := x.Search(t.Context(), alias, []index.SearchRequest{req})
	if err != nil || len(results) != 1 {
		t.Fatalf("Search returned %d results and %v", len(results), err)
	}
	return results[0]
}

// streamed returns the sources of all documents of an alias by id.
func streamed(t *testing.T, x *embedded.Index, alias string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := x.Stream(t.Context(), alias, index.StreamRequest{}, func(hits []index.Hit) error {
		for _, h := range hits {
			if _, twice := all[h.ID]; twice {
				t.Errorf("the stream returned %s twice", h.ID)
			}
			all[h.ID] = string(h.Source)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkSearches compares an alias' searches with the documents that it must have.
func checkSearches(t *testing.T, x *embedded.Index, alias string, want map[string]string) {
	t.Helper()
	if got := streamed(t, x, alias); !maps.Equal(got, want) {
		t.Errorf("the stream returned %d documents, want %d: %s", len(got), len(want), difference(got, want))
	}
	got := search(t, x, alias, index.SearchRequest{Total: true, Hits: &index.HitsRequest{Sort: idOrder(), Size: 5}})
	ids := slices.Sorted(maps.Keys(want))
	if got.Total != int64(len(want)) || len(got.Hits) != min(5, len(ids)) {
		t.Fatalf("a search returned %d hits of %d, want %d of %d", len(got.Hits), got.Total, min(5, len(ids)), len(ids))
	}
	for i, h := range got.Hits {
		if h.ID != ids[i] || string(h.Source) != want[h.ID] {
			t.Errorf("hit %d is %s %s, want %s %s", i, h.ID, h.Source, ids[i], want[ids[i]])
		}
	}
}

func difference(got, want map[string]string) string {
	for id, doc := range want {
		if got[id] != doc {
			return fmt.Sprintf("%s is %q, want %q", id, got[id], doc)
		}
	}
	for id, doc := range got {
		if _, ok := want[id]; !ok {
			return fmt.Sprintf("%s is %q, want none", id, doc)
		}
	}
	return ""
}

// churn writes rounds of random writes, rewrites and deletions, and updates want.
type churn struct {
	random  *rand.Rand
	version core.Version
	want    map[string]string
}

func newChurn(seed uint64) *churn {
	return &churn{random: rand.New(rand.NewPCG(seed, 0)), want: map[string]string{}}
}

func (c *churn) round(t *testing.T, x *embedded.Index, alias string, writes, ids int) {
	t.Helper()
	var batch []core.Write
	for range writes {
		c.version++
		id := fmt.Sprint("d", c.random.IntN(ids))
		if c.random.IntN(6) == 0 {
			batch = append(batch, core.Write{Op: core.OpDelete, ID: id, Version: c.version})
			delete(c.want, id)
			continue
		}
		doc := fmt.Sprintf(`{"studyId":"S%d","n":%d}`, c.random.IntN(3), c.version)
		batch = append(batch, put(id, c.version, doc))
		c.want[id] = doc
	}
	write(t, x, alias, batch...)
}

func reopened(t *testing.T, x *embedded.Index, cfg embedded.Config) *embedded.Index {
	t.Helper()
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, cfg)
}

// TestSearchFollowsWrites checks that searches and streams return the last written documents, after each batch and each start.
func TestSearchFollowsWrites(t *testing.T) {
	cfg := embedded.Config{Dir: t.TempDir()}
	x := open(t, cfg)
	for _, alias := range []string{"a", "b"} {
		ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	}
	checkSearches(t, x, "a", nil)
	a, b := newChurn(1), newChurn(2)
	for round := range 60 {
		a.round(t, x, "a", 1+a.random.IntN(40), 300)
		if round%3 == 0 {
			b.round(t, x, "b", 1+b.random.IntN(400), 2000)
		}
		checkSearches(t, x, "a", a.want)
		if round%20 == 19 {
			checkSearches(t, x, "b", b.want)
			x = reopened(t, x, cfg)
		}
	}
	checkSearches(t, x, "a", a.want)
	checkSearches(t, x, "b", b.want)
}

// TestSearchIsASnapshot checks that searches and streams never see a partial transaction, nor the source of another version, while
// all documents are being rewritten.
func TestSearchIsASnapshot(t *testing.T) {
	const documents, rounds = 40, 120
	x := open(t, embedded.Config{})
	ensure(t, x, index.Spec{Alias: "a"})
	round := func(n int) {
		var writes []core.Write
		for i := range documents {
			writes = append(writes, put(fmt.Sprint("d", i), core.Version(n), fmt.Sprintf(`{"n":%d,"id":"d%d"}`, n, i)))
		}
		write(t, x, "a", writes...)
	}
	round(1)
	check := func(hits []index.Hit, before int) int {
		n := before
		for _, h := range hits {
			var doc struct {
				N  int
				ID string
			}
			if err := json.Unmarshal(h.Source, &doc); err != nil || doc.ID != h.ID || n != 0 && doc.N != n {
				t.Errorf("%s of round %d is %s (%v)", h.ID, n, h.Source, err)
			}
			n = doc.N
		}
		return n
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			for last := 0; ; {
				select {
				case <-done:
					return
				default:
				}
				now, got := 0, 0
				if i%2 == 0 {
					hits := search(t, x, "a", index.SearchRequest{Hits: &index.HitsRequest{Size: 2 * documents}}).Hits
					now, got = check(hits, 0), len(hits)
				} else if err := x.Stream(t.Context(), "a", index.StreamRequest{}, func(hits []index.Hit) error {
					now, got = check(hits, now), got+len(hits)
					return nil
				}); err != nil {
					t.Error(err)
				}
				if got != documents || now < last {
					t.Errorf("%d documents of round %d after round %d", got, now, last)
				}
				last = now
			}
		})
	}
	for n := 2; n <= rounds; n++ {
		round(n)
		hits := search(t, x, "a", index.SearchRequest{Hits: &index.HitsRequest{Size: 1}}).Hits
		if got := check(hits, 0); got != n {
			t.Errorf("after round %d was acknowledged, a search returned round %d", n, got)
		}
	}
	close(done)
	readers.Wait()
}

// TestStreamIsASnapshot checks that a stream returns what existed when it started, and that other calls can be made from its
// callback.
func TestStreamIsASnapshot(t *testing.T) {
	x := open(t, embedded.Config{})
	ensure(t, x, index.Spec{Alias: "a"})
	want := map[string]string{}
	var writes []core.Write
	for i := range 3000 {
		id := fmt.Sprintf("d%04d", i)
		want[id] = fmt.Sprintf(`{"n":%d}`, i)
		writes = append(writes, put(id, 1, want[id]))
	}
	write(t, x, "a", writes...)
	got := map[string]string{}
	err := x.Stream(t.Context(), "a", index.StreamRequest{Sort: idOrder()}, func(hits []index.Hit) error {
		if len(got) == 0 {
			for i := range writes {
				writes[i].Version, writes[i].Document = 2, []byte(`{"n":-1}`)
			}
			write(t, x, "a", writes[:2000]...)
			write(t, x, "a", core.Write{Op: core.OpDelete, ID: "d2500", Version: 3})
		}
		for _, h := range hits {
			got[h.ID] = string(h.Source)
		}
		if total := search(t, x, "a", index.SearchRequest{Total: true}).Total; total != 2999 {
			t.Errorf("a search within the stream returned %d documents", total)
		}
		_, _, err := x.Get(t.Context(), "a", hits[0].ID)
		return err
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v; %s", err, difference(got, want))
	}
	stop := errors.New("enough")
	calls := 0
	err = x.Stream(t.Context(), "a", index.StreamRequest{}, func([]index.Hit) error { calls++; return stop })
	if err != stop || calls != 1 { //nolint:errorlint // returned unwrapped
		t.Errorf("a stopped stream returned %v after %d calls", err, calls)
	}
	if err := x.Stream(t.Context(), "a", index.StreamRequest{Source: index.Source{None: true}}, func(hits []index.Hit) error {
		for _, h := range hits {
			if h.Source != nil {
				t.Errorf("%s has a source", h.ID)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestSearchRefuses(t *testing.T) {
	x := open(t, embedded.Config{})
	ensure(t, x, index.Spec{Alias: "a"})
	write(t, x, "a", put("x", 1, `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ask := []index.SearchRequest{{Hits: &index.HitsRequest{Size: 1}}}
	calls := func(ctx context.Context, alias string) map[string]error {
		_, err := x.Search(ctx, alias, ask)
		return map[string]error{
			"Search": err,
			"Stream": x.Stream(ctx, alias, index.StreamRequest{}, func([]index.Hit) error { return nil }),
		}
	}
	for name, err := range calls(t.Context(), "none") {
		if core.CodeOf(err) != core.CodeIndexBlocked || core.MessageOf(err) != `the index "none" does not exist` || !errors.Is(err, core.ErrIndexMissing) {
			t.Errorf("%s of a missing alias returned %v", name, err)
		}
	}
	for name, err := range calls(ctx, "a") {
		if core.CodeOf(err) != core.CodeUnavailable || !errors.Is(err, context.Canceled) {
			t.Errorf("%s that was cancelled returned %v", name, err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range calls(t.Context(), "a") {
		if core.CodeOf(err) != core.CodeUnavailable || !strings.Contains(core.MessageOf(err), "the index is closed") {
			t.Errorf("%s after Close returned %v", name, err)
		}
	}
}

// TestTopHitsHaveSources checks that the top hits of buckets have their sources.
func TestTopHitsHaveSources(t *testing.T) {
	x := open(t, embedded.Config{})
	ensure(t, x, index.Spec{Alias: "a", Known: mapping.Song()})
	c := newChurn(3)
	c.round(t, x, "a", 200, 100)
	field := query.Field{Path: "studyId", Type: "keyword"}
	req := index.SearchRequest{Facets: []index.Facet{{Field: field}, {Field: field, Buckets: &index.Buckets{Max: 10, TopHits: 3}}}}
	buckets := search(t, x, "a", req).Facets[1].Buckets
	if len(buckets) != 3 {
		t.Fatalf("%d buckets, want 3", len(buckets))
	}
	for _, b := range buckets {
		if len(b.TopHits) != 3 {
			t.Errorf("bucket %s has %d hits", b.Key, len(b.TopHits))
		}
		for _, h := range b.TopHits {
			if string(h.Source) != c.want[h.ID] || !strings.Contains(string(h.Source), `"studyId":"`+b.Key+`"`) {
				t.Errorf("bucket %s has %s %s, want %s", b.Key, h.ID, h.Source, c.want[h.ID])
			}
		}
	}
	req.Facets[1].Buckets.TopSource.None = true
	for _, b := range search(t, x, "a", req).Facets[1].Buckets {
		for _, h := range b.TopHits {
			if h.Source != nil {
				t.Errorf("%s has a source", h.ID)
			}
		}
	}
}
