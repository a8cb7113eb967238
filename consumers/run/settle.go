package run

import (
	"cmp"
	"context"

	"github.com/cespare/xxhash/v2"

	"tutti/internal/core"
)

// settle processes the outcomes of a pass. Ids without a final outcome are requested one by one when rereading the page
// would not return them in time: an earlier pass read them and this one did not, or they would be too old again.
func (w *pageWork) settle(ctx context.Context, pass *pagePass, results []core.Result, whole bool) error {
	if err := w.settleComparison(ctx, pass); err != nil {
		return err
	}
	var outcomes [core.OutcomeExcluded + 1]int
	retry := core.Code("")
	again := make(map[string]bool)
	for from, i := 0, 0; from < len(results); i++ {
		to := from + 1
		if pass.documents != nil {
			if i == len(pass.ends) { // the page ended within a record
				break
			}
			to = pass.ends[i]
		}
		code, err := w.settleRecord(ctx, pass, i, results[from:to])
		if err != nil {
			return err
		}
		w.countWritten(pass, pass.ids[i], results[from].Outcome)
		hash := xxhash.Sum64String(pass.ids[i])
		counts := false
		if code != "" {
			_, again[pass.ids[i]] = pass.fresh[hash]
			retry = code
			w.Outcomes.PauseOnCode(code)
			w.totals.Retried++
		} else {
			counts = pass.countOnce(hash)
		}
		for _, res := range pass.counted(pass.ids[i], results[from:to]) {
			outcomes[res.Outcome]++
			if counts {
				w.totals.AddOutcome(res.Outcome)
			}
		}
		from = to
	}
	for o, n := range outcomes {
		w.Outcomes.Count(core.Outcome(o), n)
	}
	if err := w.settleInvalid(ctx, pass, whole); err != nil {
		return err
	}
	if len(again) == 0 && whole && len(w.unsettled) == 0 {
		return nil
	}
	return w.recordSettled(ctx, pass, again, whole, retry)
}

// counted returns those results of a record's documents that count: all but the marker's or, for an excluded record, one.
func (p *pagePass) counted(id string, results []core.Result) []core.Result {
	last := len(results) - 1
	_, excluded := p.excluded[id]
	switch {
	case excluded && results[last].Outcome == core.OutcomeRemoved:
		return []core.Result{{Outcome: core.OutcomeExcluded}}
	case excluded:
		return results[last:]
	case p.documents != nil:
		return results[:last]
	default:
		return results
	}
}

// settleRecord processes the outcomes of the documents of the i-th record. It returns why the record has no final outcome, ""
// if it has.
func (w *pageWork) settleRecord(ctx context.Context, pass *pagePass, i int, results []core.Result) (retry core.Code, err error) {
	record := pass.ids[i]
	first := 0
	if i > 0 && pass.documents != nil {
		first = pass.ends[i-1]
	}
	stale, indexed := false, false
	for n := range results {
		id := record
		if pass.documents != nil {
			id = pass.documents[first+n]
		}
		if err := w.settleOne(ctx, record, id, &results[n]); err != nil {
			return "", err
		}
		stale = pass.documents != nil && results[n].Outcome == core.OutcomeStale // of the marker, the last one
		indexed = indexed || results[n].Outcome == core.OutcomeIndexed
		if results[n].Outcome == core.OutcomeRetry {
			retry = cmp.Or(results[n].Code, core.CodeOverloaded)
		}
	}
	if stale && indexed && retry == "" { // a newer reading was processed since: the record's own Request removes what it had not
		retry = core.CodeConflict
	}
	return retry, nil
}

// settleOne processes the outcome of one document of a record: a success clears its dead letter, a rejection stores one.
func (w *pageWork) settleOne(ctx context.Context, record, id string, res *core.Result) error {
	org := w.req.Organization
	if w.Outcomes.PausesFor(org, id, *res) {
		res.Outcome, res.Code = core.OutcomeRetry, core.CodeOverloaded
		return nil
	}
	if w.Outcomes.AheadOfClock(w.msg.Version(), res.NextVersion) { // of an index that another job fills
		res.Outcome, res.Code = core.OutcomeRetry, core.CodeConflict
		return nil
	}
	switch res.Outcome {
	case core.OutcomeIndexed, core.OutcomeRemoved:
		return w.settleDeadLetter(ctx, record, id, *res)
	case core.OutcomeStale:
		if w.Outcomes.AheadOfClock(w.msg.Version(), res.CurrentVersion) {
			res.Outcome, res.Code = core.OutcomeRetry, core.CodeConflict
			return nil
		}
		return w.settleDeadLetter(ctx, record, id, *res)
	case core.OutcomeRejected:
		return w.loop.RetryUntilStopped(ctx, "storing a dead letter", func() error {
			return w.Outcomes.StoreRejected(ctx, w.recordRequest(record), id, w.msg.Version(), *res)
		})
	case core.OutcomeRetry, core.OutcomeMismatch, core.OutcomeExcluded:
	}
	return nil
}

// settleDeadLetter removes the dead letter of a document of a record, and settles its conflicts.
func (w *pageWork) settleDeadLetter(ctx context.Context, record, id string, res core.Result) error {
	req := core.Request{Kind: core.KindIndex, Organization: w.req.Organization}
	if w.Outcomes.Shares() { // req may be stored or published
		req = w.recordRequest(record)
	}
	return w.loop.RetryUntilStopped(ctx, "settling the dead letter of a document", func() error {
		return w.Outcomes.Settle(ctx, req, w.req.Organization, id, w.msg.Version(), res)
	})
}

// settleInvalid settles the rows that were set aside, once the page was read completely.
func (w *pageWork) settleInvalid(ctx context.Context, pass *pagePass, whole bool) error {
	if !whole {
		return nil
	}
	if err := w.storeInvalid(ctx); err != nil {
		return err
	}
	for _, row := range w.invalid {
		w.settleID(row.letter.RecordID)
		if pass.countOnce(row.hash) {
			w.totals.Rejected++
		}
	}
	w.Outcomes.Count(core.OutcomeRejected, len(w.invalid))
	w.invalid = nil
	return nil
}

// recordSettled stores the settled ids for the next pass, and requests one by one those that it would not return.
func (w *pageWork) recordSettled(ctx context.Context, pass *pagePass, again map[string]bool, whole bool, why core.Code) error {
	came := make(map[string]struct{}, len(pass.ids))
	for _, id := range pass.ids {
		if _, late := pass.overdue[id]; !late {
			came[id] = struct{}{}
		}
		if _, open := again[id]; !open {
			w.settleID(id)
		}
	}
	gone := w.unsettled
	w.unsettled = again
	for id, counts := range gone {
		if _, done := w.settled[id]; done {
			continue
		}
		w.unsettled[id] = counts
	}
	switch {
	case why == core.CodeConflict: // a clock was set back; their own Requests take the version after the stored one
		return w.requestUnsettled(ctx, nil)
	case whole:
		return w.requestUnsettled(ctx, came)
	}
	return nil
}

// requestUnsettled publishes a record Request, with the run's version, for each unsettled id that is not in keep.
func (w *pageWork) requestUnsettled(ctx context.Context, keep map[string]struct{}) error {
	requested := 0
	for id, counts := range w.unsettled {
		if _, kept := keep[id]; kept {
			continue
		}
		req := w.recordRequest(id)
		req.AsOf = versionOf(w.job, w.msg)
		if err := w.loop.RetryUntilStopped(ctx, "publishing a record", func() error { return w.Requests.PublishUnlessRemovalPending(ctx, req) }); err != nil {
			return err
		}
		delete(w.unsettled, id)
		w.settleID(id)
		if counts {
			w.late = append(w.late, id)
		}
		requested++
	}
	if requested > 0 {
		w.log.InfoContext(ctx, "records of a page are requested one by one", "job_id", w.req.JobID, "organization", w.req.Organization,
			"page", w.page.Number, "rows", w.page.Limit, "records", requested)
	}
	return nil
}

// settleID records that an id is done for this page.
func (w *pageWork) settleID(id string) {
	if w.settled == nil {
		w.settled = make(map[string]struct{}, w.page.Limit)
	}
	w.settled[id] = struct{}{}
}

// countOnce reports whether the outcome of a row counts: it is the first one of an id that is new to the chain.
func (p *pagePass) countOnce(hash uint64) bool {
	_, fresh := p.fresh[hash]
	delete(p.fresh, hash)
	return fresh
}
