package schemas_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/tools/testkit"
	"tutti/schemas"
)

// fill stores versions 1 to n of a name whose schemas have about so many bytes.
func fill(s *fakeStore, name string, n, size int) {
	for v := range n {
		s.types = append(s.types, datamodel.AnalysisType{
			Name: name, Version: v + 1, CreatedAt: fixedNow(),
			Schema: json.RawMessage(`{"type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"}},"$comment":"` + strings.Repeat("x", size) + `"}`),
		})
	}
}

// pieces returns the items of a stream.
func pieces(t *testing.T, stream func(each func([]byte) error) error) []string {
	t.Helper()
	var all []string
	if err := stream(func(piece []byte) error {
		all = append(all, string(piece))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLargeBodiesAreStreamed: one that is too large to be kept is given version by version.
func TestLargeBodiesAreStreamed(t *testing.T) {
	const versions, size = 30, 50_000
	s, store := newService(t, schemas.Config{CacheBytes: 400_000})
	fill(store, "a", versions, size)
	for range 2 { // the second time it is known to be too large
		got := pieces(t, func(each func([]byte) error) error { return s.Type(t.Context(), "a", 0, false, each) })
		longest := slices.MaxFunc(got, func(a, b string) int { return len(a) - len(b) })
		if len(longest) > size+2000 {
			t.Errorf("a piece of %d bytes", len(longest))
		}
		var body struct {
			Version  int
			Versions []struct{ Version int }
		}
		if err := json.Unmarshal([]byte(strings.Join(got, "")), &body); err != nil {
			t.Fatal(err)
		}
		if body.Version != versions || len(body.Versions) != versions || body.Versions[0].Version != versions || body.Versions[versions-1].Version != 1 {
			t.Errorf("got %+v", body)
		}
	}
	t.Run("and so far as it is read", func(t *testing.T) {
		before, stop := store.readCount(), errors.New("enough")
		err := s.Type(t.Context(), "a", 0, false, func([]byte) error { return stop })
		if !errors.Is(err, stop) || store.readCount() > before+1 {
			t.Errorf("%v after %d reads", err, store.readCount()-before)
		}
	})
	t.Run("what is small is given whole", func(t *testing.T) {
		fill(store, "b", 3, 100)
		if got := pieces(t, func(each func([]byte) error) error { return s.Type(t.Context(), "b", 0, false, each) }); len(got) != 1 {
			t.Errorf("%d pieces", len(got))
		}
	})
	t.Run("a new version is seen", func(t *testing.T) {
		register(t, s, `{"name":"a","schema":`+simple+`}`)
		got, err := s.TypeWhole(t.Context(), "a", 0, false)
		if err != nil || versionOf(t, got) != versions+1 {
			t.Errorf("version %d, %v", versionOf(t, got), err)
		}
	})
}

// TestListsAreReadInParts: of large rows a few at once, of small ones many.
func TestListsAreReadInParts(t *testing.T) {
	for _, c := range []struct {
		name        string
		rows, size  int
		limit, want int
		pages       []int
	}{
		{"large rows", 12, 1 << 20, 1000, 12, []int{4, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"small rows", 300, 100, 1000, 300, []int{4, 100, 100, 100}},
		{"a limit", 300, 100, 20, 20, []int{4, 16}},
		{"a small limit", 300, 100, 3, 3, []int{3}},
		{"no limit", 7, 100, 0, 7, []int{4, 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, store := newService(t, schemas.Config{})
			fill(store, "a", c.rows, c.size)
			got := pieces(t, func(each func([]byte) error) error {
				return s.List(t.Context(), datamodel.AnalysisTypeQuery{Limit: c.limit}, true, false, each)
			})
			var body struct {
				Limit, Count int
				ResultSet    []struct{ Version int }
			}
			if err := json.Unmarshal([]byte(strings.Join(got, "")), &body); err != nil {
				t.Fatal(err)
			}
			if body.Limit != c.limit || body.Count != c.rows || len(body.ResultSet) != c.want {
				t.Errorf("limit %d, count %d, %d rows", body.Limit, body.Count, len(body.ResultSet))
			}
			for i, row := range body.ResultSet {
				if row.Version != c.rows-i {
					t.Fatalf("row %d is version %d", i, row.Version)
				}
			}
			if diff := cmp.Diff(c.pages, store.pages); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a registration between two parts", func(t *testing.T) {
		s, store := newService(t, schemas.Config{})
		fill(store, "a", 9, 100)
		store.onList = func() {
			store.onList = nil
			fill(store, "b", 1, 100) // the store is locked
		}
		got, err := s.ListWhole(t.Context(), datamodel.AnalysisTypeQuery{Limit: 9}, true, false)
		if err != nil {
			t.Fatal(err)
		}
		var body struct{ ResultSet []struct{ Version int } }
		if err := json.Unmarshal(got, &body); err != nil {
			t.Fatal(err)
		}
		if versions := fmt.Sprint(body.ResultSet); versions != "[{9} {8} {7} {6} {5} {4} {3} {2} {1}]" {
			t.Errorf("got %s", versions)
		}
	})
}

// TestWhoWaitsForALoadIsLetGo by the end of its own ctx, while the load goes on for the others.
func TestWhoWaitsForALoadIsLetGo(t *testing.T) {
	s, store := newService(t, schemas.Config{})
	fill(store, "a", 1, 100)
	loading, release := make(chan struct{}), make(chan struct{})
	store.onRead = func() {
		close(loading)
		<-release
	}
	first := make(chan error, 1)
	go func() {
		_, err := s.TypeWhole(t.Context(), "a", 1, false)
		first <- err
	}()
	<-loading
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() {
		_, err := s.TypeWhole(ctx, "a", 1, false)
		second <- err
	}()
	cancel()
	select {
	case err := <-second:
		wantError(t, err, core.CodeUnavailable, "", "the check was canceled")
	case <-time.After(testkit.HangLimit):
		t.Error("a caller that left is still waiting")
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if store.readCount() != 1 {
		t.Errorf("%d reads", store.readCount())
	}
}

// TestLoadThatPanics is an error to who waits for it.
func TestLoadThatPanics(t *testing.T) {
	s, store := newService(t, schemas.Config{})
	fill(store, "a", 1, 100)
	store.onRead = func() { panic("a secret") }
	_, err := s.TypeWhole(t.Context(), "a", 1, false)
	wantError(t, err, core.CodeInternal, "", "an internal error occurred")
	if strings.Contains(core.MessageOf(err), "secret") {
		t.Error("the message shows the panic")
	}
}
