package graphql_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

// reservations is a memory that notes what is reserved.
type reservations struct {
	callers []core.Caller
	steps   []int64
	refuse  bool
}

func (m *reservations) Reserve(ctx context.Context, c core.Caller, n int64) (shrink func(to int64), err error) {
	m.callers, m.steps = append(m.callers, c), append(m.steps, n)
	if m.refuse {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return func(to int64) { m.steps = append(m.steps, to) }, nil
}

// reserving returns a world with a memory, whose engine reserves so many bytes in turn.
func reserving(t *testing.T, answer []index.Hit, bytes ...int64) (*world, *reservations) {
	w, m := newWorld(t), &reservations{}
	w.service = graphql.New(view.New(w.engine, view.Config{}), graphql.Config{Memory: m})
	w.engine.answer = func(ctx context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		for _, n := range bytes {
			if err := reqs[len(reqs)-1].Reserve(ctx, n); err != nil {
				return nil, err
			}
		}
		return gives(1, answer...)(ctx, reqs)
	}
	return w, m
}

// TestResponseMemory: a response reserves what the index reads and what is written of it, shrinks to its size and releases it at its
// end; each reservation replaces the one before; a small one is not counted; nothing stays reserved after an error or a panic.
func TestResponseMemory(t *testing.T) {
	const megabyte, limit = 1 << 20, 64 << 20
	hit := index.Hit{ID: "a", Source: fmt.Appendf(nil, `{"studyId":%q}`, strings.Repeat("x", 300_000))}
	query := core.GraphQLRequest{Query: `{analysis{hits{edges{node{studyId}}}}}`, Caller: core.Caller{ID: "caller"}}
	w, m := reserving(t, []index.Hit{hit}, megabyte, 0, 200*megabyte)
	got := w.ask(query)
	want := []int64{2 * megabyte, 0, 200*megabyte + limit, int64(cap(got.Body))}
	if !slices.Equal(m.steps, want) || m.callers[0].ID != "caller" || len(got.Body) < 300_000 {
		t.Errorf("%d bytes were reserved for %v, want %d", m.steps, m.callers, want)
	}
	got.Release()
	if !slices.Equal(m.steps, append(want, 0)) {
		t.Errorf("%d bytes were reserved at the end", m.steps)
	}

	w, m = reserving(t, nil, 200_000)
	w.ask(query).Release()
	if len(m.steps) > 0 {
		t.Errorf("%d bytes were reserved for a small response", m.steps)
	}

	w, m = reserving(t, nil, megabyte)
	reserve := w.engine.answer
	w.engine.answer = func(ctx context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		_, _ = reserve(ctx, reqs)
		return nil, core.NewError(core.CodeInternal, "broken")
	}
	w.ask(query).Release()
	if m.steps[len(m.steps)-1] != 0 {
		t.Errorf("after an error %d bytes are reserved", m.steps)
	}
	w, m = reserving(t, nil, megabyte)
	reserve = w.engine.answer
	w.engine.answer = func(ctx context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		_, _ = reserve(ctx, reqs)
		panic("broken")
	}
	func() {
		defer func() { _ = recover() }()
		w.ask(query)
	}()
	if m.steps[len(m.steps)-1] != 0 {
		t.Errorf("after a panic %d bytes are reserved", m.steps)
	}
}

// TestResponseMemoryRefused: an operation for which memory is not free in 20 s is not executed, also if it has several fields.
func TestResponseMemoryRefused(t *testing.T) {
	w, m := reserving(t, nil, 1<<20)
	m.refuse = true
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w.T = t
		got := w.ask(core.GraphQLRequest{Query: `{analysis{a:hits{total} b:hits(offset:1){edges{node{studyId}}}}}`})
		if core.CodeOf(got.Overloaded) != core.CodeOverloaded || !errors.Is(got.Overloaded, context.DeadlineExceeded) || !got.Rejected ||
			got.Release != nil || time.Since(began) != 20*time.Second {
			t.Errorf("after %v: %v, rejected is %t: %s", time.Since(began), got.Overloaded, got.Rejected, got.Body)
		}
		if hint := core.HintOf(got.Overloaded); hint != "retry later, or request fewer documents" {
			t.Errorf("hint %q", hint)
		}
	})
}

// TestDocumentsAfterTheLimit: a list whose documents an engine did not read, because the response was too large before, is null with an
// error, in whatever order the lists are written.
func TestDocumentsAfterTheLimit(t *testing.T) {
	w := newWorld(t)
	w.engine.answer = func(ctx context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		return gives(2, index.Hit{ID: "a", Source: []byte(`{"studyId":"S"}`), Read: true}, index.Hit{ID: "b", Source: []byte{}, Read: true})(ctx, reqs)
	}
	got := w.ask(core.GraphQLRequest{Query: `{analysis{hits{edges{node{studyId}}}}}`})
	if body := string(got.Body); !strings.HasPrefix(body, `{"data":{"analysis":{"hits":{"edges":null}}},"errors":`) || !strings.Contains(body, "the response is too large") {
		t.Errorf("answered %s", body)
	}
}

// TestLargeDocumentsTakeTheirSize: documents that are written while the index reads them take as much memory as they have bytes, and the
// response as much again.
func TestLargeDocumentsTakeTheirSize(t *testing.T) {
	const documents, size = 10, 5_000_000 // over the size of reused buffers
	w, _ := reserving(t, nil)
	source := fmt.Appendf(nil, `{"studyId":%q}`, strings.Repeat("x", size))
	w.engine.answer = func(_ context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		hits := make([]index.Hit, documents)
		for i := range hits {
			hits[i].ID, hits[i].Read = "a", true
			hits[i].Source, _ = reqs[0].Hits.Read("a", source, 0)
		}
		return []index.SearchResult{{Total: documents, Hits: hits}}, nil
	}
	ask := func() {
		got := w.ask(core.GraphQLRequest{Query: `{analysis{hits(first:50){edges{node{studyId}}}}}`})
		if len(got.Body) < documents*size {
			t.Errorf("answered %d bytes", len(got.Body))
		}
		got.Release()
	}
	ask() // the size of documents is learned
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ask()
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 2.5*documents*size {
		t.Errorf("%d bytes were allocated for %d bytes of documents", taken, documents*size)
	}
}

// TestHistogramsKeepMemory: histograms that are requested again do not release the memory of the documents that were read before.
func TestHistogramsKeepMemory(t *testing.T) {
	const megabyte, limit = 1 << 20, 64 << 20
	w, m := reserving(t, nil)
	w.engine.answer = func(ctx context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		if reserve := reqs[0].Reserve; reserve != nil {
			if err := reserve(ctx, 200*megabyte); err != nil {
				return nil, err
			}
		}
		if w.engine.calls == 1 {
			return nil, core.NewError(core.CodeInvalid, "a histogram of count has too many intervals")
		}
		return facets(map[string]index.FacetResult{
			"count": {Stats: index.Stats{Min: -1, Max: 9999.5, Count: 2}},
			"ratio": {Stats: index.Stats{Min: 0, Max: 9999.5, Count: 2}, Histogram: []index.Interval{{Key: 2, Count: 1}}},
		})(ctx, reqs)
	}
	got := w.ask(core.GraphQLRequest{Query: `{analysis{aggregations(include_missing:false){count{histogram(interval:1){buckets{key}}}
		ratio{histogram(interval:1){buckets{key}}}}}}`})
	if want := []int64{200*megabyte + limit, 0, 200*megabyte + limit, int64(cap(got.Body))}; w.engine.calls != 3 || !slices.Equal(m.steps, want) {
		t.Errorf("%d bytes were reserved in %d calls, want %d", m.steps, w.engine.calls, want)
	}
	got.Release()
}
