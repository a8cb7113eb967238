package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

const insertStudy = "INSERT INTO study (id, name, organization, description, created_at) VALUES ($1, $1, $1, $1, $2)"

// insert returns a change that adds studies.
func insert(ids ...string) func(context.Context, *store.Tx) error {
	return func(ctx context.Context, tx *store.Tx) error {
		for _, id := range ids {
			if _, err := tx.ExecContext(ctx, insertStudy, id, 1); err != nil {
				return store.WrapError("adding a study", err)
			}
		}
		return nil
	}
}

// studies lists the ids of all studies.
func studies(t *testing.T, s *store.Store) []string {
	t.Helper()
	rows, err := s.Read().QueryContext(t.Context(), "SELECT id FROM study ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

func wantStudies(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	if got := studies(t, s); !slices.Equal(got, want) {
		t.Errorf("studies %v, want %v", got, want)
	}
}

func TestUpdate(t *testing.T) {
	refusal := errors.New("refused")
	for name, tt := range map[string]struct {
		change  func(context.Context, *store.Tx) error
		code    core.Code
		message string
		kept    []string
	}{
		"done":          {insert("a", "b"), "", "", []string{"a", "b"}},
		"byte order":    {insert("b", "B", "é", "_"), "", "", []string{"B", "_", "b", "é"}},
		"unique":        {insert("a", "a"), core.CodeConflict, "adding a study: it already exists", nil},
		"invalid UTF-8": {insert("a", "\x00"), core.CodeInvalid, "adding a study: text must be UTF-8 without zero bytes", nil},
		"refused": {func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(insert("a")(ctx, tx), refusal)
		}, core.CodeInternal, "an internal error occurred", nil},
		"panic": {func(ctx context.Context, tx *store.Tx) error {
			_ = insert("a")(ctx, tx)
			panic("oh")
		}, core.CodeInternal, "an internal error occurred", nil},
		"bad statement": {func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE study SET "nmae" = $1`, "x")
			return store.WrapError("changing a study", err)
		}, core.CodeInternal, "changing a study", nil},
		"broken rule": {func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO analysis (id, study, state, type_name, type_version, updated_at, body)
				VALUES ($1, $1, $1, $1, 1, 1, $2)`, "none", []byte("{}"))
			return store.WrapError("adding an analysis", err)
		}, core.CodeInternal, "adding an analysis", nil},
		"not found": {func(ctx context.Context, tx *store.Tx) error {
			var id string
			return store.WrapError("reading a study", tx.QueryRowContext(ctx, "SELECT id FROM study WHERE id = $1", "a").Scan(&id))
		}, core.CodeNotFound, "reading a study: not found", nil},
		"no row is not a failure": {func(ctx context.Context, tx *store.Tx) error {
			var id string
			_ = tx.QueryRowContext(ctx, "SELECT id FROM study WHERE id = $1", "a").Scan(&id)
			return insert("a")(ctx, tx)
		}, "", "", []string{"a"}},
		"an ignored failure": {func(ctx context.Context, tx *store.Tx) error {
			_ = insert("a", "a")(ctx, tx)
			return nil
		}, core.CodeInternal, "", nil},
		"an ignored failure of a row": {func(ctx context.Context, tx *store.Tx) error {
			var id string
			_ = insert("a")(ctx, tx)
			_ = tx.QueryRowContext(ctx, insertStudy+" RETURNING id", "a", 1).Scan(&id)
			return nil
		}, core.CodeInternal, "", nil},
		"a statement after a failure": {func(ctx context.Context, tx *store.Tx) error {
			_ = insert("a", "a")(ctx, tx)
			return insert("b")(ctx, tx)
		}, core.CodeInternal, "adding a study", nil},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Databases(t, func(t *testing.T, s *store.Store) {
				if name == "invalid UTF-8" && !s.Postgres() {
					t.Skip("SQLite stores any bytes")
				}
				err := s.Update(t.Context(), tt.change)
				if tt.message == "" {
					if core.CodeOf(err) != tt.code {
						t.Errorf("got %v, want %s", err, tt.code)
					}
				} else {
					wantError(t, err, tt.code, tt.message)
				}
				if name == "refused" && !errors.Is(err, refusal) {
					t.Errorf("got %v, not the change's own error", err)
				}
				wantStudies(t, s, tt.kept...)
				// The next one is not affected.
				if err := s.Update(t.Context(), insert("z")); err != nil {
					t.Error(err)
				}
				wantStudies(t, s, slices.Sorted(slices.Values(append(slices.Clip(tt.kept), "z")))...)
			})
		})
	}
}

func TestUpdateReadsItsOwn(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if err := insert("a", "b", "c")(ctx, tx); err != nil {
				return err
			}
			if ids := studies(t, s); len(ids) != 0 {
				t.Errorf("uncommitted data is visible outside: %v", ids)
			}
			var ids []string
			rows, err := tx.QueryContext(ctx, "SELECT id FROM study WHERE id > $1 ORDER BY id", "a")
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id string
				if err := rows.Scan(&id); err != nil {
					return err
				}
				ids = append(ids, id)
			}
			if !slices.Equal(ids, []string{"b", "c"}) {
				t.Errorf("read %v", ids)
			}
			return rows.Err()
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestUpdateInsideUpdate(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		err := s.Update(t.Context(), func(ctx context.Context, _ *store.Tx) error { return s.Update(ctx, insert("a")) })
		wantError(t, err, core.CodeInternal, "a transaction was started within another one")
	})
}

func TestTxAfterItsEnd(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		var kept *store.Tx
		if err := s.Update(t.Context(), func(_ context.Context, tx *store.Tx) error { kept = tx; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := insert("late")(t.Context(), kept); err == nil {
			t.Error("a statement ran after the end of its transaction")
		}
		if _, err := kept.QueryContext(t.Context(), "SELECT 1"); err == nil {
			t.Error("a query ran after the end of its transaction")
		}
		var id string
		if err := kept.QueryRowContext(t.Context(), insertStudy+" RETURNING id", "late", 1).Scan(&id); err == nil {
			t.Error("a query for a row ran after the end of its transaction")
		}
		wantStudies(t, s)
	})
}

func TestUpdateCancelled(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
			if err := insert("a")(ctx, tx); err != nil {
				return err
			}
			cancel()
			if err := insert("b")(ctx, tx); err == nil {
				t.Error("a statement ran for a canceled caller")
			}
			var one int
			return store.WrapError("reading", tx.QueryRowContext(ctx, "SELECT 1").Scan(&one))
		})
		wantError(t, err, core.CodeUnavailable, "reading: the store did not answer in time")
		if err := s.Update(ctx, insert("c")); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("a canceled caller got %v", err)
		}
		wantStudies(t, s)
	})
}

func TestUpdateEndsItsGoroutine(t *testing.T) {
	s := storetest.Open(t)
	err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_ = insert("a")(ctx, tx)
		runtime.Goexit() // as t.Fatal does
		return nil
	})
	wantError(t, err, core.CodeInternal, "a transaction ended without a result")
	if err := s.Update(t.Context(), insert("b")); err != nil {
		t.Error(err)
	}
	wantStudies(t, s, "b")
}

func TestClose(t *testing.T) {
	storetest.Configs(t, func(t *testing.T, cfg store.Config) {
		s, err := store.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		begun, proceed := make(chan struct{}), make(chan struct{})
		updated, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			updated <- s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				close(begun)
				<-proceed
				return insert("a")(ctx, tx)
			})
		}()
		<-begun
		go func() { closed <- s.Close(t.Context()) }()
		gone, leave := context.WithCancel(t.Context())
		leave()
		for core.MessageOf(s.Update(gone, insert("b"))) != "the store is closed" { // until Close has started
			runtime.Gosched()
		}
		select {
		case err := <-closed:
			t.Fatalf("Close did not wait for the transaction: %v", err)
		default:
		}
		close(proceed)
		if err := <-updated; err != nil {
			t.Error(err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		wantError(t, s.Update(t.Context(), insert("b")), core.CodeUnavailable, "the store is closed")
		wantError(t, s.Ready(t.Context()), core.CodeUnavailable, "the store is closed")
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("closing again: %v", err)
		}
		wantStudies(t, storetest.OpenConfig(t, cfg), "a")
	})
}

// TestCloseWithoutTime: waiting transactions fail, those in flight complete, and nothing hangs.
func TestCloseWithoutTime(t *testing.T) {
	cfg := store.Config{Dir: t.TempDir()}
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	begun, proceed := make(chan struct{}), make(chan struct{})
	inHand, waiting := make(chan error, 1), make(chan error, 1)
	go func() {
		inHand <- s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			close(begun)
			<-proceed
			return insert("a")(ctx, tx)
		})
	}()
	<-begun
	go func() { waiting <- s.Update(t.Context(), insert("b")) }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	wantError(t, s.Close(ctx), core.CodeUnavailable, "closing the store: transactions are still in flight")
	wantError(t, <-waiting, core.CodeUnavailable, "the store is closed")
	close(proceed)
	if err := <-inHand; err != nil {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("closing again: %v", err)
	}
	wantStudies(t, storetest.OpenConfig(t, cfg), "a")
}

func TestTimes(t *testing.T) {
	for name, tt := range map[string]struct {
		at   time.Time
		want int64
		back time.Time
	}{
		"zero":         {time.Time{}, 0, time.Time{}},
		"nanoseconds":  {time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC), 1767323045000006, time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)},
		"another zone": {time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)), 1767319445000000, time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := store.Micros(tt.at); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
			if got := store.Time(tt.want); got != tt.back {
				t.Errorf("%v, want %v", got, tt.back)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	for name, tt := range map[string]struct {
		cfg     store.Config
		code    core.Code
		message string
	}{
		"nothing":      {store.Config{}, core.CodeInvalid, "the store needs a directory or the URL of a PostgreSQL database"},
		"other URL":    {store.Config{URL: "mysql://h/d"}, core.CodeInvalid, "the store's URL must start with postgres://"},
		"broken URL":   {store.Config{URL: "postgres://u:secret@h:port/d"}, core.CodeInvalid, "store.url is not the URL of a PostgreSQL database"},
		"connections":  {store.Config{Dir: "d", MaxConnections: -1}, core.CodeInvalid, "the number of connections must not be negative"},
		"not a folder": {store.Config{Dir: file}, core.CodeInvalid, "creating the store's directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.Open(t.Context(), tt.cfg)
			wantError(t, err, tt.code, tt.message)
		})
	}
}
