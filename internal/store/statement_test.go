package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// TestSameStatementInside: a prepared statement runs again while its rows are being read.
func TestSameStatementInside(t *testing.T) {
	s := storetest.Open(t)
	if err := s.Update(t.Context(), insert("a", "b", "c")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		query string
		args  []any
	}{
		"arguments":    {"SELECT id FROM study WHERE id >= $1 ORDER BY id", []any{"a"}},
		"no arguments": {"SELECT id FROM study ORDER BY id", nil},
	} {
		for where, run := range map[string]func(do func(context.Context, store.Conn) error) error{
			"reading": func(do func(context.Context, store.Conn) error) error { return do(t.Context(), s.Read()) },
			"in a transaction": func(do func(context.Context, store.Conn) error) error {
				return s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error { return do(ctx, tx) })
			},
		} {
			t.Run(name+" "+where, func(t *testing.T) {
				var seen []string
				err := run(func(ctx context.Context, conn store.Conn) error {
					rows, err := conn.QueryContext(ctx, tt.query, tt.args...)
					if err != nil {
						return err
					}
					defer rows.Close()
					for rows.Next() {
						var id, inner string
						if err := rows.Scan(&id); err != nil {
							return err
						}
						if err := conn.QueryRowContext(ctx, tt.query, tt.args...).Scan(&inner); err != nil {
							return err
						}
						again, err := conn.QueryContext(ctx, tt.query, tt.args...)
						if err != nil {
							return err
						}
						if !again.Next() {
							t.Error("the same statement inside returned nothing")
						}
						if err := again.Close(); err != nil {
							return err
						}
						seen = append(seen, id+inner)
					}
					return rows.Err()
				})
				if got := strings.Join(seen, " "); err != nil || got != "aa ba ca" {
					t.Errorf("%q %v", got, err)
				}
			})
		}
	}
}

// TestManyStatements: more texts than are kept prepared.
func TestManyStatements(t *testing.T) {
	s := storetest.Open(t)
	err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for i := range 600 {
			var written, read int
			text := fmt.Sprintf("SELECT %d + $1", i)
			if err := tx.QueryRowContext(ctx, text, 1).Scan(&written); err != nil {
				return err
			}
			if err := s.Read().QueryRowContext(ctx, text, 1).Scan(&read); err != nil {
				return err
			}
			if written != i+1 || read != i+1 {
				t.Errorf("%s: %d, %d", text, written, read)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func BenchmarkRead(b *testing.B) {
	s := storetest.Open(b)
	if err := s.Update(b.Context(), insert("S")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var name string
		if err := s.Read().QueryRowContext(b.Context(), "SELECT name FROM study WHERE id = $1", "S").Scan(&name); err != nil {
			b.Fatal(err)
		}
	}
}
