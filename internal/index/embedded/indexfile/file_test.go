package indexfile_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/embedded/indexfile"
	"tutti/internal/index/mapping"
)

func config(dir string) indexfile.Config {
	return indexfile.Config{Dir: dir, TombstoneAge: time.Hour, PruneEvery: time.Hour, Logger: slog.New(slog.DiscardHandler), Now: time.Now}
}

func open(t *testing.T, dir string) *indexfile.File {
	t.Helper()
	f, err := indexfile.Open(config(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// create creates an index "a" whose documents have an organization.
func create(t *testing.T, f *indexfile.File) *indexfile.Alias {
	t.Helper()
	if err := f.Create("a", mapping.DefaultLimits(), mapping.Song()); err != nil {
		t.Fatal(err)
	}
	a, err := f.Alias("a")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// put writes version 1 of documents of one organization, and checks that they are indexed.
func put(t *testing.T, f *indexfile.File, a *indexfile.Alias, organization string, ids ...string) {
	t.Helper()
	results := make([]core.Result, len(ids))
	req := &indexfile.Request{Alias: a}
	for i, id := range ids {
		doc := fmt.Appendf(nil, `{"studyId":%q,"id":%q}`, organization, id)
		req.Changes = append(req.Changes, indexfile.Change{
			ID: id, Version: 1, Row: indexfile.AppendRow(nil, id, 1, doc), Document: doc, Result: &results[i],
			Terms: []string{string(indexfile.AppendTerm(nil, slices.Index(indexfile.ScopeFields(), "studyId"), []byte(organization)))},
		})
	}
	if err := f.Write(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	for i := range results {
		if results[i].Outcome != core.OutcomeIndexed {
			t.Fatalf("%s: %+v", ids[i], results[i])
		}
	}
}

// TestFile checks that what was written is found, by id and by scope, also after a start.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	a := create(t, f)
	put(t, f, a, "S1", "x", "y")
	put(t, f, a, "S2", "z")
	for range 2 {
		a, done, err := f.Use("a")
		if err != nil {
			t.Fatal(err)
		}
		if err := a.AwaitLoaded(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		doc, found, err := a.Find("z", func(row indexfile.Row) ([]byte, error) { return row.AppendDocument(nil) })
		if want := `{"studyId":"S2","id":"z"}`; err != nil || !found || string(doc.Source) != want || doc.Version != 1 {
			t.Errorf("z is %+v, %v (%v), want %s", doc, found, err, want)
		}
		var ids []string
		err = a.Scan(t.Context(), core.IndexScope{Field: "studyId", Organization: "S1"}, 0, func(found []indexfile.Hit) error {
			for _, h := range found {
				ids = append(ids, h.ID)
			}
			return nil
		})
		if err != nil || !slices.Equal(ids, []string{"x", "y"}) {
			t.Errorf("the documents of S1 are %v (%v)", ids, err)
		}
		if n, err := a.Documents(); n != 3 || err != nil {
			t.Errorf("%d documents (%v)", n, err)
		}
		if parts := a.Parts(); len(parts) == 0 {
			t.Error("there is nothing to search")
		}
		done()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Use("a"); !errors.Is(err, core.ErrIndexUnreachable) {
			t.Errorf("a closed file returned %v", err)
		}
		f = open(t, dir)
	}
}

// TestNewerFile checks that a file of a later tutti is rejected.
func TestNewerFile(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	err := indexfile.Database(f).Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{4}) })
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = indexfile.Open(config(dir))
	if err == nil || err.Error() != "the embedded index was written by another version of tutti" {
		t.Errorf("a newer file returned %v", err)
	}
}

// TestIdentityIsKept checks that an index keeps its identity over restarts, also one whose file is of a version without identities,
// and that the same name in another folder has another one.
func TestIdentityIsKept(t *testing.T) {
	identity := func(dir string, change func(b *bbolt.Bucket) error) string {
		f := open(t, dir)
		a, err := f.Alias("a")
		if err != nil {
			a = create(t, f)
		}
		if a.Identity == "" {
			t.Error("it has no identity")
		}
		err = indexfile.Database(f).Update(func(tx *bbolt.Tx) error {
			return change(tx.Bucket([]byte("aliases")).Bucket([]byte("a")))
		})
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		return a.Identity
	}
	dir := t.TempDir()
	keep := func(*bbolt.Bucket) error { return nil }
	forget := func(b *bbolt.Bucket) error { return b.Delete([]byte("identity")) }
	made, kept := identity(dir, keep), identity(dir, forget)
	added, addedKept := identity(dir, keep), identity(dir, keep)
	if made != kept || added == made || added != addedKept || identity(t.TempDir(), keep) == made {
		t.Errorf("%q, then %q; %q, then %q", made, kept, added, addedKept)
	}
}
