package metadata

import (
	"context"
	"database/sql"
	"errors"
	"hash/fnv"
	"slices"
	"strings"

	"tutti/internal/base/order"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
	"tutti/internal/store"
)

// prepared is an analysis to import in the form in which it is stored.
type prepared struct {
	analysis.Document
	whole []byte
	files []analysis.File
	// token is the last change in the other repository, in microseconds since 1970.
	token int64
	// hash identifies the content in the other repository.
	hash int64
	// note names the files that cannot be found by their object ids, and why the index would reject the analysis.
	note string
}

// Import stores analyses of another repository with their ids, object ids, states, times and history, in one transaction. They are not
// validated, may have files that others have too, and write no events. An analysis that was imported before is replaced if it has not
// changed here since. report is called for each after the transaction, with the reason for ImportSkipped and ImportConflict, and for the
// others with the files that cannot be found by their object ids. Their study must exist.
func (r *Repository) Import(ctx context.Context, analyses []datamodel.ImportedAnalysis, report func(id string, did datamodel.ImportResult, why string)) error {
	ready := make([]prepared, 0, len(analyses))
	reasons := map[string]string{} // and notes
	for i := range analyses {
		p, err := r.prepare(ctx, &analyses[i])
		if err != nil {
			reasons[analyses[i].ID] = core.MessageOf(err)
			continue
		}
		ready, reasons[p.ID] = append(ready, p), p.note
	}
	results := map[string]datamodel.ImportResult{}
	err := r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		clear(results)
		for i := range ready {
			did, err := r.importOne(ctx, tx, &ready[i])
			if err != nil {
				return err
			}
			results[ready[i].ID] = did
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.generation.Add(1)
	for i := range analyses {
		id := analyses[i].ID
		switch did, stored := results[id]; {
		case !stored:
			report(id, datamodel.ImportSkipped, reasons[id])
		case did == datamodel.ImportConflict:
			report(id, did, "the analysis has changed in both repositories, or was not imported")
		default:
			report(id, did, reasons[id])
		}
	}
	return nil
}

// prepare returns an analysis as it is stored; CodeInvalid when it cannot be.
func (r *Repository) prepare(ctx context.Context, a *datamodel.ImportedAnalysis) (prepared, error) {
	if !analysis.Storable(a.ID) || a.ID == "" || !a.State.Valid() {
		return prepared{}, parameterError("the id or the state of the analysis is not valid")
	}
	p, err := analysis.ParseImported(a)
	if err != nil {
		return prepared{}, err
	}
	history := slices.Clone(a.History)
	order.Stable(history, func(x, y datamodel.StateChange) int { return x.At.Compare(y.At) })
	last := a.UpdatedAt
	ready := prepared{files: indexedFiles(p.Files), note: unindexed(p.Files), Document: analysis.New(a.Study, a.ID, a.Type, &p, store.Micros(a.CreatedAt))}
	for _, change := range history {
		if !change.From.Valid() || !change.To.Valid() {
			return prepared{}, parameterError("a state in the history of the analysis is not valid")
		}
		ready.State = change.From
		ready.SetState(change.To, store.Micros(change.At))
		if change.At.After(last) {
			last = change.At
		}
	}
	ready.State, ready.token = a.State, store.Micros(last)
	ready.UpdatedAt = analysis.FormatTime(ready.token)
	ready.whole, err = r.bounded(&ready.Document)
	if fault := r.indexFault(ctx, &ready.Document, ready.whole); err == nil && fault != "" {
		ready.note = strings.Join(slices.DeleteFunc([]string{ready.note, "it cannot be indexed: " + fault}, func(s string) bool { return s == "" }), "; ")
	}
	h := fnv.New64a()
	_, _ = h.Write(ready.whole) // never fails
	ready.hash = int64(h.Sum64())
	return ready, err
}

// unindexed returns a note that names the files that indexedFiles omits, "" for none.
func unindexed(files []analysis.File) string {
	found := map[string]struct{}{}
	for _, f := range indexedFiles(files) {
		found[f.ObjectID] = struct{}{}
	}
	var left []string
	for _, f := range files {
		if _, ok := found[f.ObjectID]; !ok {
			left = append(left, analysis.Shortened(f.ObjectID))
		}
	}
	if len(left) == 0 {
		return ""
	}
	return "files whose name is empty, too long or that of another file, which /entities does not list: " + strings.Join(left, ", ")
}

// indexedFiles returns the files that can be found by name: the first of each name of at most analysis.MaxFileNameBytes.
func indexedFiles(files []analysis.File) []analysis.File {
	var found []analysis.File
	names := map[string]struct{}{}
	for _, f := range files {
		if _, twice := names[f.Name]; twice || f.Name == "" || len(f.Name) > analysis.MaxFileNameBytes {
			continue
		}
		names[f.Name] = struct{}{}
		found = append(found, f)
	}
	return found
}

// importOne stores one analysis.
func (r *Repository) importOne(ctx context.Context, tx *store.Tx, p *prepared) (datamodel.ImportResult, error) {
	const doing = "importing an analysis"
	var study string
	var token int64
	var body []byte
	err := tx.QueryRowContext(ctx, "SELECT study, updated_at, body FROM analysis WHERE id = $1", p.ID).Scan(&study, &token, &body)
	if errors.Is(err, sql.ErrNoRows) {
		if err := r.insert(ctx, tx, &p.Document, p.token, p.whole, p.files); err != nil {
			return "", err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO imported_analysis (analysis_id, source_hash, updated_at) VALUES ($1, $2, $3)", p.ID, p.hash, p.token)
		return datamodel.ImportAdded, store.WrapError(doing, err)
	}
	if err != nil {
		return "", store.WrapError(doing, err)
	}
	var hash, imported int64
	err = tx.QueryRowContext(ctx, "SELECT source_hash, updated_at FROM imported_analysis WHERE analysis_id = $1", p.ID).Scan(&hash, &imported)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && study != p.Study:
		return datamodel.ImportConflict, nil
	case err != nil:
		return "", store.WrapError(doing, err)
	case imported != token && hash == p.hash:
		return datamodel.ImportKept, nil
	case imported != token:
		return datamodel.ImportConflict, nil
	}
	before := current{Document: analysis.Parse(body), token: token}
	if p.UpdatedAt = before.UpdatedAt; string(p.Bytes()) == string(body) {
		_, err = tx.ExecContext(ctx, "UPDATE imported_analysis SET source_hash = $1 WHERE analysis_id = $2 AND source_hash <> $1", p.hash, p.ID)
		return datamodel.ImportEqual, store.WrapError(doing, err)
	}
	// The index writes a document only with a newer version, which updatedAt determines; Song does not change it with a file.
	next := max(p.token, token+1)
	p.UpdatedAt = analysis.FormatTime(next)
	err = r.overwrite(ctx, tx, &before, &p.Document, next, p.Bytes())
	if errors.Is(err, errChanged) {
		return datamodel.ImportConflict, nil // a server on the same PostgreSQL changed it
	}
	if err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM analysis_file WHERE analysis_id = $1", p.ID); err != nil {
		return "", store.WrapError(doing, err)
	}
	if err := insertFiles(ctx, tx, p.Study, p.ID, p.files); err != nil {
		return "", err
	}
	_, err = tx.ExecContext(ctx, "UPDATE imported_analysis SET source_hash = $1, updated_at = $2 WHERE analysis_id = $3", p.hash, next, p.ID)
	return datamodel.ImportUpdated, store.WrapError(doing, err)
}
