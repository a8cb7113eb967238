package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

const schema = `{"type":"object", "required":["experiment"],"title":"ü <&>"}`

func register(t *testing.T, s *store.Store, name string, options datamodel.AnalysisOptions) datamodel.AnalysisType {
	t.Helper()
	added, err := s.AddAnalysisType(t.Context(), name, func(*datamodel.AnalysisType) (datamodel.AnalysisType, error) {
		return datamodel.AnalysisType{Options: options, Schema: json.RawMessage(schema)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func TestAddAnalysisType(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		at := time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.FixedZone("east", 3600))
		want := datamodel.AnalysisType{
			Name: "variantCall", Version: 1, CreatedAt: time.Date(2026, 5, 4, 2, 2, 1, 123456000, time.UTC),
			Options: datamodel.AnalysisOptions{FileTypes: []string{"VCF"}, ExternalValidations: []datamodel.ExternalValidation{{URL: "u", JSONPath: "$.a"}}},
			Schema:  json.RawMessage(schema),
		}
		first, err := s.AddAnalysisType(t.Context(), "variantCall", func(previous *datamodel.AnalysisType) (datamodel.AnalysisType, error) {
			if previous != nil {
				t.Errorf("the first version got a previous one: %+v", previous)
			}
			return datamodel.AnalysisType{Name: "other", Version: 9, CreatedAt: at, Options: want.Options, Schema: want.Schema}, nil
		})
		if diff := cmp.Diff(want, first); diff != "" || err != nil {
			t.Fatal(err, diff)
		}
		before := time.Now().Truncate(time.Microsecond)
		second, err := s.AddAnalysisType(t.Context(), "variantCall", func(previous *datamodel.AnalysisType) (datamodel.AnalysisType, error) {
			if diff := cmp.Diff(&want, previous); diff != "" {
				t.Error(diff)
			}
			return datamodel.AnalysisType{Schema: previous.Schema}, nil
		})
		if err != nil || second.Version != 2 || second.CreatedAt.Before(before) || second.CreatedAt.After(time.Now()) {
			t.Fatal(err, second)
		}
		for version, want := range map[int]datamodel.AnalysisType{0: second, 1: first, 2: second} {
			got, err := s.AnalysisType(t.Context(), "variantCall", version)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("version %d: %v %s", version, err, diff)
			}
		}
	})
}

func TestAnalysisTypeOptions(t *testing.T) {
	for name, options := range map[string]datamodel.AnalysisOptions{
		"never given": {},
		"cleared":     {FileTypes: []string{}, ExternalValidations: []datamodel.ExternalValidation{}},
		"one cleared": {FileTypes: []string{}},
		"given":       {FileTypes: []string{"a<b>", "\x00ü"}, ExternalValidations: []datamodel.ExternalValidation{{URL: "https://h/?a={study}&b={value}", JSONPath: "a[*].b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Databases(t, func(t *testing.T, s *store.Store) {
				added := register(t, s, "a", options)
				got, err := s.AnalysisType(t.Context(), "a", 0)
				if diff := cmp.Diff(options, got.Options); diff != "" || err != nil {
					t.Error(err, diff)
				}
				if diff := cmp.Diff(options, added.Options); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestAddAnalysisTypeRefused(t *testing.T) {
	refusal := core.NewError(core.CodeForbidden, "no")
	answer := func(a datamodel.AnalysisType, err error) func(*datamodel.AnalysisType) (datamodel.AnalysisType, error) {
		return func(*datamodel.AnalysisType) (datamodel.AnalysisType, error) { return a, err }
	}
	for name, tt := range map[string]struct {
		name    string
		next    func(*datamodel.AnalysisType) (datamodel.AnalysisType, error)
		code    core.Code
		message string
	}{
		"by next":          {"a", answer(datamodel.AnalysisType{}, refusal), core.CodeForbidden, "no"},
		"no schema":        {"a", answer(datamodel.AnalysisType{}, nil), core.CodeInvalid, "the schema of the analysis type is not valid JSON"},
		"not UTF-8 schema": {"a", answer(datamodel.AnalysisType{Schema: json.RawMessage("\"\xff\"")}, nil), core.CodeInvalid, "the schema of the analysis type is not valid JSON"},
		"zero byte":        {"a\x00", answer(datamodel.AnalysisType{}, nil), core.CodeInvalid, "the name of an analysis type must be UTF-8 without zero bytes"},
		"panic": {
			"a", func(*datamodel.AnalysisType) (datamodel.AnalysisType, error) { panic("oh") }, core.CodeInternal, "an internal error occurred",
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Databases(t, func(t *testing.T, s *store.Store) {
				added, err := s.AddAnalysisType(t.Context(), tt.name, tt.next)
				wantError(t, err, tt.code, tt.message)
				if name == "by next" && !errors.Is(err, refusal) {
					t.Errorf("got %v, not the error of next", err)
				}
				if diff := cmp.Diff(datamodel.AnalysisType{}, added); diff != "" {
					t.Error(diff)
				}
				if after := register(t, s, "a", datamodel.AnalysisOptions{}); after.Version != 1 {
					t.Errorf("the refused registration took a version: the next is %d", after.Version)
				}
			})
		})
	}
}

func TestAnalysisTypeNotFound(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		register(t, s, "a", datamodel.AnalysisOptions{})
		for name, tt := range map[string]struct {
			name    string
			version int
			message string
		}{
			"name":      {"b", 0, `there is no analysis type "b"`},
			"case":      {"A", 0, `there is no analysis type "A"`},
			"version":   {"a", 2, `there is no version 2 of an analysis type "a"`},
			"negative":  {"a", -1, `there is no version -1 of an analysis type "a"`},
			"zero byte": {"a\x00", 1, `there is no version 1 of an analysis type "a\x00"`},
		} {
			t.Run(name, func(t *testing.T) {
				_, err := s.AnalysisType(t.Context(), tt.name, tt.version)
				wantError(t, err, core.CodeNotFound, tt.message)
			})
		}
	})
}

func TestListAnalysisTypes(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		for _, name := range []string{"b", "a", "B", "a", "b", "a", "é"} {
			register(t, s, name, datamodel.AnalysisOptions{})
		}
		for name, tt := range map[string]struct {
			query datamodel.AnalysisTypeQuery
			want  string
			total int
		}{
			"newest first":        {datamodel.AnalysisTypeQuery{}, "é1 a3 b2 a2 B1 a1 b1", 7},
			"oldest first":        {datamodel.AnalysisTypeQuery{Descending: true}, "b1 a1 B1 a2 b2 a3 é1", 7},
			"by name":             {datamodel.AnalysisTypeQuery{Sort: []string{"name"}}, "B1 a3 a2 a1 b2 b1 é1", 7},
			"by name, down":       {datamodel.AnalysisTypeQuery{Sort: []string{"name"}, Descending: true}, "é1 b2 b1 a3 a2 a1 B1", 7},
			"by version":          {datamodel.AnalysisTypeQuery{Sort: []string{"version"}}, "é1 B1 a1 b1 b2 a2 a3", 7},
			"by version, down":    {datamodel.AnalysisTypeQuery{Sort: []string{"version"}, Descending: true}, "a3 b2 a2 é1 B1 a1 b1", 7},
			"by name and version": {datamodel.AnalysisTypeQuery{Sort: []string{"name", "version"}}, "B1 a1 a2 a3 b1 b2 é1", 7},
			"count only":          {datamodel.AnalysisTypeQuery{CountOnly: true}, "", 7},
			"page":                {datamodel.AnalysisTypeQuery{Limit: 2, Offset: 1}, "a3 b2", 7},
			"past the end":        {datamodel.AnalysisTypeQuery{Limit: 2, Offset: 7}, "", 7},
			"negative":            {datamodel.AnalysisTypeQuery{Limit: -1, Offset: -1}, "é1 a3 b2 a2 B1 a1 b1", 7},
			"names":               {datamodel.AnalysisTypeQuery{Names: []string{"B", "é", "none", "é"}}, "é1 B1", 2},
			"versions":            {datamodel.AnalysisTypeQuery{Versions: []int{3, 2, 99}}, "a3 b2 a2", 3},
			"names and versions":  {datamodel.AnalysisTypeQuery{Names: []string{"a", "b"}, Versions: []int{1, 2}, Limit: 3}, "b2 a2 a1", 4},
			"quotes":              {datamodel.AnalysisTypeQuery{Names: []string{`'"\`, "a\x00", "\xff"}}, "", 0},
		} {
			t.Run(name, func(t *testing.T) {
				types, total, err := s.ListAnalysisTypes(t.Context(), tt.query)
				got := ""
				for i, a := range types {
					if i > 0 {
						got += " "
					}
					got += fmt.Sprint(a.Name, a.Version)
				}
				if err != nil || total != tt.total || got != tt.want {
					t.Errorf("got %q of %d (%v), want %q of %d", got, total, err, tt.want, tt.total)
				}
			})
		}
		_, _, err := s.ListAnalysisTypes(t.Context(), datamodel.AnalysisTypeQuery{Sort: []string{"seq; DROP TABLE study"}})
		wantError(t, err, core.CodeInvalid, "analysis types can be sorted by version or name")
	})
}

// TestAddAnalysisTypeRaces: concurrent registrations of one name get the versions from 1 on without gaps or duplicates, also when
// some of them fail.
// when some of them fail.
func TestAddAnalysisTypeRaces(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		const racers = 50
		var wg sync.WaitGroup
		got := make([]int, racers)
		for i := range racers {
			wg.Go(func() {
				_, err := s.AddAnalysisType(t.Context(), "raced", func(*datamodel.AnalysisType) (datamodel.AnalysisType, error) {
					return datamodel.AnalysisType{}, core.NewError(core.CodeInvalid, "refused")
				})
				if core.CodeOf(err) != core.CodeInvalid {
					t.Errorf("a refused one got %v", err)
				}
				added, err := s.AddAnalysisType(t.Context(), "raced", func(previous *datamodel.AnalysisType) (datamodel.AnalysisType, error) {
					version := 1
					if previous != nil {
						version = previous.Version + 1
					}
					return datamodel.AnalysisType{Schema: json.RawMessage(fmt.Sprint(version))}, nil
				})
				if err != nil || string(added.Schema) != fmt.Sprint(added.Version) {
					t.Error(err, added)
				}
				got[i] = added.Version
			})
		}
		wg.Wait()
		seen := map[int]bool{}
		for _, version := range got {
			if version < 1 || version > racers || seen[version] {
				t.Errorf("version %d twice or outside 1 to %d: %v", version, racers, got)
			}
			seen[version] = true
		}
		if _, total, err := s.ListAnalysisTypes(t.Context(), datamodel.AnalysisTypeQuery{Limit: 1}); err != nil || total != racers {
			t.Error(total, err)
		}
	})
}

// TestAddFirstAnalysisTypes: of several processes that start at once one stores all types; a store with a type stays as it is.
func TestAddFirstAnalysisTypes(t *testing.T) {
	types := []datamodel.AnalysisType{
		{Name: "b", Version: 1, CreatedAt: time.UnixMicro(5).UTC(), Schema: json.RawMessage(schema)},
		{Name: "a", Version: 1, CreatedAt: time.UnixMicro(5).UTC(), Schema: json.RawMessage(schema)},
	}
	t.Run("once", func(t *testing.T) {
		storetest.Configs(t, func(t *testing.T, cfg store.Config) {
			var wait sync.WaitGroup
			var mu sync.Mutex
			times := 0
			stores := make([]*store.Store, 4)
			for i := range stores {
				stores[i] = storetest.OpenConfig(t, cfg)
			}
			start := make(chan struct{})
			for _, s := range stores {
				wait.Go(func() {
					<-start
					added, err := s.AddFirstAnalysisTypes(t.Context(), types)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					if added {
						times++
					}
				})
			}
			close(start)
			wait.Wait()
			s := stores[0]
			got, _, err := s.ListAnalysisTypes(t.Context(), datamodel.AnalysisTypeQuery{Descending: true})
			if diff := cmp.Diff(types, got); diff != "" || err != nil || times != 1 {
				t.Error(times, err, diff)
			}
			if next := register(t, s, "a", datamodel.AnalysisOptions{}); next.Version != 2 {
				t.Errorf("the next version is %d", next.Version)
			}
		})
	})
	t.Run("all or none", func(t *testing.T) {
		storetest.Databases(t, func(t *testing.T, s *store.Store) {
			bad := []datamodel.AnalysisType{types[0], {Name: "a", Version: 1, Schema: json.RawMessage("{")}}
			if added, err := s.AddFirstAnalysisTypes(t.Context(), bad); added || core.CodeOf(err) != core.CodeInvalid {
				t.Error(added, err)
			}
			if first := register(t, s, "b", datamodel.AnalysisOptions{}); first.Version != 1 {
				t.Errorf("version %d", first.Version)
			}
			if added, err := s.AddFirstAnalysisTypes(t.Context(), types); added || err != nil {
				t.Error(added, err)
			}
		})
	})
}
