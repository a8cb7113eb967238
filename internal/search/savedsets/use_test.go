package savedsets_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/search/graphql"
	"tutti/internal/search/sets"
)

// fakeClock is a clock that only advance moves.
type fakeClock struct{ now time.Time }

func newDays() *fakeClock { return &fakeClock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (d *fakeClock) Now() time.Time { return d.now }
func (d *fakeClock) advance(n int)  { d.now = d.now.Add(time.Duration(n) * 24 * time.Hour) }

func (w *setWorld) saved(t *testing.T, r graphql.SetRequest) graphql.Set {
	t.Helper()
	saved, err := w.Save(t.Context(), w.as("key:1"), r)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// filters returns the error of a filter that names a set.
func (w *setWorld) filters(t *testing.T, id string) error {
	t.Helper()
	view := w.as("key:1")
	f, err := view.Parse(json.RawMessage(`{"op":"in","content":{"fieldName":"studyId","value":["set_id:` + id + `"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = view.Lower(t.Context(), f)
	return err
}

// TestOnlyFiltersUseASet: a set that is listed with its members, or found by one of them, ends when it would have without.
func TestOnlyFiltersUseASet(t *testing.T) {
	byMember, err := sqon.Parse([]byte(`{"op":"in","content":{"fieldName":"ids","value":"S1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	list := func(t *testing.T, w *setWorld, want int) {
		t.Helper()
		for _, q := range []graphql.SetQuery{{Members: true, First: 9}, {Filter: byMember, First: 9}} {
			if found, total, err := w.Find(t.Context(), "key:1", q); err != nil || total != want || len(found) != want {
				t.Fatal(found, total, err)
			}
		}
	}
	study := graphql.SetRequest{Type: "analysis", Path: "studyId", Field: keywordAt("studyId")}
	t.Run("listed", func(t *testing.T) {
		clock := newDays()
		w := newSetWorld(t, sets.Config{Now: clock.Now, Retention: 10 * 24 * time.Hour})
		saved := w.saved(t, study)
		clock.advance(9)
		list(t, w, 1)
		clock.advance(1)
		list(t, w, 0)
		wantFault(t, w.filters(t, saved.ID), core.CodeInvalid, "there is no saved set "+saved.ID+", or it is not yours, or it has expired")
	})
	t.Run("in a filter", func(t *testing.T) {
		clock := newDays()
		w := newSetWorld(t, sets.Config{Now: clock.Now, Retention: 10 * 24 * time.Hour})
		saved := w.saved(t, study)
		clock.advance(9)
		if err := w.filters(t, saved.ID); err != nil {
			t.Fatal(err)
		}
		clock.advance(9)
		list(t, w, 1)
		clock.advance(1)
		wantFault(t, w.filters(t, saved.ID), core.CodeInvalid, "there is no saved set "+saved.ID+", or it is not yours, or it has expired")
	})
}

func TestSavedSetsHaveAnOrder(t *testing.T) {
	clock := newDays()
	w := newSetWorld(t, sets.Config{Now: clock.Now})
	names := map[string]string{} // by ids
	for _, one := range []struct{ name, path, user string }{
		{"first", "studyId", ""}, {"second", "_id", "b"}, {"third", "files.name", "a"}, {"fourth", "studyId", "b"},
	} {
		clock.advance(1)
		saved := w.saved(t, graphql.SetRequest{Type: "analysis", Path: one.path, UserID: one.user, Field: keywordAt(one.path)})
		names[saved.ID] = one.name
	}
	by := func(field string) graphql.SetSort { return graphql.SetSort{Field: field} }
	down := func(field string) graphql.SetSort { return graphql.SetSort{Field: field, Descending: true} }
	for _, c := range []struct {
		name string
		sort []graphql.SetSort
		want []string
	}{
		{"none", nil, []string{"fourth", "third", "second", "first"}},
		{"by time", []graphql.SetSort{by("createdAt")}, []string{"first", "second", "third", "fourth"}},
		{"by time, downwards", []graphql.SetSort{down("createdAt")}, []string{"fourth", "third", "second", "first"}},
		{"by size", []graphql.SetSort{by("size"), by("createdAt")}, []string{"first", "fourth", "second", "third"}},
		{"by size, downwards", []graphql.SetSort{down("size")}, []string{"third", "second", "fourth", "first"}},
		{"by path", []graphql.SetSort{by("path"), down("createdAt")}, []string{"second", "third", "fourth", "first"}},
		{"by who is missing", []graphql.SetSort{by("userId")}, []string{"third", "fourth", "second", "first"}},
		{"by who is missing first", []graphql.SetSort{{Field: "userId", Descending: true, MissingFirst: true}}, []string{"first", "fourth", "second", "third"}},
		{"by what all have", []graphql.SetSort{by("type"), by("_score"), by("createdAt")}, []string{"first", "second", "third", "fourth"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for range names { // page by page
				found, total, err := w.Find(t.Context(), "key:1", graphql.SetQuery{Sort: c.sort, Offset: len(got), First: 1})
				if err != nil || total != len(names) || len(found) != 1 {
					t.Fatal(found, total, err)
				}
				got = append(got, names[found[0].ID])
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("by id", func(t *testing.T) {
		found, _, err := w.Find(t.Context(), "key:1", graphql.SetQuery{Sort: []graphql.SetSort{by("setId")}, First: 9})
		if err != nil {
			t.Fatal(err)
		}
		for i := range found[1:] {
			if found[i].ID >= found[i+1].ID {
				t.Errorf("%s is before %s", found[i].ID, found[i+1].ID)
			}
		}
	})
	t.Run("by what they do not have", func(t *testing.T) {
		for _, field := range []string{"ids", "studyId", ""} {
			_, _, err := w.Find(t.Context(), "key:1", graphql.SetQuery{Sort: []graphql.SetSort{by("size"), by(field)}, First: 9})
			wantFault(t, err, core.CodeInvalid, `the argument sort [1]: saved sets cannot be sorted by "`+field+`"`)
			if hint := core.HintOf(err); hint != "sort them by setId, path, type, userId, size or createdAt" {
				t.Errorf("hint %q", hint)
			}
		}
	})
}
