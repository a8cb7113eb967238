package metadata

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
	"tutti/internal/store"
)

// maxTries is how often a change is tried when concurrent changes of the analysis interfere.
const maxTries = 64

// Submit adds an unpublished analysis and returns its id, which the repository chooses. allowDuplicates accepts files whose MD5 sum
// another analysis of the study has. Errors: CodeInvalid (payload.parsing, or the validator's), CodeNotFound for an unknown study,
// CodeConflict (study.id.mismatch, duplicate.file), CodeTooLarge.
func (r *Repository) Submit(ctx context.Context, study string, body []byte, allowDuplicates bool) (string, error) {
	p, err := analysis.ParseSubmission(body)
	if err != nil {
		return "", err
	}
	if err := r.requireStudy(ctx, r.store.Read(), study); err != nil {
		return "", err
	}
	kind, err := r.validate(ctx, study, &p)
	if err != nil {
		return "", err
	}
	id, err := uuid.NewV7() // ordered by time: random ids make index writes more expensive
	if err != nil {
		return "", core.WrapError(core.CodeInternal, "making an id", err)
	}
	p.SetObjectIDs(id.String(), nil)
	micros := store.Micros(r.cfg.Now())
	added := analysis.New(study, id.String(), kind, &p, micros)
	whole, err := r.encode(ctx, &added)
	if err != nil {
		return "", err
	}
	event := r.indexed(added.State)
	err = r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if !allowDuplicates {
			if err := checkDuplicates(ctx, tx, study, "", p.Files, indexesUpTo(len(p.Files))); err != nil {
				return err
			}
		}
		if err := r.insert(ctx, tx, &added, micros, whole, p.Files); err != nil || !event {
			return err
		}
		return r.writeEvent(ctx, tx, study, added.ID)
	})
	if err != nil {
		return "", err
	}
	r.recordChange(ctx, actionSubmit, study, added.ID, event)
	return added.ID, nil
}

func indexesUpTo(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

// validate validates a complete payload, outside of any transaction: the validator may call other services.
func (r *Repository) validate(ctx context.Context, study string, p *analysis.Payload) (datamodel.AnalysisTypeRef, error) {
	if err := p.CheckStudy(study); err != nil {
		return datamodel.AnalysisTypeRef{}, err
	}
	kind, err := r.validator.Validate(ctx, study, p.ValidationInput())
	if err != nil {
		return datamodel.AnalysisTypeRef{}, err
	}
	return kind, p.CheckFiles()
}

// encode returns the bytes of a document: CodeInvalid (schema.violation) when the index would reject it, and the errors of bounded.
func (r *Repository) encode(ctx context.Context, d *analysis.Document) ([]byte, error) {
	whole, err := r.bounded(d)
	if err != nil {
		return nil, err
	}
	if fault := r.indexFault(ctx, d, whole); fault != "" {
		return nil, analysis.ViolationError("the analysis cannot be indexed", []core.Violation{{Pointer: "", Message: fault, Keyword: "index"}})
	}
	return whole, nil
}

// bounded returns the bytes of a document, CodeTooLarge when it exceeds Config.MaxBytes, not counting the state history.
func (r *Repository) bounded(d *analysis.Document) ([]byte, error) {
	whole := d.Bytes()
	if size := len(whole) - len(d.History); size > r.cfg.MaxBytes {
		return nil, &core.Error{
			Code: core.CodeTooLarge, Message: "the analysis is too large to be stored",
			Hint: fmt.Sprintf("it has %d bytes; the limit is %d, index.maxRecordBytes in the configuration", size, r.cfg.MaxBytes),
		}
	}
	return whole, nil
}

// indexFault returns why the index would reject a document, "" if it would not.
func (r *Repository) indexFault(ctx context.Context, d *analysis.Document, whole []byte) string {
	if r.cfg.CheckDocument == nil {
		return ""
	}
	return r.cfg.CheckDocument(ctx, datamodel.Analysis{ID: d.ID, Study: d.Study, State: d.State, Body: whole})
}

func (r *Repository) insert(ctx context.Context, tx *store.Tx, d *analysis.Document, micros int64, whole []byte, files []analysis.File) error {
	_, err := tx.ExecContext(ctx,
		"INSERT INTO analysis (id, study, state, type_name, type_version, updated_at, body) VALUES ($1, $2, $3, $4, $5, $6, $7)",
		d.ID, d.Study, string(d.State), d.Kind.Name, d.Kind.Version, micros, whole)
	if err != nil {
		return store.WrapError("storing an analysis", err)
	}
	return insertFiles(ctx, tx, d.Study, d.ID, files)
}

// Replace replaces the content of an analysis, which keeps its id, state, createdAt and history, and its files when the body has
// none. The body is validated like a submission; files whose MD5 sum the analysis did not have before are rejected when another
// analysis has it. Errors: those of Submit, CodeNotFound for an unknown analysis, CodeInvalid for the analysisId of another
// analysis, CodeConflict (suppressed.state.transition) for a suppressed analysis.
func (r *Repository) Replace(ctx context.Context, study, id string, body []byte) error {
	p, err := analysis.ParseReplacement(body, id)
	if err != nil {
		return err
	}
	return r.change(ctx, actionReplace, study, id, func(ctx context.Context, c *current) (analysis.Payload, datamodel.AnalysisTypeRef, error) {
		if c.State == datamodel.StateSuppressed {
			return analysis.Payload{}, datamodel.AnalysisTypeRef{}, suppressedError()
		}
		whole, err := p.Complete(study, &c.Document)
		if err != nil {
			return analysis.Payload{}, datamodel.AnalysisTypeRef{}, err
		}
		kind, err := r.validate(ctx, study, &whole)
		return whole, kind, err
	})
}

// Merge applies a JSON merge patch (RFC 7396) to an analysis and validates the result like a submission, against the latest version
// of its type unless the patch names one or Config.KeepVersion is set. A patch must not change analysisId, studyId and
// analysisState; the repository's other own members are ignored. Errors are those of Replace.
func (r *Repository) Merge(ctx context.Context, study, id string, patch []byte) error {
	change, err := analysis.ParsePatch(patch, study, id)
	if err != nil {
		return err
	}
	return r.change(ctx, actionMerge, study, id, func(ctx context.Context, c *current) (analysis.Payload, datamodel.AnalysisTypeRef, error) {
		if c.State == datamodel.StateSuppressed {
			return analysis.Payload{}, datamodel.AnalysisTypeRef{}, suppressedError()
		}
		p, err := change.Apply(&c.Document, r.cfg.KeepVersion)
		if err != nil {
			return analysis.Payload{}, datamodel.AnalysisTypeRef{}, err
		}
		kind, err := r.validate(ctx, study, &p)
		return p, kind, err
	})
}

// change rewrites an analysis with the result of edit, and tries again when the analysis was changed concurrently. It changes nothing
// when edit returns errUnchanged.
func (r *Repository) change(ctx context.Context, did action, study, id string,
	edit func(context.Context, *current) (analysis.Payload, datamodel.AnalysisTypeRef, error),
) error {
	unlock, err := r.locks.Lock(ctx, id)
	if err != nil {
		return core.WrapError(core.CodeUnavailable, "waiting for another change of the analysis", err)
	}
	defer unlock()
	for range maxTries {
		c, err := r.load(ctx, r.store.Read(), study, id)
		if err != nil {
			return err
		}
		p, kind, err := edit(ctx, &c)
		if errors.Is(err, errUnchanged) {
			return nil
		}
		if err != nil {
			return err
		}
		err = r.rewrite(ctx, &c, &p, kind)
		if errors.Is(err, errChanged) {
			continue
		}
		if err == nil {
			r.recordChange(ctx, did, study, id, r.indexed(c.State))
		}
		return err
	}
	return core.NewError(core.CodeOverloaded, "the analysis is changed too often concurrently; retry later")
}

// rewrite replaces the content of c with a payload and writes its event; errChanged when c is no longer current.
func (r *Repository) rewrite(ctx context.Context, c *current, p *analysis.Payload, kind datamodel.AnalysisTypeRef) error {
	before := c.Files()
	p.SetObjectIDs(c.ID, before)
	micros := r.nextToken(c)
	next := c.Document
	next.SetPayload(p, kind, micros)
	whole, err := r.encode(ctx, &next)
	if err != nil {
		return err
	}
	fresh, positions := addedFiles(before, p.Files)
	return r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := checkDuplicates(ctx, tx, c.Study, c.ID, fresh, positions); err != nil {
			return err
		}
		if err := r.overwrite(ctx, tx, c, &next, micros, whole); err != nil {
			return err
		}
		rows := indexedFiles(p.Files)
		if !sameFiles(indexedFiles(before), rows) {
			if _, err := tx.ExecContext(ctx, "DELETE FROM analysis_file WHERE analysis_id = $1", c.ID); err != nil {
				return store.WrapError("replacing the files of an analysis", err)
			}
			if err := insertFiles(ctx, tx, c.Study, c.ID, rows); err != nil {
				return err
			}
		}
		if !r.indexed(c.State) {
			return nil
		}
		return r.writeEvent(ctx, tx, c.Study, c.ID)
	})
}

// overwrite replaces c with next; errChanged when c is no longer current.
func (r *Repository) overwrite(ctx context.Context, tx *store.Tx, c *current, next *analysis.Document, micros int64, whole []byte) error {
	result, err := tx.ExecContext(ctx,
		"UPDATE analysis SET state = $1, type_name = $2, type_version = $3, updated_at = $4, body = $5 WHERE id = $6 AND updated_at = $7",
		string(next.State), next.Kind.Name, next.Kind.Version, micros, whole, c.ID, c.token)
	if err != nil {
		return store.WrapError("storing an analysis", err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return store.WrapError("storing an analysis", err)
	}
	return errChanged
}
