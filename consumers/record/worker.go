// Package record processes the Requests for single records: it fetches a record and writes or removes its document.
//
// It imports internal/core, internal/index/bulk and the packages consumers/loop, fetch and outcome.
//
// Its tests are in consumers.
package record

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// Index reads documents.
type Index interface {
	Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error)
	Refresh(ctx context.Context, alias string) error
	Scan(ctx context.Context, alias string, scope core.IndexScope, below core.Version, each func(id string, v core.Version) error) error
}

// Jobs reads jobs.
type Jobs interface {
	Get(ctx context.Context, id string) (core.Job, error)
}

// Requests publishes Requests.
type Requests interface {
	// PublishUnlessRemovalPending publishes r unless the pending Request of the same record stands (core.Request.MergeWithPending),
	// which is success too.
	PublishUnlessRemovalPending(ctx context.Context, r core.Request) error
}

// Config holds the dependencies of a Worker; all but one of Document and Split are required.
type Config struct {
	Repository core.Repository
	Logger     *slog.Logger
	// Document appends the document made of a record to dst.
	Document func(dst []byte, rec core.Record) []byte
	// Split calls each with the documents of a record instead, if it is set.
	Split    func(rec core.Record, each func(id string, document []byte) error) error
	Fetcher  *fetch.Fetcher
	Outcomes *outcome.Outcomes
	Index    Index
	Jobs     Jobs
	Writer   *bulk.Writer
	Requests Requests
	// RunDifference queues a run of an organization's difference; it may start later and serve several calls. It is only called if the
	// Fetcher has Holders.
	RunDifference func(ctx context.Context, organization string, cause core.Cause, requestID string) error
}

// Worker processes the record Requests of one repository, each record once at a time.
type Worker struct {
	code     string
	log      *slog.Logger
	loop     *loop.Loop
	outcomes *outcome.Outcomes
	writer   *writer

	mu     sync.Mutex              // guards parked
	parked map[string]core.Message // by the ids of the records in flight: the newest message that waits for the record, or nil
}

// New returns a Worker for the messages that l pulls.
func New(l *loop.Loop, cfg Config) *Worker {
	return &Worker{
		code: cfg.Repository.Code, log: cfg.Logger, loop: l, outcomes: cfg.Outcomes,
		writer: newWriter(cfg), parked: make(map[string]core.Message),
	}
}

// InFlight counts the records in flight.
func (w *Worker) InFlight() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.parked)
}

// Process processes m, unless its record is in flight: then m parks, without fetching the record, until that has ended. Of
// several parked messages only the newest is processed; the queue has already replaced the others.
func (w *Worker) Process(ctx context.Context, m core.Message, _ func()) {
	key := m.Request().RecordID
	w.mu.Lock()
	if parked, inFlight := w.parked[key]; inFlight {
		older, newest := parked, m
		if parked != nil && parked.Version() > m.Version() {
			older, newest = m, parked
		}
		w.parked[key] = newest
		w.mu.Unlock()
		if older != nil {
			w.supersede(ctx, older, newest)
		}
		return
	}
	w.parked[key] = nil
	w.mu.Unlock()
	for m != nil {
		w.handle(ctx, m)
		w.mu.Lock()
		if m = w.parked[key]; m == nil {
			delete(w.parked, key)
		} else {
			w.parked[key] = nil
		}
		w.mu.Unlock()
	}
}

// supersede ends a parked message whose record will be processed for a newer one. When both are deliveries of the same
// message, the newer delivery ends it.
func (w *Worker) supersede(ctx context.Context, older, newest core.Message) {
	w.loop.Release(older)
	batched := loop.Batched(older)
	old, current := older.Request(), newest.Request()
	switch {
	case old.Organization != current.Organization, // another request
		batched && current.Cause == core.CauseSweep: // the newest is dropped when its job is cancelled
		w.loop.Requeue(ctx, older, loop.BusyDelay)
	case batched || older.Version() < newest.Version():
		w.loop.Ack(ctx, older)
	}
}

// handle brings one record's document up to date and ends m, or requeues m.
func (w *Worker) handle(ctx context.Context, m core.Message) {
	w.loop.Run(ctx, m, loop.Task{
		Do: func(ctx context.Context) error {
			_, rs, err := w.settle(ctx, m)
			if errors.Is(err, errSweepCancelled) {
				return nil
			}
			if err == nil {
				w.outcomes.EndedRecord(m.Version(), rs)
			}
			return err
		},
		Failed: func(ctx context.Context, err error) {
			if fetch.Retryable(err) {
				w.retry(ctx, m, err)
			} else {
				w.moveToDeadLetters(ctx, m, err)
			}
		},
	})
}

// retry requeues m after an error that a retry may fix.
func (w *Worker) retry(ctx context.Context, m core.Message, cause error) {
	req := m.Request()
	w.outcomes.Count(core.OutcomeRetry, 1)
	level := loop.RetryLevel(loop.Attempts(m))
	if w.loop.Pause.Reason() != "" { // the line about the pause says it
		level = slog.LevelDebug
	}
	w.log.Log(ctx, level, "record will be retried", "organization", req.Organization, "record_id", req.RecordID,
		"request_id", req.ID, "attempts", loop.Attempts(m)+1, "err", cause)
	req.NotFoundSince = notFoundSince(m, cause)
	w.loop.RequeueAs(ctx, m, req, w.loop.RetryDelay(m, cause))
}

// settle returns the organization under which m's record was settled, and the final results. After an error the record has no final
// result.
func (w *Worker) settle(ctx context.Context, m core.Message) (organization string, rs results, err error) {
	req := m.Request()
	if err := w.loop.AwaitIndex(); err != nil {
		return req.Organization, nil, err
	}
	at := writeVersion{version: m.Version()}
	for under := req; ; {
		organization, rs, err = w.writer.execute(ctx, under, at)
		if err != nil {
			return organization, rs, err
		}
		again, err := w.shouldRewrite(ctx, m, at, rs)
		if err != nil {
			return organization, rs, err
		}
		if !again {
			break
		}
		// A record fetched from now on is not older.
		at = writeVersion{version: max(rs[0].CurrentVersion, rs[0].NextVersion) + 1, strict: true}
		under.Organization = organization
	}
	return organization, rs, w.outcomes.SettleRecord(ctx, req, organization, at.version, rs)
}

// shouldRewrite reports whether m's record, whose write was stale against a stored version, must be fetched again and
// written with the version after that one, because the stored version does not prove that the document is newer. A dated
// Request is stale only against a removal. If only the write to the index that a rebuild fills was stale, that one has no removal: it would
// have been written to both.
func (w *Worker) shouldRewrite(ctx context.Context, m core.Message, at writeVersion, rs results) (bool, error) {
	own := rs[0].Outcome
	if own == core.OutcomeRetry {
		return false, nil
	}
	if next := rs[0].NextVersion; own != core.OutcomeStale {
		return next > 0 && (w.outcomes.AheadOfClock(m.Version(), next) || m.Request().Dated() || at.strict), nil
	}
	stored := rs[0].CurrentVersion
	switch req := m.Request(); {
	case w.outcomes.AheadOfClock(m.Version(), stored):
		return true, nil
	case stored < at.version:
		return false, nil
	case req.Dated():
		document, err := w.writer.documents.owner(ctx, w.writer.Repository.IndexName, req.RecordID)
		return document.found, w.outcomes.PauseOnError(err)
	default:
		return at.strict, nil
	}
}

// moveToDeadLetters stores a dead letter for a record that no retry can fix, then ends its message.
func (w *Worker) moveToDeadLetters(ctx context.Context, m core.Message, cause error) {
	if err := w.storeDeadLetter(ctx, m, cause); err != nil {
		w.log.WarnContext(ctx, "storing a dead letter", "request_id", m.Request().ID, "err", err)
		w.loop.Requeue(context.WithoutCancel(ctx), m, w.loop.RetryDelay(m, err))
		return
	}
	w.loop.Ack(ctx, m)
}

func (w *Worker) storeDeadLetter(ctx context.Context, m core.Message, cause error) error {
	req := m.Request()
	letter := core.DeadLetter{
		Repository: w.code, Organization: req.Organization, RecordID: req.RecordID, Reason: core.ReasonUpstream,
		Hint: core.MessageOf(cause) + "; fix that, then retry", Attempts: loop.Attempts(m) + 1, Version: req.ResultVersion(m.Version()),
	}
	if core.CodeOf(cause) == core.CodeInvalid {
		letter.Reason = core.ReasonInvalidID
	}
	return w.outcomes.StoreDeadLetter(ctx, req, letter)
}

// notFoundSince returns the time since which every response for m's record was core.ErrForeignNotFound, including the newest
// one, err; zero when err is another error.
func notFoundSince(m core.Message, err error) time.Time {
	switch since := m.Request().NotFoundSince; {
	case !errors.Is(err, core.ErrForeignNotFound):
		return time.Time{}
	case since.IsZero():
		return time.Now().UTC()
	default:
		return since
	}
}
