package search_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// sink is a ResponseWriter that keeps nothing.
type sink struct {
	header  http.Header
	status  int
	written int
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) WriteHeader(status int) { s.status = status }

func (s *sink) Write(b []byte) (int, error) {
	s.written += len(b)
	return len(b), nil
}

func (s *sink) SetWriteDeadline(time.Time) error { return nil }

// twenty returns as many catalogues with a number of fields each.
func twenty(fields int) []*core.Catalogue {
	var all []*core.Catalogue
	for i := range 20 {
		all = append(all, apitest.Wide("catalogue-"+strconv.Itoa(i), fields))
	}
	return all
}

// once returns a function that gets a path, and fails unless it is answered in full.
func once(t testing.TB, h apitest.Handler, target string) func() {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "GET", target, nil)
	return func() {
		w := &sink{header: http.Header{}, status: 200}
		h.ServeHTTP(w, r)
		if length := w.header.Get("Content-Length"); w.status != 200 || length != strconv.Itoa(w.written) {
			t.Fatalf("%s: got %d, %d of %s bytes", target, w.status, w.written, length)
		}
	}
}

// TestIntrospectionCostsTheSameForAnyNumber of catalogues and fields: nothing is encoded for a request.
func TestIntrospectionCostsTheSameForAnyNumber(t *testing.T) {
	little, _ := apitest.Catalogued(t, api.Config{}, apitest.Wide("catalogue-7", 1))
	much, _ := apitest.Catalogued(t, api.Config{}, twenty(2000)...)
	for _, target := range []string{"/introspection", "/introspection/catalogue-7"} {
		a, b := testing.AllocsPerRun(100, once(t, little, target)), testing.AllocsPerRun(100, once(t, much, target))
		if b > a+10 {
			t.Errorf("%s: %.0f allocations where there is little, %.0f where there is much", target, a, b)
		}
	}
}

// TestWhatDidNotChangeIsNotMadeAgain: a new set costs what has changed in it.
func TestWhatDidNotChangeIsNotMadeAgain(t *testing.T) {
	kept := apitest.Wide("kept", 5000)
	h, s := apitest.Catalogued(t, api.Config{}, kept, apitest.Plain("a"))
	get := once(t, h, "/introspection/kept")
	get()
	if n := testing.AllocsPerRun(10, func() {
		s.Put(kept, apitest.Plain("a"))
		get()
	}); n > 1000 {
		t.Errorf("%.0f allocations after the change of another catalogue", n)
	}
	if n := testing.AllocsPerRun(2, func() {
		s.Put(apitest.Wide("kept", 5000), apitest.Plain("a"))
		get()
	}); n < 5000 {
		t.Errorf("%.0f allocations after its own change: this test measures nothing", n)
	}
}

// TestReadersWhileCataloguesChange: every answer is of one set, and a tag never stands for two bodies.
func TestReadersWhileCataloguesChange(t *testing.T) {
	h, s := apitest.Catalogued(t, api.Config{})
	version := func(n int) *core.Catalogue {
		c := apitest.Wide("c", 3)
		c.Description = "v" + strconv.Itoa(n)
		c.Fields = append(c.Fields, core.CatalogueField{Name: c.Description, DisplayName: "Version", Type: "keyword"})
		if n%5 == 4 {
			c.Fields, c.Problem = nil, &core.CatalogueProblem{Code: core.CatalogueConnectionError, Message: c.Description}
		}
		return c
	}
	s.Put(version(0))
	done := make(chan struct{})
	var readers sync.WaitGroup
	var tags sync.Map // of details, and what was described under them
	for range 8 {
		readers.Go(func() {
			for {
				if err := readVersions(h, &tags); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	kept := apitest.Plain("kept")
	for n := range 300 {
		if n%2 == 0 {
			s.Put(version(n), kept)
		} else {
			s.Put(version(n))
		}
	}
	close(done)
	readers.Wait()
	if got := apitest.MemberOf(t, apitest.Introspect(t, h, "/introspection/c", 200), "description"); got != "v299" {
		t.Errorf("in the end %v", got)
	}
}

// readVersions reads the detail and the summary once, and says what is wrong with them.
func readVersions(h apitest.Handler, tags *sync.Map) error {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/introspection/c", nil))
	var detail struct {
		Description string
		Fields      map[string]any
		Error       *core.CatalogueProblem
	}
	if err := json.Unmarshal(w.Body.Bytes(), &detail); err != nil || w.Code != 200 {
		return fmt.Errorf("got %d %s: %w", w.Code, w.Body, err)
	}
	if whole := detail.Fields[detail.Description] != nil && len(detail.Fields) == 4; whole == (detail.Error != nil) {
		return fmt.Errorf("two versions in %s", w.Body)
	}
	if first, _ := tags.LoadOrStore(w.Header().Get("ETag"), detail.Description); first != detail.Description {
		return fmt.Errorf("tag %s stands for %v and %s", w.Header().Get("ETag"), first, detail.Description)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/introspection", nil))
	var summary struct {
		CatalogCount int
		Mode         string
		Catalogs     map[string]any
	}
	if err := json.Unmarshal(w.Body.Bytes(), &summary); err != nil || len(summary.Catalogs) != summary.CatalogCount ||
		(summary.Mode == "single") != (summary.CatalogCount == 1) {
		return fmt.Errorf("got %s: %w", w.Body, err)
	}
	return nil
}

// BenchmarkCatalogueDetail is GET /introspection/{catalogueId} with 500 fields beside 19 others.
func BenchmarkCatalogueDetail(b *testing.B) {
	benchmarkGet(b, "/introspection/catalogue-7")
}

// BenchmarkCatalogueSummary is GET /introspection with 20 catalogues.
func BenchmarkCatalogueSummary(b *testing.B) {
	benchmarkGet(b, "/introspection")
}

func benchmarkGet(b *testing.B, target string) {
	b.Helper()
	h, _ := apitest.Catalogued(b, api.Config{}, twenty(500)...)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), "GET", target, nil))
	get := once(b, h, target)
	b.SetBytes(int64(w.Body.Len()))
	b.ReportAllocs()
	for b.Loop() {
		get()
	}
}
