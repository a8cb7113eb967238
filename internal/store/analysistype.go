package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// analysisTypeColumns are the columns that scanAnalysisType reads.
const analysisTypeColumns = "name, version, created_at, options, schema"

// AddAnalysisType registers the next version of an analysis type, in one transaction. next receives the latest version, nil for a
// new name, and returns the version to store; its Name and Version are set here, and its CreatedAt unless next set it. An error of
// next rolls the registration back and is returned unchanged. next may be called again after the database rolled it back.
func (s *Store) AddAnalysisType(
	ctx context.Context, name string, next func(previous *datamodel.AnalysisType) (datamodel.AnalysisType, error),
) (datamodel.AnalysisType, error) {
	const doing = "registering an analysis type"
	if err := checkText("name of an analysis type", name); err != nil {
		return datamodel.AnalysisType{}, err
	}
	var added datamodel.AnalysisType
	err := s.Update(ctx, func(ctx context.Context, tx *Tx) error {
		var version int
		// The row with the version counter stays locked until the transaction ends.
		err := tx.QueryRowContext(ctx, `INSERT INTO analysis_type_name AS n (name, latest) VALUES ($1, 1)
			ON CONFLICT (name) DO UPDATE SET latest = n.latest + 1 RETURNING latest`, name).Scan(&version)
		if err != nil {
			return WrapError(doing, err)
		}
		previous, err := previousAnalysisType(ctx, tx, name, version)
		if err != nil {
			return err
		}
		if added, err = next(previous); err != nil {
			return err
		}
		added.Name, added.Version = name, version
		if added.CreatedAt.IsZero() {
			added.CreatedAt = time.Now()
		}
		added.CreatedAt = Time(Micros(added.CreatedAt)) // as it is read back
		return insertAnalysisType(ctx, tx, added)
	})
	if err != nil {
		return datamodel.AnalysisType{}, err
	}
	return added, nil
}

// AddFirstAnalysisTypes stores types, all version 1 of different names, in their order, in one transaction, if the store has no
// analysis type yet. It reports whether it did. Of processes that call it at once only one does.
func (s *Store) AddFirstAnalysisTypes(ctx context.Context, types []datamodel.AnalysisType) (added bool, err error) {
	const doing = "registering the first analysis types"
	err = s.Update(ctx, func(ctx context.Context, tx *Tx) error {
		added = false
		if err := tx.Lock(ctx, "analysis_type/first"); err != nil {
			return err
		}
		var present int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM analysis_type").Scan(&present); err != nil {
			return WrapError(doing, err)
		}
		if present > 0 {
			return nil
		}
		for _, t := range types {
			if _, err := tx.ExecContext(ctx, "INSERT INTO analysis_type_name (name, latest) VALUES ($1, 1)", t.Name); err != nil {
				return WrapError(doing, err)
			}
			if err := insertAnalysisType(ctx, tx, t); err != nil {
				return err
			}
		}
		added = true
		return nil
	})
	return added && err == nil, err
}

// previousAnalysisType returns the version before version, nil for the first.
func previousAnalysisType(ctx context.Context, tx *Tx, name string, version int) (*datamodel.AnalysisType, error) {
	if version == 1 {
		return nil, nil
	}
	previous, err := analysisType(ctx, tx, name, version-1)
	if err != nil {
		return nil, err
	}
	return &previous, nil
}

func insertAnalysisType(ctx context.Context, tx *Tx, t datamodel.AnalysisType) error {
	if !json.Valid(t.Schema) || !utf8.Valid(t.Schema) {
		return core.NewError(core.CodeInvalid, "the schema of the analysis type is not valid JSON")
	}
	options, err := json.Marshal(t.Options)
	if err != nil {
		return core.WrapError(core.CodeInternal, "encoding the options of an analysis type", err)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO analysis_type ("+analysisTypeColumns+") VALUES ($1, $2, $3, $4, $5)",
		t.Name, t.Version, Micros(t.CreatedAt), string(options), string(t.Schema))
	return WrapError("storing an analysis type", err)
}

// AnalysisType returns one version of an analysis type, the latest for version 0. CodeNotFound when there is none.
func (s *Store) AnalysisType(ctx context.Context, name string, version int) (datamodel.AnalysisType, error) {
	return analysisType(ctx, s.Read(), name, version)
}

func analysisType(ctx context.Context, conn Conn, name string, version int) (datamodel.AnalysisType, error) {
	if checkText("name", name) != nil {
		return datamodel.AnalysisType{}, core.NewError(core.CodeNotFound, analysisTypeMissing(name, version))
	}
	var row *sql.Row
	if version == 0 {
		row = conn.QueryRowContext(ctx, "SELECT "+analysisTypeColumns+
			" FROM analysis_type WHERE name = $1 ORDER BY version DESC LIMIT 1", name)
	} else {
		row = conn.QueryRowContext(ctx, "SELECT "+analysisTypeColumns+
			" FROM analysis_type WHERE name = $1 AND version = $2", name, version)
	}
	t, err := scanAnalysisType(row)
	if errors.Is(err, sql.ErrNoRows) {
		return t, core.WrapError(core.CodeNotFound, analysisTypeMissing(name, version), err)
	}
	return t, WrapError("reading an analysis type", err)
}

func analysisTypeMissing(name string, version int) string {
	if version == 0 {
		return fmt.Sprintf("there is no analysis type %q", name)
	}
	return fmt.Sprintf("there is no version %d of an analysis type %q", version, name)
}

// ListAnalysisTypes returns the analysis types that match q, each version separately, and their number without Limit and Offset.
// Without Sort the newest registration is first, "version" and "name" sort ascending; Descending reverses each order. Equal values
// are ordered newest first. A Limit under 1 lists everything.
func (s *Store) ListAnalysisTypes(ctx context.Context, q datamodel.AnalysisTypeQuery) ([]datamodel.AnalysisType, int, error) {
	order, err := analysisTypeOrder(q)
	if err != nil {
		return nil, 0, err
	}
	where, args, err := analysisTypeFilter(s.postgres, q)
	if err != nil {
		return nil, 0, err
	}
	var total int
	err = s.Read().QueryRowContext(ctx, "SELECT count(*) FROM analysis_type "+where, args...).Scan(&total)
	if err != nil {
		return nil, 0, WrapError("counting analysis types", err)
	}
	if q.CountOnly {
		return nil, total, nil
	}
	limit := q.Limit
	if limit < 1 {
		limit = max(total, 1)
	}
	n := len(args)
	types, err := s.analysisTypes(ctx, fmt.Sprintf("%s ORDER BY %s LIMIT $%d OFFSET $%d", where, order, n+1, n+2),
		append(args, limit, max(q.Offset, 0))...)
	return types, total, err
}

func analysisTypeOrder(q datamodel.AnalysisTypeQuery) (string, error) {
	direction := " ASC"
	if q.Descending {
		direction = " DESC"
	}
	if len(q.Sort) == 0 {
		if q.Descending {
			return "seq ASC", nil
		}
		return "seq DESC", nil
	}
	var order strings.Builder
	for _, column := range q.Sort {
		if column != "version" && column != "name" {
			return "", core.NewError(core.CodeInvalid, "analysis types can be sorted by version or name")
		}
		order.WriteString(column + direction + ", ")
	}
	return order.String() + "seq DESC", nil
}

// analysisTypeFilter returns the condition of a query. Each list is one argument, so that the statement's text does not depend on
// its length.
func analysisTypeFilter(postgres bool, q datamodel.AnalysisTypeQuery) (string, []any, error) {
	names, versions := "(SELECT value FROM json_each($%d))", "(SELECT value FROM json_each($%d))"
	if postgres {
		names, versions = "(SELECT json_array_elements_text($%d::json))", "(SELECT json_array_elements_text($%d::json)::bigint)"
	}
	var conditions []string
	var args []any
	add := func(column, list string, values any) error {
		text, err := json.Marshal(values)
		if err != nil {
			return core.WrapError(core.CodeInternal, "encoding a query of analysis types", err)
		}
		args = append(args, string(text))
		conditions = append(conditions, column+" IN "+fmt.Sprintf(list, len(args)))
		return nil
	}
	if len(q.Names) > 0 {
		// No name contains a zero byte, and PostgreSQL does not accept one as an argument.
		possible := slices.DeleteFunc(slices.Clone(q.Names), func(n string) bool { return checkText("name", n) != nil })
		if err := add("name", names, possible); err != nil {
			return "", nil, err
		}
	}
	if len(q.Versions) > 0 {
		if err := add("version", versions, q.Versions); err != nil {
			return "", nil, err
		}
	}
	if len(conditions) == 0 {
		return "", nil, nil
	}
	return "WHERE " + strings.Join(conditions, " AND "), args, nil
}

func (s *Store) analysisTypes(ctx context.Context, rest string, args ...any) ([]datamodel.AnalysisType, error) {
	const doing = "listing analysis types"
	rows, err := s.Read().QueryContext(ctx, "SELECT "+analysisTypeColumns+" FROM analysis_type "+rest, args...)
	if err != nil {
		return nil, WrapError(doing, err)
	}
	defer func() { _ = rows.Close() }()
	var types []datamodel.AnalysisType
	for rows.Next() {
		t, err := scanAnalysisType(rows)
		if err != nil {
			return nil, WrapError(doing, err)
		}
		types = append(types, t)
	}
	return types, WrapError(doing, rows.Err())
}

// rowScanner is a *sql.Row or a *sql.Rows.
type rowScanner interface {
	Scan(into ...any) error
}

func scanAnalysisType(row rowScanner) (datamodel.AnalysisType, error) {
	var t datamodel.AnalysisType
	var created int64
	var options, schema string
	if err := row.Scan(&t.Name, &t.Version, &created, &options, &schema); err != nil {
		return datamodel.AnalysisType{}, err
	}
	if err := json.Unmarshal([]byte(options), &t.Options); err != nil {
		return datamodel.AnalysisType{}, core.WrapError(core.CodeInternal, "decoding the options of an analysis type", err)
	}
	t.CreatedAt, t.Schema = Time(created), json.RawMessage(schema)
	return t, nil
}

// checkText returns CodeInvalid for text that PostgreSQL cannot store, so that both databases accept the same values.
func checkText(what, text string) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return core.NewError(core.CodeInvalid, "the "+what+" must be UTF-8 without zero bytes")
	}
	return nil
}
