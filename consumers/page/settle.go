package page

import (
	"cmp"
	"context"

	"github.com/cespare/xxhash/v2"

	"tutti/consumers/state"
	"tutti/internal/core"
)

// settle processes the outcomes of a pass. Ids without a final outcome are requested one by one when rereading the page
// would not return them in time: an earlier pass read them and this one did not, or they would be too old again.
func (w *work) settle(ctx context.Context, p *pass, results []core.Result, whole bool) error {
	if p.comparison != nil {
		if err := p.comparison.settleUnchanged(ctx); err != nil {
			return err
		}
	}
	var outcomes [core.OutcomeExcluded + 1]int
	why := core.Code("")
	again := make(map[string]bool)
	for from, i := 0, 0; from < len(results); i++ {
		to := from + 1
		if p.documents != nil {
			if i == len(p.ends) { // the page ended within a record
				break
			}
			to = p.ends[i]
		}
		id, documents := p.ids[i], results[from:to]
		from = to
		code, err := w.settleRecord(ctx, p, i, documents)
		if err != nil {
			return err
		}
		if p.comparison != nil {
			p.comparison.countWritten(id, documents[0].Outcome)
		}
		hash := xxhash.Sum64String(id)
		if code != "" {
			_, again[id] = p.fresh[hash]
			why = code
			w.cfg.Outcomes.PauseOnCode(code)
			w.ledger.totals.Retried++
		}
		counts := code == "" && p.countOnce(hash)
		for _, res := range p.counted(id, documents) {
			outcomes[res.Outcome]++
			if counts {
				w.ledger.totals.AddOutcome(res.Outcome)
			}
		}
	}
	for o, n := range outcomes {
		w.cfg.Outcomes.Count(core.Outcome(o), n)
	}
	if whole {
		if err := p.settleAside(ctx); err != nil {
			return err
		}
	}
	if len(again) == 0 && whole && len(w.ledger.unsettled) == 0 {
		return nil
	}
	return w.recordSettled(ctx, p, again, whole, why)
}

// counted returns those results of a record's documents that count: all but the marker's or, for an excluded record, one.
func (p *pass) counted(id string, results []core.Result) []core.Result {
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

// countOnce reports whether the outcome of a row counts: it is the first one of an id that is new to the chain.
func (p *pass) countOnce(hash uint64) bool {
	_, fresh := p.fresh[hash]
	delete(p.fresh, hash)
	return fresh
}

// settleRecord processes the outcomes of the documents of the i-th record. It returns why the record has no final outcome, ""
// if it has.
func (w *work) settleRecord(ctx context.Context, p *pass, i int, results []core.Result) (retry core.Code, err error) {
	record := p.ids[i]
	first := 0
	if i > 0 && p.documents != nil {
		first = p.ends[i-1]
	}
	stale, indexed := false, false
	for n := range results {
		id := record
		if p.documents != nil {
			id = p.documents[first+n]
		}
		if err := w.settleOne(ctx, record, id, &results[n]); err != nil {
			return "", err
		}
		stale = p.documents != nil && results[n].Outcome == core.OutcomeStale // of the marker, the last one
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
func (w *work) settleOne(ctx context.Context, record, id string, res *core.Result) error {
	organization, at := w.organization.name, w.message.Version()
	if w.cfg.Outcomes.Postpones(organization, id, at, res) {
		return nil
	}
	req := core.Request{Kind: core.KindIndex, Organization: organization}
	if res.Outcome == core.OutcomeRejected || w.cfg.Outcomes.Shares() { // it may be stored or published
		req = w.recordRequest(record)
	}
	return w.cfg.Loop.RetryUntilStopped(ctx, "settling the dead letter of a document", func() error {
		return w.cfg.Outcomes.Settle(ctx, req, organization, id, at, *res)
	})
}

// recordRequest returns the Request for one record of the page.
func (w *work) recordRequest(id string) core.Request {
	req := state.Child(w.job, core.ScopeRecord, w.organization.name)
	req.RecordID, req.Force = id, false
	return req
}

// recordSettled stores the settled ids for the next pass, and requests one by one those that it would not return.
func (w *work) recordSettled(ctx context.Context, p *pass, again map[string]bool, whole bool, why core.Code) error {
	came := make(map[string]struct{}, len(p.ids))
	for _, id := range p.ids {
		if _, late := p.overdue[id]; !late {
			came[id] = struct{}{}
		}
		if _, open := again[id]; !open {
			w.ledger.settle(id)
		}
	}
	w.ledger.leave(again)
	switch {
	case why == core.CodeConflict: // a clock was set back; their own Requests take the version after the stored one
		return w.requestUnsettled(ctx, nil)
	case whole:
		return w.requestUnsettled(ctx, came)
	}
	return nil
}

// requestUnsettled publishes a record Request, with the run's version, for each unsettled id that is not in keep.
func (w *work) requestUnsettled(ctx context.Context, keep map[string]struct{}) error {
	requested := 0
	var ids []string // the ledger changes below
	for id := range w.ledger.unsettled {
		if _, kept := keep[id]; !kept {
			ids = append(ids, id)
		}
	}
	err := w.cfg.Loop.PublishEach(ctx, func(yield func(core.Request) bool) {
		for _, id := range ids {
			req := w.recordRequest(id)
			req.AsOf = w.version
			if !yield(req) {
				return
			}
		}
	}, func(req core.Request) {
		w.ledger.settleRequested(req.RecordID)
		requested++
	})
	if err != nil {
		return err
	}
	if requested > 0 {
		w.log.InfoContext(ctx, "records of a page are requested one by one", "rows", w.page.Limit, "records", requested)
	}
	return nil
}
