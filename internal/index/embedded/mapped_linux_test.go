package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
)

// mappings returns the segment files below dir that this process maps, those that were removed since with " (deleted)".
func mappings(t *testing.T, dir string) []string {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(raw)) {
		if _, path, in := strings.Cut(strings.TrimSpace(line), filepath.Join(dir, "segments")+"/"); in {
			found = append(found, path)
		}
	}
	return found
}

// TestMappedFiles checks that the columns of segment files are pages of these files, and not in the heap: after a merge, after a start,
// and after a start without the files.
func TestMappedFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := embedded.Config{Dir: t.TempDir()}
		var x *embedded.Index
		use := func(when string, work func()) {
			t.Helper()
			var err error
			before := heapBytes()
			if x, err = embedded.Open(cfg); err != nil {
				t.Fatal(err)
			}
			work()
			synctest.Wait()
			size := int64(0)
			for _, path := range segmentFiles(t, cfg.Dir) {
				if info, err := os.Stat(path); err == nil && !info.IsDir() {
					size += info.Size()
				}
			}
			if names := mappings(t, cfg.Dir); len(names) == 0 || size < 10<<20 {
				t.Errorf("%s: %d bytes are in files, and %v are mapped", when, size, names)
			}
			if heap := heapBytes() - before; heap > size { // some documents are not in files yet
				t.Errorf("%s: the heap has %d bytes more, beside %d in files", when, heap, size)
			}
			found, err := x.Search(t.Context(), "a", []index.SearchRequest{{Facets: []index.Facet{{
				Field: query.Field{Path: "v", Type: "keyword"}, Cardinality: 40_000,
			}}}})
			if err != nil || found[0].Facets[0].Cardinality != 600_000 {
				t.Errorf("%s: the facet is %v (%v)", when, found, err)
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x = nil
		}
		use("after merges", func() {
			ensure(t, x, index.Spec{Alias: "a"})
			for n := range 20 {
				var doc strings.Builder
				for i := range 30_000 {
					fmt.Fprintf(&doc, `,"%d-%d-%s"`, n, i, strings.Repeat("x", i%40))
				}
				write(t, x, "a", put(fmt.Sprint(n), 1, `{"v":[`+doc.String()[1:]+`]}`))
			}
		})
		use("after a start", func() {})
		if err := os.RemoveAll(filepath.Join(cfg.Dir, "segments")); err != nil {
			t.Fatal(err)
		}
		use("after a start without files", func() {})
	})
}

// heapBytes returns the bytes of objects in use.
func heapBytes() int64 {
	var now runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&now)
	return int64(now.HeapAlloc)
}

// TestMappedWhileRead removes the file of a segment that a Stream is reading, which returns all documents; the file stays mapped until
// then, and no longer.
func TestMappedWhileRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := embedded.Config{Dir: t.TempDir()}
		x := open(t, cfg)
		ensure(t, x, index.Spec{Alias: "a"})
		want := map[string]string{}
		series(t, x, want, "d", moreThanMemory)
		checkSegmentFiles(t, cfg.Dir, "000000000001.segment")
		streamed := 0
		err := x.Stream(t.Context(), "a", index.StreamRequest{Source: index.Source{None: true}}, func(hits []index.Hit) error {
			if streamed == 0 {
				end(t, x, map[string]string{}, "d", 0, moreThanMemory)
				checkSegmentFiles(t, cfg.Dir)
				heapBytes()
				if names := mappings(t, cfg.Dir); len(names) != 1 || !strings.HasSuffix(names[0], "(deleted)") {
					t.Errorf("while it is read, %v are mapped", names)
				}
			}
			for _, h := range hits {
				if want[h.ID] == "" {
					return core.NewError(core.CodeInternal, "an unknown document: "+h.ID)
				}
				delete(want, h.ID)
			}
			streamed += len(hits)
			return nil
		})
		if err != nil || streamed != moreThanMemory {
			t.Errorf("%d documents (%v)", streamed, err)
		}
		for len(mappings(t, cfg.Dir)) > 0 && t.Context().Err() == nil {
			runtime.GC()
		}
	})
}
