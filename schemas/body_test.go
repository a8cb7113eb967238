package schemas_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas"
)

func TestType(t *testing.T) {
	s, store := newService(t, schemas.Config{})
	one := register(t, s, `{"name":"a","schema":`+simple+`}`)
	two := register(t, s, `{"name":"a","schema":`+simple+`,"options":{"fileTypes":["X"]}}`)
	bare := func(body string) string {
		var whole map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body), &whole); err != nil {
			t.Fatal(err)
		}
		return strings.Replace(body, string(whole["schema"]), simple, 1)
	}
	for _, c := range []struct {
		name       string
		version    int
		unrendered bool
		want       string
	}{
		{"a version", 1, false, one},
		{"a version, unrendered", 1, true, bare(one)},
		{"the latest with all versions", 0, false, two[:len(two)-1] + `,"versions":[` + two + `,` + one + `]}`},
		{"the latest with all versions, unrendered", 0, true, bare(two)[:len(bare(two))-1] + `,"versions":[` + bare(two) + `,` + bare(one) + `]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 {
				got, err := s.TypeWhole(t.Context(), "a", c.version, c.unrendered)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, string(got)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	t.Run("nothing is read twice", func(t *testing.T) {
		before := store.readCount()
		for range 10 {
			for version := range 3 {
				if _, err := s.TypeWhole(t.Context(), "a", version, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := store.readCount(); got != before {
			t.Errorf("%d reads", got-before)
		}
	})
	for _, c := range []struct {
		name, typeName string
		version        int
		message        string
	}{
		{"an unknown name", "b", 0, `there is no analysis type "b"`},
		{"an unknown version", "a", 3, `the analysis type "a" has no version 3`},
		{"a negative version", "a", -1, `the analysis type "a" has no version -1`},
		{"a version of an unknown name", "b", 1, `the analysis type "b" has no version 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.TypeWhole(t.Context(), c.typeName, c.version, false)
			wantError(t, err, core.CodeNotFound, "analysis.type.not.found", c.message)
		})
	}
}

func TestList(t *testing.T) {
	s, _ := newService(t, schemas.Config{})
	a := register(t, s, `{"name":"a","schema":`+simple+`}`)
	b := register(t, s, `{"name":"b","schema":`+simple+`}`)
	hidden := func(body string) string { return body[:strings.Index(body, `,"schema":`)] + "}" }
	for _, c := range []struct {
		name               string
		query              datamodel.AnalysisTypeQuery
		hidden, unrendered bool
		want               string
	}{
		{"newest first", datamodel.AnalysisTypeQuery{Limit: 20}, false, false, `{"limit":20,"offset":0,"count":2,"resultSet":[` + b + `,` + a + `]}`},
		{"a page", datamodel.AnalysisTypeQuery{Limit: 1, Offset: 1}, false, false, `{"limit":1,"offset":1,"count":2,"resultSet":[` + a + `]}`},
		{"behind the end", datamodel.AnalysisTypeQuery{Limit: 1, Offset: 9}, false, false, `{"limit":1,"offset":9,"count":2,"resultSet":[]}`},
		{"without schemas", datamodel.AnalysisTypeQuery{Limit: 20}, true, false, `{"limit":20,"offset":0,"count":2,"resultSet":[` + hidden(b) + `,` + hidden(a) + `]}`},
		{"unrendered", datamodel.AnalysisTypeQuery{Limit: 1}, false, true, `{"limit":1,"offset":0,"count":2,"resultSet":[` + strings.TrimSuffix(hidden(b), "}") + `,"schema":` + simple + `}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.ListWhole(t.Context(), c.query, c.hidden, c.unrendered)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func versionOf(t *testing.T, body []byte) int {
	t.Helper()
	var v struct{ Version int }
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return v.Version
}

func TestNoStaleAnswer(t *testing.T) {
	t.Run("a load that a registration overtakes is not kept", func(t *testing.T) {
		s, store := newService(t, schemas.Config{})
		register(t, s, `{"name":"a","schema":`+simple+`}`)
		store.onRead = func() { register(t, s, `{"name":"a","schema":`+simple+`}`) }
		if _, err := s.TypeWhole(t.Context(), "a", 0, false); err != nil {
			t.Fatal(err)
		}
		got, err := s.TypeWhole(t.Context(), "a", 0, false)
		if err != nil || versionOf(t, got) != 2 {
			t.Errorf("version %d, %v after version 2 was registered", versionOf(t, got), err)
		}
	})
	t.Run("under registrations and reads side by side", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{})
		var registered atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for registered.Load() < 50 {
					floor := registered.Load()
					if floor == 0 {
						continue
					}
					got, err := s.TypeWhole(t.Context(), "a", 0, false)
					if err != nil || versionOf(t, got) < int(floor) {
						t.Errorf("version %d, %v, but %d was registered before", versionOf(t, got), err, floor)
						return
					}
					ref, err := s.Validate(t.Context(), "S1", analysis("a", ""))
					if err != nil || ref.Version < int(floor) {
						t.Errorf("validated by %d, %v, but %d was registered before", ref.Version, err, floor)
						return
					}
				}
			})
		}
		for range 50 {
			register(t, s, `{"name":"a","schema":`+simple+`}`)
			registered.Add(1)
		}
		wg.Wait()
	})
	t.Run("when a store does not say whether it stored", func(t *testing.T) {
		now := fixedNow()
		s, store := newService(t, schemas.Config{Now: func() time.Time { return now }})
		register(t, s, `{"name":"a","schema":`+simple+`}`)
		store.addErr = errors.New("the connection broke")
		if _, err := s.Register(t.Context(), []byte(`{"name":"a","schema":`+simple+`}`)); !errors.Is(err, store.addErr) {
			t.Fatal(err)
		}
		ref, err := s.Validate(t.Context(), "S1", analysis("a", ""))
		if err != nil || ref.Version != 2 {
			t.Errorf("validated by %d, %v", ref.Version, err)
		}
	})
}

// TestRegistrationThatIsStoredAfterItFailed: from then on the store is asked what is the latest, for the registration may
// be seen at any time.
func TestRegistrationThatIsStoredAfterItFailed(t *testing.T) {
	now := fixedNow()
	s, store := newService(t, schemas.Config{Now: func() time.Time { return now }})
	register(t, s, `{"name":"a","schema":`+simple+`}`)
	store.addErr, store.unseen = errors.New("the connection broke"), true
	if _, err := s.Register(t.Context(), []byte(`{"name":"a","schema":`+simple+`}`)); !errors.Is(err, store.addErr) {
		t.Fatal(err)
	}
	look := func(want int) {
		t.Helper()
		ref, err := s.Validate(t.Context(), "S1", analysis("a", ""))
		if err != nil || ref.Version != want {
			t.Errorf("validated by %d, %v, want %d", ref.Version, err, want)
		}
		got, err := s.TypeWhole(t.Context(), "a", 0, false)
		if err != nil || versionOf(t, got) != want {
			t.Errorf("the latest is %d, %v, want %d", versionOf(t, got), err, want)
		}
	}
	look(1)
	second := store.types[0]
	second.Version = 2
	store.types = append(store.types, second)
	now = now.Add(time.Second)
	look(2)
}

func TestShared(t *testing.T) {
	now := fixedNow()
	store := &fakeStore{}
	cfg := schemas.Config{Shared: true, Now: func() time.Time { return now }}
	here, err := schemas.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	there, err := schemas.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	register(t, here, `{"name":"a","schema":`+simple+`}`)
	first, err := here.TypeWhole(t.Context(), "a", 0, false)
	if err != nil {
		t.Fatal(err)
	}
	register(t, there, `{"name":"a","schema":`+simple+`}`)

	t.Run("a validation asks for the latest", func(t *testing.T) {
		ref, err := here.Validate(t.Context(), "S1", analysis("a", ""))
		if err != nil || ref.Version != 2 {
			t.Errorf("validated by %d, %v", ref.Version, err)
		}
	})
	t.Run("within a second nothing is read", func(t *testing.T) {
		before := store.readCount()
		now = now.Add(999 * time.Millisecond)
		got, err := here.TypeWhole(t.Context(), "a", 0, false)
		if err != nil || string(got) != string(first) || store.readCount() != before {
			t.Errorf("%s, %v after %d reads", got, err, store.readCount()-before)
		}
	})
	t.Run("after a second the new version is there", func(t *testing.T) {
		now = now.Add(time.Millisecond)
		got, err := here.TypeWhole(t.Context(), "a", 0, false)
		if err != nil || versionOf(t, got) != 2 {
			t.Errorf("%s, %v", got, err)
		}
	})
	t.Run("an unchanged one costs one read a second", func(t *testing.T) {
		before := store.readCount()
		now = now.Add(time.Second)
		for range 10 {
			if _, err := here.TypeWhole(t.Context(), "a", 0, false); err != nil {
				t.Fatal(err)
			}
		}
		if got := store.readCount() - before; got != 1 {
			t.Errorf("%d reads, want 1", got)
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	s, store := newService(t, schemas.Config{CacheBytes: 20_000})
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		register(t, s, `{"name":"`+name+`","schema":`+simple+`}`)
	}
	before := store.readCount()
	got, err := s.TypeWhole(t.Context(), "a", 1, false)
	if err != nil || versionOf(t, got) != 1 {
		t.Fatal(err)
	}
	if store.readCount() != before+1 {
		t.Error("the first of ten bodies is still kept in a cache of a few")
	}
	if _, err := s.TypeWhole(t.Context(), "a", 1, false); err != nil || store.readCount() != before+1 {
		t.Errorf("what was used last is not kept, %v", err)
	}
}
