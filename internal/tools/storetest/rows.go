package storetest

import (
	"fmt"
	"slices"
	"testing"

	"tutti/internal/store"
)

// Tables returns the names of all tables of a SQLite store, except that of the migrations.
func Tables(t testing.TB, s *store.Store) []string {
	t.Helper()
	rows, err := s.Read().QueryContext(t.Context(), "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'goose_db_version'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
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

// Rows returns every row of tables as text, sorted.
func Rows(t testing.TB, s *store.Store, tables []string) []string {
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
		for rows.Next() {
			if err := rows.Scan(pointers...); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%s %q %q", table, columns, values))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
	}
	slices.Sort(all)
	return all
}
