package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"tutti/internal/base/budget"
	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
)

// memory records what is acquired and how much is held.
type memory struct {
	mu      sync.Mutex
	held    int64
	callers []string
	refuse  error
}

func (m *memory) Acquire(_ context.Context, c core.Caller, n int64) (release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse != nil {
		return nil, m.refuse
	}
	m.held += n
	m.callers = append(m.callers, c.ID)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.held -= n
	}, nil
}

const (
	smallDocument = 100 << 10
	bigDocument   = 700 << 10
)

// openLarge returns an index with n documents of smallDocument and n of bigDocument bytes in turn, which the index compresses, or not.
func openLarge(t *testing.T, m core.Memory, n int, compressed bool) *embedded.Index {
	t.Helper()
	x := open(t, embedded.Config{Memory: m})
	ensure(t, x, index.Spec{Alias: "a"})
	for i := range 2 * n {
		size := []int{smallDocument, bigDocument}[i%2]
		text := strings.Repeat("0123456789abcdef", size/16)
		if !compressed {
			var b strings.Builder
			for j := uint64(i); b.Len() < size; j++ {
				fmt.Fprintf(&b, "%016x", j*0x9e3779b97f4a7c15)
			}
			text = b.String()
		}
		write(t, x, "a", put(fmt.Sprintf("d%02d", i), 1, fmt.Sprintf(`{"n":%d,"text":"%s","list":[{"a":1,"b":"%d"}]}`, i, text, i)))
	}
	return x
}

// TestStreamIsBoundedByBytes: the documents of a batch are a few, or one large document, for which memory is held; what is requested of a
// large one is passed on without it.
func TestStreamIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	const n = 6
	for _, compressed := range []bool{true, false} {
		for name, c := range map[string]struct {
			paths []string
			// whole is set if large documents are passed on.
			whole bool
		}{
			"whole documents": {nil, true},
			"small columns":   {[]string{"n", "list.b"}, false},
			"a large column":  {[]string{"text"}, true},
		} {
			t.Run(fmt.Sprintf("%s, compressed %t", name, compressed), func(t *testing.T) {
				t.Parallel()
				m := &memory{}
				x := openLarge(t, m, n, compressed)
				var got []string
				var before []index.Hit
				req := index.StreamRequest{Source: index.Source{Paths: c.paths}, Caller: core.Caller{ID: "c"}}
				err := x.Stream(t.Context(), "a", req, func(hits []index.Hit) error {
					bytes := 0
					for _, hit := range before {
						if hit.Source != nil {
							t.Errorf("document %s is kept after its batch", hit.ID)
						}
					}
					before = hits
					for _, hit := range hits {
						bytes += len(hit.Source)
						got = append(got, hit.ID+" "+gjson.GetBytes(hit.Source, "n").Raw+gjson.GetBytes(hit.Source, "list.0.b").Raw)
						if c.paths != nil && c.paths[0] == "text" && len(gjson.GetBytes(hit.Source, "text").Raw) < smallDocument {
							t.Errorf("document %s is %.100s", hit.ID, hit.Source)
						}
					}
					whole := bytes > bigDocument
					if len(hits) > 1 && bytes > 512<<10 || whole && (!c.whole || len(hits) > 1 || m.held < 2*int64(bytes)) {
						t.Errorf("a batch of %d documents with %d bytes, while %d bytes are held", len(hits), bytes, m.held)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != 2*n || !slices.IsSorted(got) || m.held != 0 || len(m.callers) != n || m.callers[0] != "c" {
					t.Errorf("%d bytes are held, acquired by %v; documents %v", m.held, m.callers, got)
				}
				if c.paths == nil && got[3] != `d03 3"3"` {
					t.Errorf("documents %v", got)
				}
			})
		}
	}
}

// TestReadersTakeMemory: each way to read a large document acquires memory first and releases it, also without it.
func TestReadersTakeMemory(t *testing.T) {
	t.Parallel()
	m := &memory{}
	x := openLarge(t, m, 2, true)
	enough := errors.New("enough")
	search := func(hits *index.HitsRequest) error {
		results, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: hits}})
		if err == nil && (len(results[0].Hits) != 4 || !json.Valid(results[0].Hits[1].Source) || gjson.GetBytes(results[0].Hits[3].Source, "n").Raw != "3") {
			return fmt.Errorf("the hits are %.300v", results)
		}
		return err
	}
	for name, c := range map[string]struct {
		read func() error
		want error
	}{
		"stream": {func() error {
			return x.Stream(t.Context(), "a", index.StreamRequest{}, func([]index.Hit) error { return nil })
		}, nil},
		"ended stream": {func() error {
			return x.Stream(t.Context(), "a", index.StreamRequest{}, func(hits []index.Hit) error {
				if len(hits[0].Source) >= bigDocument {
					return enough
				}
				return nil
			})
		}, enough},
		"documents": {func() error {
			return x.GetAll(t.Context(), "a", []string{"d00", "d01", "d02", "d03"}, func(i int, doc core.StoredDocument, found bool) {
				if !found || gjson.GetBytes(doc.Source, "n").Int() != int64(i) || i%2 == 1 && m.held < bigDocument {
					t.Errorf("document %d: %t, %.50s, %d bytes are held", i, found, doc.Source, m.held)
				}
			})
		}, nil},
		"hits":            {func() error { return search(&index.HitsRequest{Size: 10}) }, nil},
		"columns of hits": {func() error { return search(&index.HitsRequest{Size: 10, Source: index.Source{Paths: []string{"n"}}}) }, nil},
		"hits that are read": {func() error {
			return search(&index.HitsRequest{Size: 10, Read: func(id string, data []byte, at int) ([]byte, int) {
				if id == "d02" {
					return nil, at
				}
				return fmt.Appendf(nil, `{"n":%d}`, gjson.GetBytes(data[at:], "n").Int()), len(data)
			}})
		}, nil},
	} {
		m.callers = nil
		if err := c.read(); !errors.Is(err, c.want) || len(m.callers) == 0 || m.held != 0 {
			t.Errorf("%s: %v; acquired by %v, %d bytes are held", name, err, m.callers, m.held)
		}
		m.refuse = core.NewError(core.CodeOverloaded, "no memory")
		if err := c.read(); core.CodeOf(err) != core.CodeOverloaded {
			t.Errorf("%s without memory: %v", name, err)
		}
		m.refuse = nil
	}
}

// TestManyReadersOfLargeDocuments: readers at once wait for each other's memory, also for documents larger than all of it, and each reads
// all; clients that do not read on delay only other anonymous clients.
func TestManyReadersOfLargeDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bytes, err := budget.New(5*3*bigDocument, func() {}) // one large document at once
		if err != nil {
			t.Fatal(err)
		}
		x := openLarge(t, bytes.Reads, 3, true)
		stream := func(caller core.Caller, each func()) {
			read := 0
			err := x.Stream(t.Context(), "a", index.StreamRequest{Caller: caller}, func(hits []index.Hit) error {
				if read += len(hits); len(hits[0].Source) > bigDocument {
					each()
				}
				return nil
			})
			if err != nil || read != 6 {
				t.Errorf("%v of %d documents were read: %v", caller, read, err)
			}
		}
		var slow, others sync.WaitGroup
		goOn := make(chan struct{})
		for i := range 2 {
			slow.Go(func() { stream(core.Caller{ID: fmt.Sprint("slow ", i)}, func() { <-goOn }) })
		}
		synctest.Wait()
		for range 3 { // the process itself, a search and a token do not wait for slow clients
			others.Go(func() { stream(core.Caller{}, func() {}) })
			others.Go(func() { stream(core.Caller{ID: "token", Known: true}, func() {}) })
			others.Go(func() {
				if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 6}}}); err != nil {
					t.Error(err)
				}
			})
		}
		others.Wait()
		var waiting sync.WaitGroup
		for i := range 4 {
			waiting.Go(func() { stream(core.Caller{ID: fmt.Sprint("client ", i)}, func() {}) })
		}
		synctest.Wait()
		close(goOn)
		slow.Wait()
		waiting.Wait()
	})
}

// TestProjection: of a large document, a stream passes on at least what is at the requested paths, and nothing that is on none of them.
func TestProjection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c d", "ä"}
		var value func(depth int) any
		value = func(depth int) any {
			switch kind := rapid.IntRange(0, 6).Draw(t, "kind"); {
			case depth < 3 && kind < 3:
				object := map[string]any{}
				for _, name := range names {
					if rapid.Bool().Draw(t, name) {
						object[name] = value(depth + 1)
					}
				}
				return object
			case depth < 3 && kind < 5:
				list := []any{}
				for range rapid.IntRange(0, 3).Draw(t, "items") {
					list = append(list, value(depth+1))
				}
				return list
			case kind == 5:
				return nil
			default:
				return rapid.SampledFrom([]any{"x", "{\"[,\\", 1.5, true, ""}).Draw(t, "scalar")
			}
		}
		document := map[string]any{"a": value(1), "b": value(1), "c d": value(1), "never": []any{1.0, "x"}}
		raw, err := json.MarshalIndent(document, "", rapid.SampledFrom([]string{"", " "}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for range rapid.IntRange(1, 3).Draw(t, "paths") {
			paths = append(paths, strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(t, "path"), "."))
		}
		got, fits := embedded.Project(paths, raw, 2*len(raw))
		if !fits || !json.Valid(got) {
			t.Fatalf("%t: %v of %s: %s", fits, paths, raw, got)
		}
		if gjson.GetBytes(got, "never").Exists() {
			t.Errorf("%v of %s: %s", paths, raw, got)
		}
		for _, path := range paths {
			if want, have := leavesAt(document, path), leavesAt(decoded(t, got), path); fmt.Sprint(want) != fmt.Sprint(have) {
				t.Errorf("%s of %s: %v instead of %v", path, got, have, want)
			}
		}
		if small, fits := embedded.Project(paths, raw, len(got)-1); fits {
			t.Errorf("%s fits into %d bytes", small, len(got)-1)
		}
	})
}

func decoded(t *rapid.T, raw []byte) (value any) {
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// leavesAt returns the values at a path, with arrays flattened.
func leavesAt(value any, path string) (found []any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			found = append(found, leavesAt(item, path)...)
		}
	case map[string]any:
		if path == "" {
			return []any{value}
		}
		name, rest, _ := strings.Cut(path, ".")
		if child, has := value[name]; has {
			found = leavesAt(child, rest)
		}
	default:
		if path == "" {
			return []any{value}
		}
	}
	return found
}

// TestWideDocumentsAreFiled: documents with large columns are written to a segment file long before they are many.
func TestWideDocumentsAreFiled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := embedded.Config{Dir: t.TempDir()}
		x := open(t, cfg)
		ensure(t, x, index.Spec{Alias: "a"})
		for i := range 40 {
			var values strings.Builder
			for j := range 25_000 {
				fmt.Fprintf(&values, `,"value %d of %d"`, j, i)
			}
			write(t, x, "a", put(fmt.Sprint(i), 1, `{"v":["x"`+values.String()+`]}`))
			synctest.Wait()
		}
		if files := segmentFiles(t, cfg.Dir); len(files) == 0 {
			t.Error("there are no segment files")
		}
	})
}

// TestSearchReserves: a search reserves memory for the counts of its facets, then for its documents before it reads one, of all its
// requests together; a refusal ends it; no document is read after one that is not needed.
func TestSearchReserves(t *testing.T) {
	t.Parallel()
	m := &memory{}
	const n = 4
	x := openLarge(t, m, n, true)
	const documents = n * (smallDocument + bigDocument)
	field := query.Field{Path: "n", Type: "long"}
	var reserved []int64
	var refused error
	reserve := func(_ context.Context, bytes int64) error {
		if len(m.callers) > 0 {
			t.Errorf("%d bytes are reserved after a document was read", bytes)
		}
		reserved = append(reserved, bytes)
		return refused
	}
	read := 0
	request := func(source index.Source, facets ...index.Facet) index.SearchRequest {
		return index.SearchRequest{
			Hits: &index.HitsRequest{Size: 100, Source: source, Read: func(string, []byte, int) ([]byte, int) {
				if read++; read >= 3 {
					return []byte{}, 0
				}
				return []byte("{}"), 0
			}}, Facets: facets, Reserve: reserve,
		}
	}
	buckets := index.Facet{Field: field, Buckets: &index.Buckets{Max: 2, Filters: []*query.Node{nil}}}
	for name, c := range map[string]struct {
		reqs []index.SearchRequest
		want func(reserved []int64) bool
	}{
		"facets": {
			[]index.SearchRequest{request(index.Source{None: true}, buckets, index.Facet{Field: field, Cardinality: 100}, index.Facet{Field: field, Stats: true})},
			func(got []int64) bool { return len(got) == 1 && got[0] == 2*n*(8+16+8+8) },
		},
		"documents": {
			[]index.SearchRequest{request(index.Source{}), request(index.Source{Paths: []string{"n"}})},
			func(got []int64) bool {
				return len(got) == 2 && got[0] == 0 && got[1] > 2*documents && got[1] < 2*documents+4000
			},
		},
	} {
		read, reserved, refused, m.callers = 0, nil, nil, nil
		results, err := x.Search(t.Context(), "a", c.reqs)
		if err != nil || !c.want(reserved) {
			t.Errorf("%s: %d bytes were reserved (%v)", name, reserved, err)
		}
		if name == "documents" {
			for i, hit := range results[0].Hits {
				if want := []string{"{}", "{}", ""}[min(i, 2)]; !hit.Read || string(hit.Source) != want {
					t.Errorf("document %d is %.100q, want %q", i, hit.Source, want)
				}
			}
			if read != 4 { // three of the first request, one of the second
				t.Errorf("%d documents were read", read)
			}
		}
		m.callers, refused = nil, core.NewError(core.CodeOverloaded, "none is free")
		if _, err := x.Search(t.Context(), "a", c.reqs); !errors.Is(err, refused) || len(m.callers) > 0 {
			t.Errorf("%s: a refused search read documents of %v (%v)", name, m.callers, err)
		}
	}
}
