package run

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/tidwall/gjson"

	"tutti/internal/base/isodate"
	"tutti/internal/core"
)

// Bounds of the rows that are compared with the index in one call, and of how long the first of them waits for the others.
const (
	comparedRows  = 128
	comparedBytes = 512 << 10
	comparedAfter = 500 * time.Millisecond
)

// driftKind is how a record that is to be indexed differs from the index.
type driftKind uint8

const (
	driftMissing driftKind = iota
	driftDifferent
	driftOlder // one that is different, and older
	driftUncompared
)

// of returns the count of the kind.
func (k driftKind) of(d *core.Drift) *int64 {
	return [...]*int64{&d.Missing, &d.Different, &d.Different, &d.Uncompared}[k]
}

// comparedRow is a row that is compared with the index before it is written.
type comparedRow struct {
	id string
	// start and end bound its document in pageComparison.documents; both are 0 for a record that must not have one.
	start, end int
}

// pageComparison compares the rows of one pass over a page with the index.
type pageComparison struct {
	rows      []comparedRow
	documents []byte
	since     time.Time // when the first of rows was added

	unchanged []string             // ids of records whose documents are equal, or that have none and must not have one
	drift     map[string]driftKind // ids of records whose documents are written
}

// compareRow adds a row, with its document or, for a record that must not have one, nil.
func (w *pageWork) compareRow(ctx context.Context, pass *pagePass, id string, document []byte) error {
	c := &pass.comparison
	row := comparedRow{id: id}
	if document != nil {
		row.start = len(c.documents)
		c.documents = append(c.documents, document...)
		row.end = len(c.documents)
	}
	if len(c.rows) == 0 {
		c.since = time.Now()
	}
	c.rows = append(c.rows, row)
	if len(c.rows) < comparedRows && len(c.documents) < comparedBytes && time.Since(c.since) < comparedAfter {
		return nil
	}
	return w.writeDifferent(ctx, pass)
}

// writeDifferent compares the added rows with the index, and writes those that differ. When the index cannot be read, it writes all.
func (w *pageWork) writeDifferent(ctx context.Context, pass *pagePass) error {
	c := &pass.comparison
	if len(c.rows) == 0 {
		return nil
	}
	ids := make([]string, len(c.rows))
	for i, row := range c.rows {
		ids[i] = row.id
	}
	type state struct{ found, equal, older bool }
	states := make([]state, len(ids))
	err := w.Index.GetAll(ctx, w.Repository.IndexName, ids, func(i int, doc core.StoredDocument, found bool) {
		document := c.documents[c.rows[i].start:c.rows[i].end]
		same := found && w.Same(doc.Source, document)
		equal := same && !w.Outcomes.LacksConflict(w.req.Organization, ids[i], doc.Source)
		states[i] = state{found, equal, found && !equal && w.isOlder(document, doc.Source)}
	})
	if err != nil {
		w.log.Warn("rows of a page could not be compared with the index and are written", "job_id", w.req.JobID,
			"organization", w.req.Organization, "page", w.page.Number, "rows", len(ids), "err", err)
	}
	if c.drift == nil {
		c.drift = make(map[string]driftKind)
	}
	for i, row := range c.rows {
		kind := driftDifferent
		absent := row.end == 0
		switch {
		case absent && (err != nil || states[i].found): // the sweep removes the document
			continue
		case err != nil:
			kind = driftUncompared
		case states[i].equal || absent:
			c.unchanged = append(c.unchanged, row.id)
			continue
		case !states[i].found:
			kind = driftMissing
		case states[i].older:
			kind = driftOlder
		}
		c.drift[row.id] = kind
		pass.ids = append(pass.ids, row.id)
		write := core.Write{Op: core.OpIndex, ID: row.id, Document: c.documents[row.start:row.end]}
		if err := w.add(ctx, pass, core.Record{ID: row.id}, write); err != nil {
			return err
		}
	}
	c.rows, c.documents = c.rows[:0], c.documents[:0]
	if cap(c.documents) > 2*comparedBytes {
		c.documents = nil
	}
	return nil
}

// isOlder reports whether the repository changed a record last before the state that a stored document has.
func (w *pageWork) isOlder(document, stored []byte) bool {
	path := w.Repository.Fields.Updated
	if path == "" {
		return false
	}
	at, dated := isodate.Time(gjson.GetBytes(document, path).String())
	was, known := isodate.Time(gjson.GetBytes(stored, path).String())
	return dated && known && at.Before(was)
}

// settleComparison settles the unchanged rows of a pass.
func (w *pageWork) settleComparison(ctx context.Context, pass *pagePass) error {
	c := &pass.comparison
	for _, id := range c.unchanged {
		err := w.loop.RetryUntilStopped(ctx, "clearing a dead letter", func() error {
			return w.Outcomes.ClearDeadLetter(ctx, w.req.Organization, id, w.msg.Version())
		})
		if err != nil {
			return err
		}
		w.settleID(id)
		if pass.countOnce(xxhash.Sum64String(id)) {
			w.totals.Drift.Unchanged++
		}
	}
	return nil
}

// countWritten counts a record that was written because it differed, unless the index has a newer document, or has rejected it: that is
// counted as such, and each comparison would find it again.
func (w *pageWork) countWritten(pass *pagePass, id string, written core.Outcome) {
	kind, differed := pass.comparison.drift[id]
	if differed && written != core.OutcomeStale && written != core.OutcomeRejected {
		w.countDrift(pass, id, kind)
	}
}

// countDrift counts a record that is new to the chain, once for all passes over its page.
func (w *pageWork) countDrift(pass *pagePass, id string, kind driftKind) {
	if _, fresh := pass.fresh[xxhash.Sum64String(id)]; !fresh {
		return
	}
	if _, counted := w.drifted[id]; counted {
		return
	}
	if w.drifted == nil {
		w.drifted = make(map[string]struct{})
	}
	w.drifted[id] = struct{}{}
	*kind.of(&w.totals.Drift)++
	if kind == driftOlder {
		w.totals.Drift.Older++
	}
}

// LastDrift is what the last runs of a whole repository have found, as its cell holds it.
type LastDrift struct {
	// JobID is the last run of the difference, and Drift its comparison.
	JobID   string     `json:"jobId"`
	EndedAt time.Time  `json:"endedAt"`
	Drift   core.Drift `json:"drift"`
	// GuardedBy is the job whose guard has kept documents, since when no run of the whole repository has succeeded.
	GuardedBy string `json:"guardedBy,omitempty"`
	// Fields is how the fields of the last run's records differ from those of the run before, until a rebuild; "" unless some are gone.
	Fields string `json:"fields,omitempty"`
	// Superseded is true once a later run of the whole repository has succeeded that wrote every record.
	Superseded bool `json:"superseded,omitempty"`
}

// DriftCell returns the name of the cell with the LastDrift of a whole repository, as JSON.
func DriftCell(repository string) string {
	return "drift." + base64.RawURLEncoding.EncodeToString([]byte(repository))
}

// noteDrift counts the drift that a job has found, and stores that of a repository's job.
func (e *jobEnd) noteDrift(ctx context.Context, job core.Job) {
	e.Outcomes.AddDrift(job.Totals.Drift)
	if job.Scope != core.ScopeRepository {
		return
	}
	if err := e.storeDrift(ctx, func(last LastDrift) LastDrift {
		return LastDrift{JobID: job.ID, EndedAt: *job.EndedAt, Drift: job.Totals.Drift, GuardedBy: guardedBy(last, job), Fields: last.Fields}
	}); err != nil { // the job has it
		e.log.Warn("storing the drift of a repository", "job_id", job.ID, "err", err)
	}
}

// noteRun stores what the end of a run of the whole repository that wrote every record says about the last comparison.
func (e *jobEnd) noteRun(ctx context.Context, job core.Job) {
	if err := e.storeDrift(ctx, func(last LastDrift) LastDrift {
		last.Superseded = last.Superseded || job.State == core.JobSucceeded && last.JobID != ""
		last.GuardedBy = guardedBy(last, job)
		if job.Rebuild && job.State == core.JobSucceeded {
			last.Fields = ""
		}
		return last
	}); err != nil { // the next run or comparison does it
		e.log.Warn("storing what a run says about the last comparison", "job_id", job.ID, "err", err)
	}
}

// noteFields stores how the fields of a job's records differ from those before.
func (e *jobEnd) noteFields(ctx context.Context, job core.Job, before, now core.Kinds) {
	if err := e.storeDrift(ctx, func(last LastDrift) LastDrift {
		last.Fields = changedFields(before, now)
		return last
	}); err != nil {
		e.log.Warn("storing which fields of the records have changed", "job_id", job.ID, "err", err)
	}
}

// guardedBy returns LastDrift.GuardedBy after the end of a job.
func guardedBy(last LastDrift, job core.Job) string {
	switch {
	case job.State == core.JobSucceeded:
		return ""
	case job.State == core.JobPartial && job.Error.Guard():
		return job.ID
	default:
		return last.GuardedBy
	}
}

// storeDrift changes the LastDrift of the repository.
func (e *jobEnd) storeDrift(ctx context.Context, change func(LastDrift) LastDrift) error {
	name := DriftCell(e.Repository.Code)
	value, revision, err := e.Cells.Cell(ctx, name)
	if err != nil {
		return err
	}
	var last LastDrift
	if value != "" {
		_ = json.Unmarshal([]byte(value), &last) // one that cannot be decoded is replaced
	}
	changed := change(last)
	if changed == last {
		return nil
	}
	data, err := json.Marshal(changed)
	if err != nil {
		return err
	}
	return e.Cells.SetCell(ctx, name, string(data), revision)
}
