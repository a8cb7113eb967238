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

// tablesOf returns the names of all tables of a SQLite store, except that of the migrations.
func tablesOf(t *testing.T, s *store.Store) []string {
	t.Helper()
	rows, err := s.Read().QueryContext(t.Context(), "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'goose_db_version'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

// content returns every row of tables, none of which may be empty, as text.
func content(t *testing.T, s *store.Store, tables []string) []string {
	t.Helper()
	var all []string
	for _, table := range tables {
		rows, err := s.Read().QueryContext(t.Context(), "SELECT * FROM "+table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values, pointers := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			pointers[i] = &values[i]
		}
		found := 0
		for rows.Next() {
			if err := rows.Scan(pointers...); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%s %q %q", table, columns, values))
			found++
		}
		if err := rows.Err(); err != nil || found == 0 {
			t.Fatalf("%s has %d rows: %v", table, found, err)
		}
		_ = rows.Close()
	}
	slices.Sort(all)
	return all
}

// TestCopy: a copy has all rows of all tables with their numbers, goes on numbering after them, and can be repeated; one onto other rows
// is refused and changes nothing.
func TestCopy(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, to *store.Store) {
		from := storetest.Open(t)
		fillTables(t, from)
		tables := tablesOf(t, from)
		want := content(t, from, tables)
		for _, round := range []string{"first", "repeated"} {
			rows, err := from.CopyTo(t.Context(), to)
			if err != nil || int(rows) != len(want) {
				t.Fatalf("%s: %d rows of %d, %v", round, rows, len(want), err)
			}
			if got := content(t, to, tables); !slices.Equal(got, want) {
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
		before := content(t, to, tables)
		_, err = from.CopyTo(t.Context(), to)
		if core.CodeOf(err) != core.CodeConflict || !strings.Contains(core.MessageOf(err), "249 rows in the table analysis") {
			t.Errorf("a copy onto other rows: %v", err)
		}
		if got := content(t, to, tables); !slices.Equal(got, before) {
			t.Error("a copy that is refused changed rows")
		}
	})
}
