package sets_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/search/sets"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

const (
	me    = "key:1"
	other = "jwt:https://issuer|subject"
	day   = 24 * time.Hour
)

// clock advances only when it is set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

func open(t *testing.T, s *store.Store, cfg sets.Config) *sets.Service {
	t.Helper()
	service, err := sets.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return service
}

func save(t *testing.T, s *sets.Service, set core.SavedSet, members ...string) core.SavedSet {
	t.Helper()
	saved, err := s.Save(t.Context(), set, members)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func wantError(t *testing.T, err error, code core.Code, message string) {
	t.Helper()
	if core.CodeOf(err) != code || core.MessageOf(err) != message {
		t.Errorf("got %s %q, want %s %q", core.CodeOf(err), core.MessageOf(err), code, message)
	}
}

func unknownSet(id string) string {
	return "there is no saved set " + id + ", or it is not yours, or it has expired"
}

func TestSaved(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, db *store.Store) {
		c := newClock()
		s := open(t, db, sets.Config{Now: c.Now})
		set := core.SavedSet{Owner: me, Catalogue: "c", Type: "analysis", Path: "donor.id", UserID: "u", SQON: json.RawMessage(`{"op":"and","content":[]}`)}
		members := []string{"b", "", "a", "HLA-A*02:01", "\x00é", strings.Repeat("x", 5000)}
		saved := save(t, s, set, members...)

		want := set
		at := c.Now().Truncate(time.Microsecond)
		want.ID, want.Size, want.CreatedAt, want.UsedAt, want.ExpiresAt = saved.ID, len(members), at, at, at.Add(30*day)
		if diff := cmp.Diff(want, saved); diff != "" {
			t.Error(diff)
		}
		if _, err := uuid.Parse(saved.ID); err != nil {
			t.Error(err)
		}
		listed, err := s.List(t.Context(), me)
		if diff := cmp.Diff([]core.SavedSet{want}, listed); diff != "" || err != nil {
			t.Error(diff, err)
		}
		// another process has no cache
		for name, s := range map[string]*sets.Service{"here": s, "elsewhere": open(t, db, sets.Config{Now: c.Now})} {
			for range 2 {
				got, err := s.Members(t.Context(), me, saved.ID)
				if diff := cmp.Diff(members, got); diff != "" || err != nil {
					t.Error(name, diff, err)
				}
			}
		}
		t.Run("all documents, none of which matched", func(t *testing.T) {
			empty := save(t, s, core.SavedSet{Owner: other})
			got, err := s.Members(t.Context(), other, empty.ID)
			if len(got) > 0 || err != nil {
				t.Error(got, err)
			}
			if listed, err := s.List(t.Context(), other); err != nil || len(listed) != 1 || listed[0].SQON != nil {
				t.Error(listed, err)
			}
		})
	})
}

func TestASetIsItsOwners(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, db *store.Store) {
		s := open(t, db, sets.Config{})
		saved := save(t, s, core.SavedSet{Owner: me}, "a")
		if _, err := s.Members(t.Context(), me, saved.ID); err != nil { // it is in memory now
			t.Fatal(err)
		}
		never := uuid.NewString()
		for _, c := range []struct{ name, owner, id, shown string }{
			{"another's", other, saved.ID, saved.ID},
			{"nobody's", "", saved.ID, saved.ID},
			{"an owner that no database keeps", "\x00", saved.ID, saved.ID},
			{"an owner that is no text", "\xff", saved.ID, saved.ID},
			{"an id that never was", me, never, never},
			{"no id", me, "", ""},
			{"an id in capitals", me, strings.ToUpper(saved.ID), strings.ToUpper(saved.ID)},
			{"an id in other words", me, "{" + saved.ID + "}", "{" + saved.ID + "}"},
			{"an id that no database keeps", me, "a\x00b", "a\uFFFDb"},
			{"a long id", me, strings.Repeat("é", 99), strings.Repeat("é", 32) + "…"},
		} {
			t.Run(c.name, func(t *testing.T) {
				_, err := s.Members(t.Context(), c.owner, c.id)
				wantError(t, err, core.CodeNotFound, unknownSet(c.shown))
				wantError(t, s.Delete(t.Context(), c.owner, c.id), core.CodeNotFound, unknownSet(c.shown))
			})
		}
		for _, owner := range []string{other, "", "\x00"} {
			if listed, err := s.List(t.Context(), owner); len(listed) > 0 || err != nil {
				t.Errorf("%q: %v, %v", owner, listed, err)
			}
		}
		if _, err := s.Members(t.Context(), me, saved.ID); err != nil {
			t.Error(err)
		}
	})
}

// wantHint checks the hint of an error.
func wantHint(t *testing.T, err error, hint string) {
	t.Helper()
	if core.HintOf(err) != hint {
		t.Errorf("hint %q, want %q (%v)", core.HintOf(err), hint, err)
	}
}

// TestRoomForSets: what the error of an owner with too many sets advises works: sets that are not used expire.
func TestRoomForSets(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	s := open(t, storetest.Open(t), sets.Config{MaxPerOwner: 1, Retention: time.Hour, Now: func() time.Time { return now }})
	save(t, s, core.SavedSet{Owner: me}, "a")
	_, err := s.Save(t.Context(), core.SavedSet{Owner: me}, []string{"b"})
	wantHint(t, err, "delete some, or wait until unused ones expire")
	now = now.Add(time.Hour)
	save(t, s, core.SavedSet{Owner: me}, "b")
}

func TestNobody(t *testing.T) {
	s := open(t, storetest.Open(t), sets.Config{})
	_, err := s.Save(t.Context(), core.SavedSet{}, []string{"a"})
	wantError(t, err, core.CodeForbidden, "saved sets require a token: a set belongs to the caller who saved it")
	wantHint(t, err, "send an API key or a token")
	save(t, s, core.SavedSet{Owner: me}, "a")
	_, err = s.Save(t.Context(), core.SavedSet{Owner: "a\x00"}, []string{"a"})
	wantError(t, err, core.CodeInvalid, "the name of the caller contains characters that cannot be stored")
	t.Run("is the local user", func(t *testing.T) {
		s := open(t, storetest.Open(t), sets.Config{AllowAnonymous: true})
		saved := save(t, s, core.SavedSet{}, "a")
		if got, err := s.Members(t.Context(), "", saved.ID); err != nil || len(got) != 1 {
			t.Error(got, err)
		}
		if listed, err := s.List(t.Context(), ""); err != nil || len(listed) != 1 {
			t.Error(listed, err)
		}
		_, err := s.Members(t.Context(), me, saved.ID)
		wantError(t, err, core.CodeNotFound, unknownSet(saved.ID))
	})
}

func TestLimits(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, db *store.Store) {
		s := open(t, db, sets.Config{MaxMembers: 3, MaxBytes: 10, MaxPerOwner: 2})
		_, err := s.Save(t.Context(), core.SavedSet{Owner: me}, []string{"a", "b", "c", "d"})
		wantError(t, err, core.CodeInvalid, "the set would have 4 members, more than the limit of 3")
		wantHint(t, err, "narrow the filter, or use the filter instead of a set")
		_, err = s.Save(t.Context(), core.SavedSet{Owner: me}, []string{"aaaaaa", "bbbbb"})
		wantError(t, err, core.CodeInvalid, "the members of the set have 11 bytes, more than the limit of 10")
		first := save(t, s, core.SavedSet{Owner: me}, "a", "b", "c")
		save(t, s, core.SavedSet{Owner: me}, "a")
		_, err = s.Save(t.Context(), core.SavedSet{Owner: me}, []string{"a"})
		wantError(t, err, core.CodeConflict, "you already have 2 saved sets, which is the maximum")
		wantHint(t, err, "delete some, or wait until unused ones expire")
		save(t, s, core.SavedSet{Owner: other}, "a")
		if err := s.Delete(t.Context(), me, first.ID); err != nil {
			t.Fatal(err)
		}
		save(t, s, core.SavedSet{Owner: me}, "a")
	})
}

func TestTheLargestSet(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, db *store.Store) {
		s := open(t, db, sets.Config{CacheBytes: 1})
		members := make([]string, sets.DefaultMaxMembers)
		for i := range members {
			members[i] = fmt.Sprintf("analysis-%d", i)
		}
		saved := save(t, s, core.SavedSet{Owner: me}, members...)
		got, err := s.Members(t.Context(), me, saved.ID)
		if diff := cmp.Diff(members, got); diff != "" || err != nil {
			t.Error(len(diff), err)
		}
		_, err = s.Save(t.Context(), core.SavedSet{Owner: me}, append(members, "one more"))
		wantError(t, err, core.CodeInvalid, "the set would have 100001 members, more than the limit of 100000")
	})
}

func TestEnd(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, db *store.Store) {
		c := newClock()
		s := open(t, db, sets.Config{Now: c.Now, Retention: 10 * day})
		used := save(t, s, core.SavedSet{Owner: me}, "a")
		unused := save(t, s, core.SavedSet{Owner: me}, "a")

		c.move(9 * day)
		if _, err := s.Members(t.Context(), me, used.ID); err != nil {
			t.Fatal(err)
		}
		c.move(time.Minute)
		if _, err := s.Members(t.Context(), me, used.ID); err != nil { // too soon to be noted
			t.Fatal(err)
		}
		c.move(day)
		_, err := s.Members(t.Context(), me, unused.ID)
		wantError(t, err, core.CodeNotFound, unknownSet(unused.ID))
		wantError(t, s.Delete(t.Context(), me, unused.ID), core.CodeNotFound, unknownSet(unused.ID))
		listed, err := s.List(t.Context(), me)
		if err != nil || len(listed) != 1 || listed[0].ID != used.ID {
			t.Fatal(listed, err)
		}
		at := used.CreatedAt.Add(9 * day)
		if !listed[0].UsedAt.Equal(at) || !listed[0].ExpiresAt.Equal(at.Add(10*day)) {
			t.Errorf("used %v, expires %v", listed[0].UsedAt, listed[0].ExpiresAt)
		}
		if n, err := s.Purge(t.Context()); n != 1 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
		if n, err := s.Purge(t.Context()); n != 0 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
		c.move(11 * day) // what is in memory has expired as well
		_, err = s.Members(t.Context(), me, used.ID)
		wantError(t, err, core.CodeNotFound, unknownSet(used.ID))
		save(t, s, core.SavedSet{Owner: me}) // looks for expired ones
		if n, err := s.Purge(t.Context()); n != 0 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
	})
}

// stored counts the sets of an owner that the store holds, expired or not.
func stored(t *testing.T, db *store.Store, owner string) int {
	t.Helper()
	var n int
	if err := db.Read().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM saved_set WHERE owner = $1", owner).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestExpired: an expired set is unknown immediately, although it is cached and stored until it is purged.
func TestExpired(t *testing.T) {
	for _, purge := range []struct {
		name string
		do   func(t *testing.T, s *sets.Service)
	}{
		{"when somebody asks for it", func(t *testing.T, s *sets.Service) {
			if n, err := s.Purge(t.Context()); n != 1 || err != nil {
				t.Errorf("purged %d, %v", n, err)
			}
		}},
		{"when another is saved", func(t *testing.T, s *sets.Service) { save(t, s, core.SavedSet{Owner: other}, "b") }},
	} {
		t.Run(purge.name, func(t *testing.T) {
			storetest.Databases(t, func(t *testing.T, db *store.Store) {
				c := newClock()
				s := open(t, db, sets.Config{Now: c.Now, Retention: 10 * day})
				saved := save(t, s, core.SavedSet{Owner: me}, "a")
				c.move(10*day - time.Microsecond)
				for range 2 { // to be looked at does not put off its end
					if got, err := s.Peek(t.Context(), me, saved.ID); err != nil || len(got) != 1 {
						t.Fatal(got, err)
					}
				}
				if listed, err := s.List(t.Context(), me); err != nil || len(listed) != 1 || !listed[0].ExpiresAt.Equal(saved.ExpiresAt) {
					t.Fatal(listed, err)
				}
				c.move(time.Microsecond)
				for name, s := range map[string]*sets.Service{"here": s, "elsewhere": open(t, db, sets.Config{Now: c.Now, Retention: 10 * day})} {
					_, err := s.Members(t.Context(), me, saved.ID)
					wantError(t, err, core.CodeNotFound, unknownSet(saved.ID))
					_, err = s.Peek(t.Context(), me, saved.ID)
					wantError(t, err, core.CodeNotFound, unknownSet(saved.ID))
					if listed, err := s.List(t.Context(), me); len(listed) > 0 || err != nil {
						t.Error(name, listed, err)
					}
				}
				if n := stored(t, db, me); n != 1 {
					t.Fatalf("%d sets are stored before the purge", n)
				}
				purge.do(t, s)
				if n := stored(t, db, me); n != 0 {
					t.Errorf("%d sets are stored after the purge", n)
				}
			})
		})
	}
}

func TestDeleted(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, db *store.Store) {
		s, elsewhere := open(t, db, sets.Config{}), open(t, db, sets.Config{})
		saved := save(t, s, core.SavedSet{Owner: me}, "a")
		for _, s := range []*sets.Service{s, elsewhere} {
			if _, err := s.Members(t.Context(), me, saved.ID); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Delete(t.Context(), me, saved.ID); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*sets.Service{s, elsewhere} { // although it is in the memory of both
			_, err := s.Members(t.Context(), me, saved.ID)
			wantError(t, err, core.CodeNotFound, unknownSet(saved.ID))
		}
	})
}

// TestCacheIsBounded: sets that do not fit are read from the store each time.
func TestCacheIsBounded(t *testing.T) {
	s := open(t, storetest.Open(t), sets.Config{CacheBytes: 100})
	var all []core.SavedSet
	for i := range 20 {
		all = append(all, save(t, s, core.SavedSet{Owner: me}, fmt.Sprint("member ", i), strings.Repeat("x", i*10)))
	}
	for range 2 {
		for i, set := range all {
			got, err := s.Members(t.Context(), me, set.ID)
			if err != nil || len(got) != 2 || got[0] != fmt.Sprint("member ", i) || len(got[1]) != i*10 {
				t.Errorf("%d: %v, %v", i, got, err)
			}
		}
	}
}

func TestSideBySide(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, db *store.Store) {
		s := open(t, db, sets.Config{})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				owner := fmt.Sprint("key:", i%2)
				saved, err := s.Save(t.Context(), core.SavedSet{Owner: owner}, []string{fmt.Sprint(i)})
				if err != nil {
					t.Error(err)
					return
				}
				got, err := s.Members(t.Context(), owner, saved.ID)
				if err != nil || len(got) != 1 || got[0] != fmt.Sprint(i) {
					t.Error(got, err)
				}
			})
		}
		wg.Wait()
		for _, owner := range []string{"key:0", "key:1"} {
			if listed, err := s.List(t.Context(), owner); len(listed) != 4 || err != nil {
				t.Error(listed, err)
			}
		}
	})
}

func TestStoreThatDoesNotAnswer(t *testing.T) {
	s := open(t, storetest.Open(t), sets.Config{})
	saved := save(t, s, core.SavedSet{Owner: me}, "a")
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := s.Members(ended, me, saved.ID)
	wantError(t, err, core.CodeUnavailable, "reading a saved set: the store did not answer in time")
	_, err = s.List(ended, me)
	wantError(t, err, core.CodeUnavailable, "listing saved sets: the store did not answer in time")
}

func TestConfig(t *testing.T) {
	for name, cfg := range map[string]sets.Config{
		"time that sets are kept": {Retention: -1}, "number of members of a set": {MaxMembers: -1}, "size of a set": {MaxBytes: -1},
		"number of sets of an owner": {MaxPerOwner: -1}, "size of the cache of sets": {CacheBytes: -1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sets.New(nil, cfg)
			wantError(t, err, core.CodeInvalid, "the "+name+" must not be negative")
		})
	}
}

// TestCorruptMembers: corrupt members are never returned.
func TestCorruptMembers(t *testing.T) {
	db := storetest.Open(t)
	s := open(t, db, sets.Config{})
	for name, change := range map[string]string{
		"no compressed bytes": "members = x'00ff00ff'",
		"nothing":             "members = x''",
		"another number":      "size = 3",
	} {
		t.Run(name, func(t *testing.T) {
			saved := save(t, s, core.SavedSet{Owner: me}, "a", "b")
			err := db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE saved_set SET "+change+" WHERE id = $1", saved.ID)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Members(t.Context(), me, saved.ID)
			wantError(t, err, core.CodeInternal, "reading the members of a saved set: they are corrupt")
		})
	}
}
