package metadata

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/store"
)

// maxTries is how often a change is made again because somebody else changed the analysis meanwhile.
const maxTries = 64

// Submit adds an analysis, unpublished, and returns its id, which the repository chooses. allowDuplicates takes files whose
// MD5 sum another analysis of the study has. Errors: CodeInvalid (payload.parsing, or what the validator says), CodeNotFound
// for an unknown study, CodeConflict (study.id.mismatch, duplicate.file), CodeTooLarge.
func (r *Repository) Submit(ctx context.Context, study string, body []byte, allowDuplicates bool) (string, error) {
	doc, err := parseObject(body)
	if err != nil {
		return "", err
	}
	p, err := newPayload(doc)
	if err != nil {
		return "", err
	}
	if err := r.needStudy(ctx, r.store.Read(), study); err != nil {
		return "", err
	}
	kind, err := r.validate(ctx, study, &p)
	if err != nil {
		return "", err
	}
	id, err := uuid.NewV7() // in the order of time: random ids cost more of the store
	if err != nil {
		return "", core.WrapError(core.CodeInternal, "making an id", err)
	}
	micros := store.Micros(r.cfg.Now())
	added := document{
		id: id.String(), study: study, state: core.StateUnpublished, createdAt: written(micros), updatedAt: written(micros),
		history: "[]", kind: kind, rest: p.rest(study, id.String()),
	}
	whole, err := r.bounded(&added)
	if err != nil {
		return "", err
	}
	event := r.indexed(added.state)
	err = r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if !allowDuplicates {
			if err := r.refuseDuplicates(ctx, tx, study, "", p.files, upTo(len(p.files))); err != nil {
				return err
			}
		}
		if err := r.insert(ctx, tx, &added, micros, whole, p.files); err != nil || !event {
			return err
		}
		return r.tell(ctx, tx, study, added.id)
	})
	if err != nil {
		return "", err
	}
	r.done(ctx, actionSubmit, study, added.id, event)
	return added.id, nil
}

func upTo(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

// validate checks a payload whole, outside of any transaction: the validator may ask other services.
func (r *Repository) validate(ctx context.Context, study string, p *payload) (core.AnalysisTypeRef, error) {
	if err := p.checkStudy(study); err != nil {
		return core.AnalysisTypeRef{}, err
	}
	kind, err := r.validator.Validate(ctx, study, p.validated())
	if err != nil {
		return core.AnalysisTypeRef{}, err
	}
	return kind, p.checkFiles()
}

// bounded returns the bytes of a document, CodeTooLarge when there are too many. The history of its states does not count.
func (r *Repository) bounded(d *document) ([]byte, error) {
	whole := d.bytes()
	if size := len(whole) - len(d.history); size > r.cfg.MaxBytes {
		return nil, &core.Error{
			Code: core.CodeTooLarge, Message: "the analysis is too large to be stored",
			Hint: fmt.Sprintf("it has %d bytes; the limit is %d, index.maxRecordBytes in the configuration", size, r.cfg.MaxBytes),
		}
	}
	return whole, nil
}

func (r *Repository) insert(ctx context.Context, tx *store.Tx, d *document, micros int64, whole []byte, files []file) error {
	_, err := tx.ExecContext(ctx,
		"INSERT INTO analysis (id, study, state, type_name, type_version, updated_at, body) VALUES ($1, $2, $3, $4, $5, $6, $7)",
		d.id, d.study, string(d.state), d.kind.Name, d.kind.Version, micros, whole)
	if err != nil {
		return store.Fault("storing an analysis", err)
	}
	return r.insertFiles(ctx, tx, d.study, d.id, files)
}

// Replace puts body in the place of an analysis, whose id, state, createdAt and history stay, and its files where the body
// has none. The body is checked whole, like a submission, and files whose MD5 sum the analysis did not have before are refused where another one has it. Errors:
// those of Submit, CodeNotFound for an unknown analysis, CodeInvalid for an analysisId that is another's, CodeConflict
// (suppressed.state.transition) for a suppressed analysis.
func (r *Repository) Replace(ctx context.Context, study, id string, body []byte) error {
	doc, err := parseObject(body)
	if err != nil {
		return err
	}
	if err := checkID(gjson.Parse(doc), id); err != nil {
		return err
	}
	p, err := newPayload(doc)
	if err != nil {
		return err
	}
	return r.change(ctx, actionReplace, study, id, func(ctx context.Context, c *current) (payload, core.AnalysisTypeRef, error) {
		whole, err := p.complete(study, &c.document)
		if err != nil {
			return payload{}, core.AnalysisTypeRef{}, err
		}
		kind, err := r.validate(ctx, study, &whole)
		return whole, kind, err
	})
}

// Merge merges a JSON merge patch (RFC 7396) into an analysis and checks the whole like a submission, against the latest
// version of its type unless the patch names one or Config.KeepVersion is set. Of the members that
// are the repository's own, a patch must not change analysisId, studyId and analysisState; the others are left out. Errors
// are those of Replace.
func (r *Repository) Merge(ctx context.Context, study, id string, patch []byte) error {
	doc, err := parseObject(patch)
	if err != nil {
		return err
	}
	change := gjson.Parse(doc)
	if err := checkID(change, id); err != nil {
		return err
	}
	if v := change.Get("studyId"); v.Exists() && v.Str != study {
		return studyMismatch()
	}
	return r.change(ctx, actionMerge, study, id, func(ctx context.Context, c *current) (payload, core.AnalysisTypeRef, error) {
		if v := change.Get("analysisState"); v.Exists() && v.Str != string(c.state) {
			err := malformed("the state of an analysis cannot be patched")
			err.Hint = "publish, unpublish or suppress it"
			return payload{}, core.AnalysisTypeRef{}, err
		}
		p, err := newPayload(string(appendMerged(nil, gjson.Parse(c.sendable(r.cfg.KeepVersion)), change)))
		if err != nil {
			return payload{}, core.AnalysisTypeRef{}, err
		}
		kind, err := r.validate(ctx, study, &p)
		return p, kind, err
	})
}

// checkID returns CodeInvalid when what was sent says that it is another analysis.
func checkID(sent gjson.Result, id string) error {
	if v := sent.Get("analysisId"); v.Exists() && v.Str != id {
		return malformed("the payload's analysisId is not that of the path")
	}
	return nil
}

// change rewrites an analysis with what edit makes of it, again when somebody else changed it meanwhile.
func (r *Repository) change(ctx context.Context, did action, study, id string,
	edit func(context.Context, *current) (payload, core.AnalysisTypeRef, error),
) error {
	leave, err := r.turns.take(ctx, id)
	if err != nil {
		return err
	}
	defer leave()
	for range maxTries {
		c, err := r.load(ctx, r.store.Read(), study, id)
		if err != nil {
			return err
		}
		if c.state == core.StateSuppressed {
			return suppressed()
		}
		p, kind, err := edit(ctx, &c)
		if err != nil {
			return err
		}
		err = r.rewrite(ctx, &c, &p, kind)
		if errors.Is(err, errChanged) {
			continue
		}
		if err == nil {
			r.done(ctx, did, study, id, r.indexed(c.state))
		}
		return err
	}
	return core.NewError(core.CodeOverloaded, "the analysis is being changed by too many others")
}

// rewrite stores a payload in the place of what c has, and its event; errChanged when c is not what is stored any more.
func (r *Repository) rewrite(ctx context.Context, c *current, p *payload, kind core.AnalysisTypeRef) error {
	micros := r.next(c)
	next := c.document
	next.updatedAt, next.kind, next.rest = written(micros), kind, p.rest(c.study, c.id)
	whole, err := r.bounded(&next)
	if err != nil {
		return err
	}
	before := c.files()
	fresh, positions := arrived(before, p.files)
	return r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := r.refuseDuplicates(ctx, tx, c.study, c.id, fresh, positions); err != nil {
			return err
		}
		if err := r.overwrite(ctx, tx, c, &next, micros, whole); err != nil {
			return err
		}
		if !sameFiles(before, p.files) {
			if _, err := tx.ExecContext(ctx, "DELETE FROM analysis_file WHERE analysis_id = $1", c.id); err != nil {
				return store.Fault("replacing the files of an analysis", err)
			}
			if err := r.insertFiles(ctx, tx, c.study, c.id, p.files); err != nil {
				return err
			}
		}
		if !r.indexed(c.state) {
			return nil
		}
		return r.tell(ctx, tx, c.study, c.id)
	})
}

// overwrite stores next in the place of c, and returns errChanged when c is not what is stored any more.
func (r *Repository) overwrite(ctx context.Context, tx *store.Tx, c *current, next *document, micros int64, whole []byte) error {
	result, err := tx.ExecContext(ctx,
		"UPDATE analysis SET state = $1, type_name = $2, type_version = $3, updated_at = $4, body = $5 WHERE id = $6 AND updated_at = $7",
		string(next.state), next.kind.Name, next.kind.Version, micros, whole, c.id, c.token)
	if err != nil {
		return store.Fault("storing an analysis", err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return store.Fault("storing an analysis", err)
	}
	return errChanged
}
