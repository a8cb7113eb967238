package metadata

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/store"
)

// prepared is an analysis to import in the form in which it is stored.
type prepared struct {
	document
	whole []byte
	files []file
	// token is the last change in the other repository, in microseconds since 1970.
	token int64
}

// Import stores analyses of another repository with their ids, object ids, states, times and history, in one transaction. They are not
// validated, may have files that others have too, and write no events. An analysis that was imported before is replaced if it has not
// changed here since. report is called for each after the transaction, with the reason for ImportSkipped and ImportConflict. Their study
// must exist.
func (r *Repository) Import(ctx context.Context, analyses []core.ImportedAnalysis, report func(id string, did core.ImportResult, why string)) error {
	ready := make([]prepared, 0, len(analyses))
	reasons := map[string]string{}
	for i := range analyses {
		p, err := r.prepare(&analyses[i])
		if err != nil {
			reasons[analyses[i].ID] = core.MessageOf(err)
			continue
		}
		ready = append(ready, p)
	}
	results := map[string]core.ImportResult{}
	err := r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		clear(results)
		for i := range ready {
			did, err := r.importOne(ctx, tx, &ready[i])
			if err != nil {
				return err
			}
			results[ready[i].id] = did
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
			report(id, core.ImportSkipped, reasons[id])
		case did == core.ImportConflict:
			report(id, did, "the analysis has changed in both repositories, or was not imported")
		default:
			report(id, did, "")
		}
	}
	return nil
}

// prepare returns an analysis as it is stored; CodeInvalid when it cannot be.
func (r *Repository) prepare(a *core.ImportedAnalysis) (prepared, error) {
	if !storable(a.ID) || a.ID == "" || !a.State.Valid() {
		return prepared{}, parameterError("the id or the state of the analysis is not valid")
	}
	data, err := parseObject(a.Data)
	if err != nil {
		return prepared{}, err
	}
	doc := []byte{'{'}
	for _, m := range membersOf(gjson.Parse(data)) {
		if m.name != "files" && m.name != "studyId" && m.name != "analysisType" {
			doc = appendMember(doc, m.key, m.value)
		}
	}
	doc = append(appendMember(doc, `"files"`, ""), '[')
	for i, f := range a.Files {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = append(doc, f...)
	}
	text, err := parseObject(append(doc, ']', '}'))
	if err != nil {
		return prepared{}, err
	}
	p, err := newPayload(text)
	if err != nil {
		return prepared{}, err
	}
	for i := range p.files {
		if p.files[i].objectID == "" || !storable(p.files[i].objectID) {
			return prepared{}, parameterError("a file of the analysis has no object id")
		}
	}
	history := slices.Clone(a.History)
	slices.SortStableFunc(history, func(x, y core.StateChange) int { return x.At.Compare(y.At) })
	last := a.UpdatedAt
	ready := prepared{files: indexedFiles(p.files), document: document{
		id: a.ID, study: a.Study, state: a.State, kind: a.Type, createdAt: formatTime(store.Micros(a.CreatedAt)), history: "[]",
		rest: p.rest(a.Study, a.ID),
	}}
	for _, change := range history {
		ready.state = change.From
		ready.setState(change.To, store.Micros(change.At))
		if change.At.After(last) {
			last = change.At
		}
	}
	ready.state, ready.token = a.State, store.Micros(last)
	ready.updatedAt = formatTime(ready.token)
	ready.whole, err = r.encode(&ready.document)
	return ready, err
}

// indexedFiles returns the files that can be found by name: the first of each name of at most maxFileNameBytes.
func indexedFiles(files []file) []file {
	var found []file
	names := map[string]struct{}{}
	for _, f := range files {
		if _, twice := names[f.name]; twice || f.name == "" || len(f.name) > maxFileNameBytes {
			continue
		}
		names[f.name] = struct{}{}
		found = append(found, f)
	}
	return found
}

// importOne stores one analysis.
func (r *Repository) importOne(ctx context.Context, tx *store.Tx, p *prepared) (core.ImportResult, error) {
	const doing = "importing an analysis"
	var token int64
	var body []byte
	err := tx.QueryRowContext(ctx, "SELECT updated_at, body FROM analysis WHERE id = $1", p.id).Scan(&token, &body)
	if errors.Is(err, sql.ErrNoRows) {
		if err := r.insert(ctx, tx, &p.document, p.token, p.whole, p.files); err != nil {
			return "", err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO imported_analysis (analysis_id, source_updated_at, updated_at) VALUES ($1, $2, $2)", p.id, p.token)
		return core.ImportAdded, store.WrapError(doing, err)
	}
	if err != nil {
		return "", store.WrapError(doing, err)
	}
	var source, imported int64
	err = tx.QueryRowContext(ctx, "SELECT source_updated_at, updated_at FROM imported_analysis WHERE analysis_id = $1", p.id).Scan(&source, &imported)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return core.ImportConflict, nil
	case err != nil:
		return "", store.WrapError(doing, err)
	case imported != token && source == p.token:
		return core.ImportKept, nil
	case imported != token:
		return core.ImportConflict, nil
	}
	before := current{document: parseDocument(body), token: token}
	if p.updatedAt = before.updatedAt; string(p.bytes()) == string(body) {
		return core.ImportEqual, nil
	}
	// The index writes a document only with a newer version, which updatedAt determines; Song does not change it with a file.
	next := max(p.token, token+1)
	p.updatedAt = formatTime(next)
	if err := r.overwrite(ctx, tx, &before, &p.document, next, p.bytes()); err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM analysis_file WHERE analysis_id = $1", p.id); err != nil {
		return "", store.WrapError(doing, err)
	}
	if err := insertFiles(ctx, tx, p.study, p.id, p.files); err != nil {
		return "", err
	}
	_, err = tx.ExecContext(ctx, "UPDATE imported_analysis SET source_updated_at = $1, updated_at = $2 WHERE analysis_id = $3", p.token, next, p.id)
	return core.ImportUpdated, store.WrapError(doing, err)
}
