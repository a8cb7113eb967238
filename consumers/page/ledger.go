package page

import "tutti/internal/core"

// ledger is what is known of the records of a page, over all its passes.
type ledger struct {
	rows      int // of the page, as requested
	totals    core.Totals
	settled   map[string]struct{} // ids with a final outcome
	unsettled map[string]bool     // ids that were read and have no final outcome; true if new to the chain
	late      []string            // ids that are new to the chain and were requested one by one
	drifted   map[string]struct{} // ids of the records that are counted in totals.Drift
}

// settle records that an id is done for this page.
func (l *ledger) settle(id string) {
	if l.settled == nil {
		l.settled = make(map[string]struct{}, l.rows)
	}
	l.settled[id] = struct{}{}
}

// isSettled reports whether an id is done for this page.
func (l *ledger) isSettled(id string) bool {
	_, done := l.settled[id]
	return done
}

// leave makes again the ids without a final outcome, with those of earlier passes that have none yet.
func (l *ledger) leave(again map[string]bool) {
	for id, counts := range l.unsettled {
		if !l.isSettled(id) {
			again[id] = counts
		}
	}
	l.unsettled = again
}

// settleRequested records that an id has a Request of its own.
func (l *ledger) settleRequested(id string) {
	if l.unsettled[id] {
		l.late = append(l.late, id)
	}
	delete(l.unsettled, id)
	l.settle(id)
}

// countDrift counts a record that differs from the index, once for all passes.
func (l *ledger) countDrift(id string, kind driftKind) {
	if _, counted := l.drifted[id]; counted {
		return
	}
	if l.drifted == nil {
		l.drifted = make(map[string]struct{})
	}
	l.drifted[id] = struct{}{}
	*kind.of(&l.totals.Drift)++
	if kind == driftOlder {
		l.totals.Drift.Older++
	}
}
