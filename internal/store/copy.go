package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"strings"

	"tutti/internal/core"
)

// table is a table of the store. sequence is the column that numbers its rows, empty for none.
type table struct{ name, sequence string }

// tables are all tables, each after those that it refers to.
var tables = []table{
	{"analysis_type_name", ""},
	{"analysis_type", "seq"},
	{"study", ""},
	{"analysis", "seq"},
	{"analysis_file", ""},
	{"outbox", "seq"},
	{"api_key", ""},
	{"saved_set", ""},
	{"secret", ""},
	{"imported_analysis", ""},
}

// Bounds of one INSERT of a copy: rows, and bytes of the values of all but the last row.
const (
	copiedRows  = 100
	copiedBytes = 4 << 20
)

// digest identifies the rows of a table, whatever their order.
type digest struct {
	rows int64
	sum  [sha256.Size]byte // of the hashes of all rows, by exclusive or
}

// CopyTo copies all tables to another store, in one transaction that ends only if the counts and the hashes of all rows are equal, and
// returns the number of rows. A table that is equal already is not written, so that a copy can be repeated. CodeConflict when the
// other store has different rows. Nobody may write to s meanwhile.
func (s *Store) CopyTo(ctx context.Context, to *Store) (rows int64, err error) {
	const doing = "copying the store"
	wanted := make([]digest, len(tables))
	for i, t := range tables {
		if wanted[i], err = digestOf(ctx, s.Read(), t); err != nil {
			return 0, WrapError(doing, err)
		}
		rows += wanted[i].rows
	}
	return rows, to.Update(ctx, func(ctx context.Context, tx *Tx) error {
		for i, t := range tables {
			if err := s.continueNumbering(ctx, tx, t); err != nil {
				return WrapError(doing+": table "+t.name, err)
			}
			found, err := digestOf(ctx, tx, t)
			if err != nil {
				return WrapError(doing, err)
			}
			if found == wanted[i] {
				continue
			}
			if found.rows > 0 {
				return &core.Error{
					Code: core.CodeConflict, Message: fmt.Sprintf("the other store has %d rows in the table %s already, which are not those of this one", found.rows, t.name),
					Hint: "name an empty database in store.url, or an empty schema by search_path",
				}
			}
			if err := s.copyTable(ctx, tx, t); err != nil {
				return WrapError(doing+": table "+t.name, err)
			}
			if found, err = digestOf(ctx, tx, t); err != nil {
				return WrapError(doing, err)
			}
			if found != wanted[i] {
				return core.NewError(core.CodeInternal, fmt.Sprintf("%s: the rows of table %s are different after the copy", doing, t.name))
			}
		}
		return nil
	})
}

// digestOf returns the digest of a table.
func digestOf(ctx context.Context, from Conn, t table) (digest, error) {
	var d digest
	var encoded []byte
	err := eachRow(ctx, from, t, func(_ []string, values []any) error {
		encoded = encoded[:0]
		for _, value := range values {
			switch v := value.(type) {
			case int64:
				encoded = binary.BigEndian.AppendUint64(append(encoded, 'i'), uint64(v)) //nolint:gosec // the bits are what counts
			case string:
				encoded = append(binary.BigEndian.AppendUint64(append(encoded, 't'), uint64(len(v))), v...)
			case []byte:
				encoded = append(binary.BigEndian.AppendUint64(append(encoded, 'b'), uint64(len(v))), v...)
			default:
				return fmt.Errorf("a value of type %T", v)
			}
		}
		for i, b := range sha256.Sum256(encoded) {
			d.sum[i] ^= b
		}
		d.rows++
		return nil
	})
	return d, err
}

// eachRow calls each with the columns and the values of every row of a table.
func eachRow(ctx context.Context, from Conn, t table, each func(columns []string, values []any) error) (err error) {
	rows, err := from.QueryContext(ctx, "SELECT * FROM "+t.name) //nolint:gosec // the name of a table, not input
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
	}()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, pointers := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return err
		}
		for i, value := range values {
			if b, is := value.([]byte); is && b == nil { // SQLite's driver returns an empty blob so, which would be written as NULL
				values[i] = []byte{}
			}
		}
		if err := each(columns, values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// copyTable inserts all rows of a table of s into tx, with their numbers.
func (s *Store) copyTable(ctx context.Context, tx *Tx, t table) error {
	var columns []string
	var values []any
	size := 0
	flush := func() error {
		if len(values) == 0 {
			return nil
		}
		_, err := tx.ExecContext(ctx, insertOf(t, columns, len(values)/len(columns), tx.postgres), values...)
		values, size = values[:0], 0
		return err
	}
	err := eachRow(ctx, s.Read(), t, func(names []string, row []any) error {
		columns = names
		values = append(values, row...)
		for _, value := range row {
			switch v := value.(type) {
			case string:
				size += len(v)
			case []byte:
				size += len(v)
			}
		}
		if len(values) < copiedRows*len(columns) && size < copiedBytes {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return err
}

// continueNumbering makes tx number new rows of a table after those of s: SQLite remembers the last number that it gave, also of a row
// that is gone.
func (s *Store) continueNumbering(ctx context.Context, tx *Tx, t table) error {
	if t.sequence == "" || s.postgres || !tx.postgres {
		return nil
	}
	var last sql.NullInt64
	if err := s.Read().QueryRowContext(ctx, "SELECT max(seq) FROM sqlite_sequence WHERE name = $1", t.name).Scan(&last); err != nil {
		return err
	}
	if !last.Valid || last.Int64 == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, "SELECT setval(s::regclass, GREATEST($3, pg_sequence_last_value(s::regclass))) FROM pg_get_serial_sequence($1, $2) AS s",
		t.name, t.sequence, last.Int64)
	return err
}

// insertOf returns the INSERT of a number of rows.
func insertOf(t table, columns []string, rows int, postgres bool) string {
	var b strings.Builder
	b.WriteString("INSERT INTO " + t.name + " (" + strings.Join(columns, ", ") + ")")
	if postgres && t.sequence != "" {
		b.WriteString(" OVERRIDING SYSTEM VALUE")
	}
	b.WriteString(" VALUES ")
	for i := range rows * len(columns) {
		switch {
		case i == 0:
			b.WriteString("(")
		case i%len(columns) == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", i+1)
	}
	b.WriteString(")")
	return b.String()
}
