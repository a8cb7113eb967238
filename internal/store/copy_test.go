package store_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// fillTables writes rows into every table, among them values that need care: none, binary ones, large ones, many.
func fillTables(t *testing.T, s *store.Store) {
	t.Helper()
	statements := []struct {
		text string
		args []any
	}{
		{"INSERT INTO analysis_type_name (name, latest) VALUES ($1, 2)", []any{"séquençage"}},
		{"INSERT INTO analysis_type (name, version, created_at, options, schema) VALUES ($1, 1, 5, '', '{}')", []any{"séquençage"}},
		{"INSERT INTO study (id, name, organization, description, created_at, info) VALUES ('S1', '', 'O', $1, -1, '')", []any{"two\nlines '\" \\"}},
		{"INSERT INTO analysis_file (study, md5, analysis_id, name, object_id, access) VALUES ('S1', 'm', 'A1', 'a.bam', 'o', '')", nil},
		{"INSERT INTO api_key (id, name, scopes, hash, created_at, expires_at, revoked_at) VALUES ('k', 'n', 's', $1, 1, 0, 9223372036854775807)", []any{[]byte{0, 255, 1}}},
		{"INSERT INTO saved_set (id, owner, catalogue, type, path, user_id, sqon, size, created_at, used_at, expires_at, members) VALUES ('s', 'o', 'c', 't', 'p', '', '', 0, 1, 2, 3, $1)", []any{[]byte{}}},
		{"INSERT INTO secret (name, value) VALUES ('own', $1)", []any{bytes.Repeat([]byte{7}, 5<<20)}},
		{"INSERT INTO imported_analysis (analysis_id, source_hash, updated_at) VALUES ('A1', 1, 2)", nil},
	}
	err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for _, st := range statements {
			if _, err := tx.ExecContext(ctx, st.text, st.args...); err != nil {
				return err
			}
		}
		for i := range 250 {
			if _, err := tx.ExecContext(ctx, "INSERT INTO analysis (id, study, state, type_name, type_version, updated_at, body) VALUES ($1, 'S1', 'PUBLISHED', 't', 1, 1, $2)",
				fmt.Sprintf("A%d", i), []byte(`{"a":1}`)); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO outbox (id, study, analysis_id, created_at) VALUES ($1, 'S1', 'A', 1)", fmt.Sprint(i)); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM outbox WHERE seq > 200") // the numbering goes on after 250
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCopy: a copy has all rows of all tables with their numbers, goes on numbering after them, and can be repeated; one onto other rows
// is refused and changes nothing.
func TestCopy(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, to *store.Store) {
		from := storetest.Open(t)
		fillTables(t, from)
		tables := storetest.Tables(t, from)
		want := storetest.Rows(t, from, tables)
		for _, table := range tables {
			if len(storetest.Rows(t, from, []string{table})) == 0 {
				t.Fatalf("%s is empty", table)
			}
		}
		for _, round := range []string{"first", "repeated"} {
			rows, err := from.CopyTo(t.Context(), to)
			if err != nil || int(rows) != len(want) {
				t.Fatalf("%s: %d rows of %d, %v", round, rows, len(want), err)
			}
			if got := storetest.Rows(t, to, tables); !slices.Equal(got, want) {
				t.Errorf("%s: the rows differ", round)
			}
		}
		err := to.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			var seq int64
			if err := tx.QueryRowContext(ctx, "INSERT INTO outbox (id, study, analysis_id, created_at) VALUES ('next', '', '', 1) RETURNING seq").Scan(&seq); err != nil {
				return err
			}
			if to.Postgres() && seq != 251 || seq <= 200 {
				t.Errorf("the next row has the number %d", seq)
			}
			_, err := tx.ExecContext(ctx, "DELETE FROM analysis WHERE id = 'A7'")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		before := storetest.Rows(t, to, tables)
		_, err = from.CopyTo(t.Context(), to)
		if core.CodeOf(err) != core.CodeConflict || !strings.Contains(core.MessageOf(err), "249 rows in the table analysis") {
			t.Errorf("a copy onto other rows: %v", err)
		}
		if got := storetest.Rows(t, to, tables); !slices.Equal(got, before) {
			t.Error("a copy that is refused changed rows")
		}
	})
}

// TestCopyNumbering: rows are numbered after those that the first store had, also those of a table that is empty now. A copy that is
// repeated does not give a number again.
func TestCopyNumbering(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, to *store.Store) {
		if !to.Postgres() {
			return // SQLite numbers rows after those that are there
		}
		from := storetest.Open(t)
		next := func(s *store.Store) (seq int64) {
			err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				err := tx.QueryRowContext(ctx, "INSERT INTO outbox (id, study, analysis_id, created_at) VALUES ('', '', '', 1) RETURNING seq").Scan(&seq)
				if err == nil {
					_, err = tx.ExecContext(ctx, "DELETE FROM outbox")
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return seq
		}
		next(from)
		next(from)
		for _, want := range []int64{3, 4} {
			if _, err := from.CopyTo(t.Context(), to); err != nil {
				t.Fatal(err)
			}
			if got := next(to); got != want {
				t.Errorf("the next row has the number %d, want %d", got, want)
			}
		}
	})
}
