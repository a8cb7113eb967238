package metadata

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
	"tutti/internal/store"
)

// backfillChunk is the number of analyses whose files BackfillEntities completes in one transaction.
const backfillChunk = 100

// entities lists the files of all analyses.
type entities struct {
	store *store.Store
	log   *slog.Logger
}

// Entities returns files of analyses in any state, in the order of their object ids, and the number of all that match q.
func (r *entities) Entities(ctx context.Context, q datamodel.EntityQuery) ([]datamodel.Entity, int, error) {
	const doing = "reading entities"
	condition, values := entityFilter(q)
	if condition == "" {
		return nil, 0, nil
	}
	var total int
	err := r.store.Read().QueryRowContext(ctx, "SELECT count(*) FROM analysis_file WHERE "+condition, values...).Scan(&total)
	if err != nil {
		return nil, 0, store.WrapError("counting entities", err)
	}
	n := len(values)
	rows, err := r.store.Read().QueryContext(ctx,
		"SELECT object_id, analysis_id, name, study, access FROM analysis_file WHERE "+condition+
			" ORDER BY object_id, analysis_id, name LIMIT $"+strconv.Itoa(n+1)+" OFFSET $"+strconv.Itoa(n+2),
		append(values, q.Limit, q.Offset)...)
	if err != nil {
		return nil, 0, store.WrapError(doing, err)
	}
	defer func() { _ = rows.Close() }()
	var found []datamodel.Entity
	for rows.Next() {
		var e datamodel.Entity
		if err := rows.Scan(&e.ObjectID, &e.AnalysisID, &e.FileName, &e.Study, &e.Access); err != nil {
			return nil, 0, store.WrapError(doing, err)
		}
		found = append(found, e)
	}
	return found, total, store.WrapError(doing, rows.Err())
}

// entityFilter returns the condition of a query and its values; "" when no file can match.
func entityFilter(q datamodel.EntityQuery) (condition string, values []any) {
	conditions := []string{"object_id <> ''"}
	for _, f := range []struct{ column, value string }{
		{"object_id", q.ObjectID}, {"analysis_id", q.AnalysisID}, {"name", q.FileName}, {"study", q.Study}, {"access", q.Access},
	} {
		if f.value == "" {
			continue
		}
		if !analysis.Storable(f.value) {
			return "", nil
		}
		values = append(values, f.value)
		conditions = append(conditions, f.column+" = $"+strconv.Itoa(len(values)))
	}
	return strings.Join(conditions, " AND "), values
}

// Entity returns one file by its object id, CodeNotFound (legacy.entity.not.found) when there is none.
func (r *entities) Entity(ctx context.Context, objectID string) (datamodel.Entity, error) {
	found, _, err := r.Entities(ctx, datamodel.EntityQuery{ObjectID: objectID, Limit: 1})
	if err == nil && (objectID == "" || len(found) == 0) {
		err = newError(core.CodeNotFound, idNoEntity, "no file has this object id")
	}
	if err != nil {
		return datamodel.Entity{}, err
	}
	return found[0], nil
}

// BackfillEntities stores the object ids and the access of files that were stored by versions of tutti without these columns. It
// must be called before the Repository serves requests; if there is nothing to do, it costs one query that uses an index of the
// database.
func (r *entities) BackfillEntities(ctx context.Context) error {
	for filled := 0; ; {
		ids, err := r.analysesWithoutEntities(ctx)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			if filled > 0 {
				r.log.InfoContext(ctx, "object ids added to the stored files", "analyses", filled)
			}
			return nil
		}
		err = r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
			for _, id := range ids {
				if err := backfill(ctx, tx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		filled += len(ids)
	}
}

func (r *entities) analysesWithoutEntities(ctx context.Context) ([]string, error) {
	const doing = "finding files without an object id"
	rows, err := r.store.Read().QueryContext(ctx, "SELECT analysis_id FROM analysis_file WHERE object_id = '' LIMIT $1", backfillChunk)
	if err != nil {
		return nil, store.WrapError(doing, err)
	}
	defer func() { _ = rows.Close() }()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, store.WrapError(doing, err)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids) // processes that start together update rows in the same order
	return slices.Compact(ids), store.WrapError(doing, rows.Err())
}

// backfill stores the object ids and the access of the files of one analysis.
func backfill(ctx context.Context, tx *store.Tx, id string) error {
	const doing = "storing the object ids of files"
	rows := map[string]string{}
	var body []byte
	err := tx.QueryRowContext(ctx, "SELECT body FROM analysis WHERE id = $1", id).Scan(&body)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return store.WrapError(doing, err)
	}
	if body != nil {
		stored := analysis.Parse(body)
		for _, f := range stored.Files() {
			rows[f.Name] = f.Access
		}
	}
	names, err := namesWithoutObject(ctx, tx, id)
	if err != nil {
		return err
	}
	for _, name := range names {
		_, err := tx.ExecContext(ctx, "UPDATE analysis_file SET object_id = $1, access = $2 WHERE analysis_id = $3 AND name = $4",
			analysis.ObjectID(id, name), rows[name], id, name)
		if err != nil {
			return store.WrapError(doing, err)
		}
	}
	return nil
}

func namesWithoutObject(ctx context.Context, tx *store.Tx, id string) ([]string, error) {
	const doing = "finding files without an object id"
	rows, err := tx.QueryContext(ctx, "SELECT name FROM analysis_file WHERE analysis_id = $1 AND object_id = ''", id)
	if err != nil {
		return nil, store.WrapError(doing, err)
	}
	defer func() { _ = rows.Close() }()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, store.WrapError(doing, err)
		}
		names = append(names, name)
	}
	return names, store.WrapError(doing, rows.Err())
}
