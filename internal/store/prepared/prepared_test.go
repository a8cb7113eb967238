package prepared_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"tutti/internal/store/prepared"
)

// TestStatements: a writer and a reader return what the database does, for more texts than they keep, and while rows of the same text are read.
func TestStatements(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, r := prepared.NewWriter(conn), prepared.NewReader(db)
	if _, err := w.ExecContext(t.Context(), "CREATE TABLE one (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ExecContext(t.Context(), "INSERT INTO one VALUES (0), (1), (2)"); err != nil {
		t.Fatal(err)
	}
	const small = "SELECT n FROM one WHERE n < $1 ORDER BY n"
	outer, err := w.QueryContext(t.Context(), small, 3)
	if err != nil {
		t.Fatal(err)
	}
	seen := ""
	for outer.Next() {
		var n, inner int
		if err := outer.Scan(&n); err != nil {
			t.Fatal(err)
		}
		if err := w.QueryRowContext(t.Context(), small, 3).Scan(&inner); err != nil {
			t.Fatal(err)
		}
		seen += fmt.Sprint(n, inner, " ")
	}
	if err := outer.Close(); err != nil || outer.Err() != nil || seen != "0 0 1 0 2 0 " {
		t.Errorf("rows while the same statement ran again: %q, %v, %v", seen, outer.Err(), err)
	}
	for n := range 300 {
		if _, err := w.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO one SELECT %d WHERE $1", n), true); err != nil {
			t.Fatal(err)
		}
		var written, read int
		text := fmt.Sprintf("SELECT count(*) + %d FROM one WHERE n >= $1", n)
		if err := w.QueryRowContext(t.Context(), text, 0).Scan(&written); err != nil || written != 2*n+4 {
			t.Fatalf("%s: the writer returned %d, %v", text, written, err)
		}
		if err := r.QueryRowContext(t.Context(), text, 0).Scan(&read); err != nil || read != 2*n+4 {
			t.Fatalf("%s: the reader returned %d, %v", text, read, err)
		}
	}
	if _, err := w.ExecContext(t.Context(), "INSERT INTO none VALUES ($1)", 1); err == nil {
		t.Error("a statement on a table that does not exist has no error")
	}
	w.Close()
	if err := conn.PingContext(t.Context()); err == nil {
		t.Error("the connection is open after its writer was closed")
	}
}
