package consumers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tutti/internal/bulk"
	"tutti/internal/core"
)

// recordInFlight is a record that is being processed, with the newest message that arrived for it since.
type recordInFlight struct {
	parked core.Message
}

func (r *repository) pullRecords() {
	r.pull(core.ClassRecords, r.Records, r.c.cfg.RecordsInFlight, r.newQuarantine(core.ClassRecords, suspectDelay).quarantineSuspects(r.processRecord))
}

// processRecord processes m, unless its record is in flight: then m parks, without fetching the record, until that has
// ended. Of several parked messages only the newest is processed; the queue has already replaced the others.
func (r *repository) processRecord(ctx context.Context, m core.Message, _ func()) {
	key := m.Request().RecordID
	r.mu.Lock()
	if hand, busy := r.records[key]; busy {
		older := hand.parked
		if older == nil || older.Version() <= m.Version() {
			hand.parked = m
		} else {
			older = m
		}
		newest := hand.parked
		r.mu.Unlock()
		if older != nil {
			r.supersede(ctx, older, newest)
		}
		return
	}
	hand := &recordInFlight{}
	r.records[key] = hand
	r.mu.Unlock()
	for {
		r.handleRecord(ctx, m)
		r.mu.Lock()
		m, hand.parked = hand.parked, nil
		if m == nil {
			delete(r.records, key)
		}
		r.mu.Unlock()
		if m == nil {
			return
		}
	}
}

// supersede ends a parked message whose record will be processed for a newer one. When both are deliveries of the same
// message, the newer delivery ends it.
func (r *repository) supersede(ctx context.Context, older, newest core.Message) {
	r.c.heartbeat.release(older)
	_, batched := older.(*batchedMessage)
	old, current := older.Request(), newest.Request()
	switch {
	case old.Organization != current.Organization, // another request
		batched && current.Cause == core.CauseSweep: // the newest is dropped when its job is cancelled
		r.requeue(ctx, older, busyDelay)
	case batched || older.Version() < newest.Version():
		r.ack(ctx, older)
	}
}

// handleRecord brings one record's document up to date and ends m, or requeues m.
func (r *repository) handleRecord(ctx context.Context, m core.Message) {
	defer r.c.heartbeat.release(m)
	req := m.Request()
	result, err := r.settleRecord(ctx, m)
	since := notFoundSince(m, err)
	switch {
	case err == nil:
		r.c.cfg.Metrics.addDocuments(r.IndexName, result.Outcome, 1)
		r.c.cfg.Metrics.observeToIndex(r.Code, core.ScopeRecord, m.Version())
		if result.Outcome != core.OutcomeRejected {
			r.c.cfg.Metrics.succeeded(r.Code)
		}
		r.ack(ctx, m)
	case errors.Is(err, errSweepEnded):
		r.ack(ctx, m)
	case ctx.Err() != nil || r.c.draining.Err() != nil:
		r.requeue(context.WithoutCancel(ctx), m, 0)
	case retryable(err) && (since.IsZero() || time.Since(since) < notFoundFor):
		r.c.cfg.Metrics.addDocuments(r.IndexName, core.OutcomeRetry, 1)
		r.log.Log(ctx, retryLevel(attempts(m)), "record will be retried", "organization", req.Organization, "record_id", req.RecordID,
			"request_id", req.ID, "attempts", attempts(m)+1, "err", err)
		req.NotFoundSince = since
		r.requeueAs(ctx, m, req, r.retryDelay(m, err))
	default:
		r.moveToDeadLetters(ctx, m, err)
	}
}

// retryLevel returns the log level of a failure: only the first one and those at doubled attempts are visible by default.
func retryLevel(attempts int) slog.Level {
	if attempts&(attempts+1) == 0 {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// settleRecord returns the final result of m's record. After an error the record has no final result.
func (r *repository) settleRecord(ctx context.Context, m core.Message) (core.Result, error) {
	if err := r.pause.wait(r.c.draining); err != nil {
		return core.Result{}, err
	}
	req := m.Request()
	at := writeVersion{version: m.Version()}
	organization, result, err := r.writeRecord(ctx, req, at)
	for err == nil && result.Outcome == core.OutcomeStale {
		var again bool
		if again, err = r.shouldRewrite(ctx, m, at, result.CurrentVersion); err != nil || !again {
			break
		}
		at = writeVersion{version: result.CurrentVersion + 1, strict: true} // a record fetched from now on is not older
		organization, result, err = r.writeRecord(ctx, req, at)
	}
	if err != nil {
		return result, err
	}
	if r.pausesFor(organization, req.RecordID, result) {
		return result, core.NewError(core.CodeOverloaded, "the index rejects nearly all documents")
	}
	switch result.Outcome {
	case core.OutcomeIndexed, core.OutcomeRemoved:
		err = r.clearDeadLetter(ctx, req.Organization, req.RecordID)
		if err == nil && organization != req.Organization {
			err = r.clearDeadLetter(ctx, organization, req.RecordID)
		}
	case core.OutcomeStale:
		if req.Kind == core.KindIndex && !req.Dated() { // an old event proves nothing about later failures
			err = r.clearDeadLetter(ctx, req.Organization, req.RecordID)
		}
	case core.OutcomeMismatch:
		r.log.Info("record belongs to another organization", "organization", req.Organization,
			"record_id", req.RecordID, "request_id", req.ID)
	case core.OutcomeRejected:
		req.Organization = organization
		err = r.storeRejected(ctx, req, req.RecordID, result)
	case core.OutcomeRetry:
		r.pauseOnCode(result.Code)
		err = core.NewError(result.Code, "the index did not take the document")
	}
	return result, err
}

// shouldRewrite reports whether m's record, whose write was stale against a stored version, must be fetched again and
// written with the version after that one, because the stored version does not prove that the document is newer. A dated
// Request is stale only against a removal.
func (r *repository) shouldRewrite(ctx context.Context, m core.Message, at writeVersion, stored core.Version) (bool, error) {
	switch req := m.Request(); {
	case r.aheadOfClock(m.Version(), stored):
		return true, nil
	case stored < at.version:
		return false, nil
	case req.Dated():
		document, err := r.ownerOf(ctx, req.RecordID)
		return document.found, err
	default:
		return at.strict, nil
	}
}

// writeVersion is the version that a record is written with. It is strict when it follows a stored version that was read
// before the record was fetched: when several processes do so, only the first write succeeds, and the others fetch again.
type writeVersion struct {
	version core.Version
	strict  bool
}

// writeRecord executes req: it fetches the record and writes or removes its document with the version at. It returns the
// organization under which the record was settled, and the result.
func (r *repository) writeRecord(ctx context.Context, req core.Request, at writeVersion) (string, core.Result, error) {
	if req.Kind == core.KindRemove {
		result, err := r.removeRequested(ctx, req, at)
		return req.Organization, result, err
	}
	rec, fetchedAt, err := r.fetchRecord(ctx, req)
	switch {
	case err == nil:
		result, err := r.writeFetched(ctx, rec, fetchedAt, at)
		return req.Organization, result, err
	case core.CodeOf(err) == core.CodeAbsent || errors.Is(err, core.ErrOtherOrganization):
		return r.settleMoved(ctx, req, at, rec.Organization, err)
	default:
		return req.Organization, core.Result{}, err
	}
}

// writeFetched writes a fetched record, or removes its document when the record is not indexable.
func (r *repository) writeFetched(ctx context.Context, rec core.Record, fetchedAt time.Time, at writeVersion) (core.Result, error) {
	if !rec.Indexable {
		stored, err := r.ownerOf(ctx, rec.ID)
		if err != nil || stored.foreign {
			return mismatch(), err
		}
		return r.removeDocument(ctx, rec.ID, at)
	}
	if rec.TooLarge != nil {
		return core.Result{Outcome: core.OutcomeRejected, Code: core.CodeTooLarge, Rejected: rec.TooLarge}, nil
	}
	defer rec.Release()
	write := core.Write{Op: core.OpIndex, ID: rec.ID, Version: at.version, Strict: at.strict, FetchedAt: fetchedAt}
	write.Document, rec.Body = r.Document(nil, rec), nil
	return r.writeOne(ctx, write, rec.Release)
}

// fetchRecord fetches req's record from the upstream. An indexable record of another organization than req's is
// core.ErrOtherOrganization; the returned record then names its organization if the upstream does.
//
// A record that can be written keeps its memory and its call slot until Release is called, which is never nil. So the number
// of records held between the upstream and the bulk writer is bounded by the calls allowed in flight, not by the messages.
func (r *repository) fetchRecord(ctx context.Context, req core.Request) (core.Record, time.Time, error) {
	if err := r.recordCalls.Acquire(ctx, 1); err != nil {
		return core.Record{Release: func() {}}, time.Time{}, err
	}
	rec, fetchedAt, err := r.requestRecord(ctx, req)
	body := rec.Release
	rec.Release = sync.OnceFunc(func() {
		if body != nil {
			body()
		}
		r.recordCalls.Release(1)
	})
	if err != nil || !rec.Indexable || rec.TooLarge != nil {
		rec.Release()
	}
	return rec, fetchedAt, err
}

// requestRecord makes the call of fetchRecord.
func (r *repository) requestRecord(ctx context.Context, req core.Request) (core.Record, time.Time, error) {
	if err := r.checkSweepCancelled(ctx, req); err != nil {
		return core.Record{}, time.Time{}, err
	}
	fetchedAt := time.Now()
	rec, err := r.Upstream.Record(ctx, req.Organization, req.RecordID)
	// A record that takes its upstream long would never be young enough, as there is no smaller request. It is left at least
	// half of the maximum age. An Upstream that made the call wait for memory requests the record again itself.
	if youngest := time.Now().Add(-r.c.deps.Writer.MaxBodyAge() / 2); fetchedAt.Before(youngest) {
		fetchedAt = youngest
	}
	if errors.Is(err, core.ErrOrganizationAbsent) {
		err = r.confirmAbsent(ctx, req.Organization, err)
	}
	if err == nil && rec.ID != req.RecordID {
		err = core.NewError(core.CodeUpstream, "the repository returned another record than the requested one")
	}
	r.c.cfg.Metrics.addFetched(r.Code, fetchResult(err), 1)
	if err == nil && rec.Indexable && rec.Organization != req.Organization {
		err = core.WrapError(core.CodeUpstream, "the record belongs to another organization", core.ErrOtherOrganization)
	}
	return rec, fetchedAt, err
}

// confirmAbsent returns absent only if the upstream's own list omits the organization too (CONTRACT section 1); otherwise
// the upstream contradicts itself, which may be temporary.
func (r *repository) confirmAbsent(ctx context.Context, organization string, absent error) error {
	listed, err := r.organizations.get(ctx, r.Upstream)
	if err != nil {
		return err
	}
	if slices.Contains(listed, organization) {
		return core.WrapError(core.CodeUnavailable, "the repository lists the organization but does not find it", absent)
	}
	return absent
}

// writeOne writes one document, and calls added once the Writer has copied its bytes.
func (r *repository) writeOne(ctx context.Context, w core.Write, added func()) (core.Result, error) {
	ticket := r.c.deps.Writer.Ticket()
	if err := r.c.deps.Writer.Add(ctx, ticket, r.IndexName, w); err != nil {
		return core.Result{}, err
	}
	w.Document = nil
	added()
	ticket.Seal()
	results, err := ticket.Wait(ctx)
	if err != nil {
		return core.Result{}, err
	}
	return results[0], nil
}

// pauseOnCode pauses the repository when code means that the index as a whole takes no writes.
func (r *repository) pauseOnCode(code core.Code) {
	switch code {
	case core.CodeIndexBlocked:
		r.pauseFor("the index is missing, closed or blocked", nil)
	case core.CodeUnavailable:
		r.pauseFor("the index does not respond", nil)
	default:
	}
}

// aheadOfClock reports whether a stored version lies ahead both of the message's and of now: a clock was set back since, so
// the version does not prove that the document is newer. It raises the clock alarm when the difference exceeds
// Config.ClockSkew.
func (r *repository) aheadOfClock(mine, stored core.Version) bool {
	now := time.Now()
	if stored <= max(mine, core.Version(now.UnixNano())) {
		return false
	}
	if stored > max(mine, core.Version(now.UnixNano()))+core.Version(r.c.cfg.ClockSkew) {
		r.clockAlarm.Store(now.UnixNano())
		r.c.cfg.Metrics.addClockAlarm(r.Code)
	}
	return true
}

func (r *repository) clearDeadLetter(ctx context.Context, organization, id string) error {
	if !r.c.deps.DeadLetters.Has(r.Code, organization, id) {
		return nil
	}
	return r.c.deps.DeadLetters.Clear(ctx, r.Code, organization, id)
}

// storeRejected stores a rejected document as a dead letter; its message must not end before that.
func (r *repository) storeRejected(ctx context.Context, req core.Request, id string, result core.Result) error {
	letter := core.DeadLetter{
		Repository: r.Code, Organization: req.Organization, RecordID: id, Reason: core.ReasonRejected,
		Hint:       "fix the record or the index mapping, then retry",
		EngineType: result.Type, EngineReason: result.Reason,
	}
	switch {
	case result.Code == core.CodeTooLarge:
		letter.Reason, letter.Hint = core.ReasonTooLarge, r.c.tooLargeHint()
	case result.Type == bulk.TypeTooLarge:
		letter.Reason = core.ReasonTooLarge
		letter.Hint = "the document is larger than the index accepts in one request"
	}
	if kept := result.Rejected; kept != nil {
		letter.Document, letter.Size, letter.SHA256, letter.Truncated = kept.Bytes, kept.Size, kept.SHA256, kept.Truncated
	}
	return r.storeDeadLetter(ctx, req, letter)
}

// tooLargeHint returns the hint for a record above the size limit.
func (c *Consumers) tooLargeHint() string {
	return fmt.Sprintf("the record is larger than index.maxRecordBytes, %d bytes; make it smaller or raise the limit, then retry", c.cfg.MaxRecordBytes)
}

// storeDeadLetter completes and stores a dead letter for one record.
func (r *repository) storeDeadLetter(ctx context.Context, req core.Request, letter core.DeadLetter) error {
	letter.LastAt = time.Now().UTC()
	if letter.FirstAt = req.NotFoundSince; letter.FirstAt.IsZero() {
		letter.FirstAt = letter.LastAt
	}
	letter.Attempts = max(1, letter.Attempts)
	letter.JobID, letter.Request = req.JobID, &req
	if err := r.c.deps.DeadLetters.Put(ctx, letter); err != nil {
		return err
	}
	r.log.Warn("record moved to the dead letters", "organization", letter.Organization, "record_id", truncateID(letter.RecordID),
		"request_id", req.ID, "reason", letter.Reason, "engine_type", letter.EngineType)
	return nil
}

// moveToDeadLetters stores a dead letter for a record that no retry can fix, then ends its message.
func (r *repository) moveToDeadLetters(ctx context.Context, m core.Message, cause error) {
	req := m.Request()
	letter := core.DeadLetter{
		Repository: r.Code, Organization: req.Organization, RecordID: req.RecordID, Reason: core.ReasonUpstream,
		Hint: core.MessageOf(cause) + "; fix that, then retry", Attempts: attempts(m) + 1,
	}
	if core.CodeOf(cause) == core.CodeInvalid {
		letter.Reason = core.ReasonInvalidID
	}
	if err := r.storeDeadLetter(ctx, req, letter); err != nil {
		r.log.Warn("storing a dead letter", "request_id", req.ID, "err", err)
		r.requeue(context.WithoutCancel(ctx), m, r.retryDelay(m, err))
		return
	}
	r.ack(ctx, m)
}

// truncateID shortens an id for a log line.
func truncateID(id string) string {
	const most = 600
	if len(id) <= most {
		return id
	}
	return id[:most] + "…"
}
