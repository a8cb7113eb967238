package housekeeping

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"tutti/consumers"
	"tutti/consumers/state"
	"tutti/ingest"
	"tutti/internal/config"
	"tutti/internal/core"
)

// Bounds of the backoff between runs that fill the index of the built-in repository.
const (
	fillRetry    = 2 * time.Second
	fillRetryMax = time.Hour
)

// fillState is whether a run has filled a repository's index.
type fillState int

const (
	// fillUnknown is the state of an index that the consumers have not prepared yet.
	fillUnknown fillState = iota
	fillDue
	// fillOpen is the state of an index whose filling run has not ended yet.
	fillOpen
	fillDone
)

// Watched is what Contents asks other parts of the process.
type Watched struct {
	// Studies lists the studies of the built-in repository.
	Studies func(ctx context.Context) ([]string, error)
	// Paused lists the repositories whose consumers are paused.
	Paused func() []consumers.Pause
	// Failure returns why the last call to a repository failed, "" when it was answered.
	Failure func(repository string) string
	// LastSuccess receives when a repository was last written to its index, the zero time for never.
	LastSuccess func(repository string, at time.Time)
}

// Contents tracks which repositories' indices have all that they should, and queues runs that fill the index of the built-in one. Check is
// not safe for concurrent use; what it found may be read at any time.
type Contents struct {
	Deps
	watched Watched
	// filled are the codes of repositories whose index has been filled. backoff limits the runs that fill the index of the built-in
	// one. neverIndexed are the other repositories whose index had not been filled at the last check.
	filled       map[string]struct{}
	backoff      fillBackoff
	neverIndexed atomic.Pointer[[]config.Repository]
	// drifted has a reason of Health for each repository whose last comparison has found differences, until a run writes everything, of
	// which a guard keeps documents, and whose records have lost fields.
	drifted atomic.Pointer[[]string]
	// full is a reason of Health while the queue holds as many Requests as it may, "" otherwise.
	full atomic.Pointer[string]
	// gaps has a reason of Health for each repository of which notifications were lost, until a job has found what they changed.
	gaps atomic.Pointer[[]string]
}

// NewContents returns Contents without what Check finds.
func NewContents(deps Deps, watched Watched) *Contents {
	return &Contents{Deps: deps, watched: watched, filled: make(map[string]struct{})}
}

// Check updates what Health reports about the repositories and their requests.
func (c *Contents) Check(ctx context.Context) error {
	return errors.Join(c.checkFilled(ctx), c.checkDrift(ctx), c.checkGaps(ctx), c.checkFull(ctx))
}

// Full returns the reason of Health while the queue holds as many Requests as it may, "" otherwise.
func (c *Contents) Full() string {
	if full := c.full.Load(); full != nil {
		return *full
	}
	return ""
}

// checkFull updates full.
func (c *Contents) checkFull(ctx context.Context) error {
	held, limit, err := c.Queue.Held(ctx)
	if err != nil {
		return err
	}
	reason := ""
	if held >= limit {
		reason = fmt.Sprintf("queue: it holds %d requests, as many as it may (queue.maxPending); new ones get 503 until some are processed", held)
		reason += c.whoFills(ctx)
	}
	c.full.Store(&reason)
	return nil
}

// whoFills returns what to do about a full queue, after the repository that most of its Requests are of, and why they wait.
func (c *Contents) whoFills(ctx context.Context) string {
	lags, err := c.Queue.Pending(ctx)
	if err != nil {
		return "; raise queue.maxPending"
	}
	of := make(map[string]int)
	most := ""
	for _, lag := range lags {
		if lag.Class == core.ClassRetries {
			continue
		}
		if of[lag.Repository] += int(lag.Pending) + lag.InFlight; of[lag.Repository] > of[most] {
			most = lag.Repository
		}
	}
	if most == "" {
		return "; raise queue.maxPending"
	}
	return fmt.Sprintf("; most, %d, are of repository %s, %s or raise queue.maxPending", of[most], most, c.whyWaits(most))
}

// whyWaits returns why the Requests of a repository wait, and what to do about it.
func (c *Contents) whyWaits(repository string) string {
	for _, p := range c.watched.Paused() {
		if p.Repository == repository {
			return "which is paused (" + p.Reason + "): end the cause,"
		}
	}
	if failure := c.watched.Failure(repository); failure != "" {
		return "which did not answer the last call (" + failure + "): make it answer,"
	}
	return "which are being processed: wait for that,"
}

// Reasons returns what Health reports about the content of indices.
func (c *Contents) Reasons(ctx context.Context) []string {
	reasons := c.neverIndexedReasons(ctx)
	if drifted := c.drifted.Load(); drifted != nil {
		reasons = append(reasons, *drifted...)
	}
	if gaps := c.gaps.Load(); gaps != nil {
		reasons = append(reasons, *gaps...)
	}
	return reasons
}

// checkDrift updates drifted.
func (c *Contents) checkDrift(ctx context.Context) error {
	var drifted []string
	for _, rc := range c.Repositories {
		value, _, err := c.Queue.Cells().Cell(ctx, state.DriftCell(rc.Code))
		if err != nil {
			return err
		}
		var last state.LastDrift
		if value == "" || json.Unmarshal([]byte(value), &last) != nil {
			continue
		}
		if last.Drift.Found() > 0 && !last.Superseded {
			drifted = append(drifted, fmt.Sprintf("repository %s: the comparison that ended at %s found %s (job %s)",
				rc.Code, last.EndedAt.Format(time.RFC3339), last.Drift, last.JobID))
		}
		if last.Fields != "" {
			drifted = append(drifted, fmt.Sprintf("repository %s: %s; change the catalogues and saved filters "+
				"that name what is gone, then remove it from the index with tutti index %s --rebuild", rc.Code, last.Fields, rc.Code))
		}
		if last.GuardedBy != "" {
			drifted = append(drifted, fmt.Sprintf("repository %s: a run kept documents whose records the repository no longer shows (job %s); "+
				"if they are to go, run tutti index %s --force", rc.Code, last.GuardedBy, rc.Code))
		}
	}
	c.drifted.Store(&drifted)
	return nil
}

// checkGaps updates gaps, and empties the cell of a gap that is closed.
func (c *Contents) checkGaps(ctx context.Context) error {
	var gaps []string
	for _, rc := range c.Repositories {
		value, revision, err := c.Queue.Cells().Cell(ctx, ingest.GapCell(rc.Code))
		if err != nil {
			return err
		}
		var gap ingest.Gap
		if value == "" || json.Unmarshal([]byte(value), &gap) != nil {
			continue
		}
		closed, open := false, false
		err = eachJob(ctx, c.Queue, core.JobFilter{Repository: rc.Code, Limit: jobsKept}, func(j core.Job) (done bool) {
			if j.Scope == core.ScopeRepository && (j.ID == gap.JobID || j.StartedAt != nil && j.StartedAt.After(gap.At)) {
				closed = closed || j.State == core.JobSucceeded || j.State == core.JobPartial
				open = open || !j.State.Final()
			}
			return closed
		})
		if err != nil {
			return err
		}
		if closed {
			if err := c.Queue.Cells().SetCell(ctx, ingest.GapCell(rc.Code), "", revision); err != nil && core.CodeOf(err) != core.CodeConflict {
				return err
			}
			continue
		}
		next := "run tutti index --difference " + rc.Code
		if open {
			next = "job " + gap.JobID + " compares the repository with its index"
		}
		gaps = append(gaps, fmt.Sprintf("repository %s: %s (%d offsets, %s); %s", rc.Code, gap.Reason, gap.Offsets,
			gap.At.Format(time.RFC3339), next))
	}
	c.gaps.Store(&gaps)
	return nil
}

// checkFilled updates filled and neverIndexed. For an unfilled built-in repository it queues a run, with backoff; another one
// becomes a reason of Health. A filled repository is not checked again: if its index is replaced later, the consumers queue the
// run. A repository that cannot be checked keeps its reason, and hides no other.
func (c *Contents) checkFilled(ctx context.Context) error {
	var never, before []config.Repository
	if last := c.neverIndexed.Load(); last != nil {
		before = *last
	}
	var errs []error
	for _, rc := range c.Repositories {
		if _, done := c.filled[rc.Code]; done {
			continue
		}
		state, err := c.fillState(ctx, rc)
		switch {
		case state == fillDone && err != nil:
			errs = append(errs, fmt.Errorf("storing that repository %s was indexed: %w", rc.Code, err))
		case err != nil:
			errs = append(errs, fmt.Errorf("checking whether repository %s was indexed: %w", rc.Code, err))
			if slices.ContainsFunc(before, func(b config.Repository) bool { return b.Code == rc.Code }) {
				never = append(never, rc)
			}
		case state == fillDone:
			c.filled[rc.Code] = struct{}{}
		case state == fillDue && rc.Type == core.TypeLocal:
			errs = append(errs, c.fillLocal(ctx, rc))
		case state == fillDue:
			never = append(never, rc)
		}
	}
	c.neverIndexed.Store(&never)
	return errors.Join(errs...)
}

// fillLocal queues a run of the built-in repository, with backoff.
func (c *Contents) fillLocal(ctx context.Context, rc config.Repository) error {
	if !c.backoff.due(time.Now()) {
		return nil
	}
	job, err := c.Ingest.Run(ctx, core.ScopeRepository, rc.Code, "", core.RunFlags{}, core.CauseReconcile, "")
	if err == nil {
		c.Logger.Info("the index of the built-in repository is empty; queued a run", "repository", rc.Code, "job_id", job.ID)
	}
	return err
}

// neverIndexedReasons returns a reason of Health for each repository whose index has not been filled. What the last check found is
// compared with the cells, because the consumers set them before a job that has filled an index ends.
func (c *Contents) neverIndexedReasons(ctx context.Context) []string {
	never := c.neverIndexed.Load()
	if never == nil {
		return nil
	}
	var reasons []string
	for _, rc := range *never {
		if value, _, err := c.Queue.Cells().Cell(ctx, consumers.FillCell(rc.Code, rc.IndexName)); err == nil && value == consumers.FillDone {
			continue
		}
		reasons = append(reasons, "repository "+rc.Code+": never indexed; run tutti index "+rc.Code)
	}
	return reasons
}

// fillState returns the state of a repository's index, and stores FillDone once a job has filled it; fillDone with an error if it
// cannot.
func (c *Contents) fillState(ctx context.Context, rc config.Repository) (fillState, error) {
	cell := consumers.FillCell(rc.Code, rc.IndexName)
	value, revision, err := c.Queue.Cells().Cell(ctx, cell)
	switch {
	case err != nil || value == "":
		return fillUnknown, err
	case value == consumers.FillDone:
		return fillDone, nil
	}
	state := fillDue
	err = eachJob(ctx, c.Queue, core.JobFilter{Repository: rc.Code, Limit: jobsKept}, func(j core.Job) (done bool) {
		state = max(state, fillStateOf(j, rc.IndexName))
		return state == fillDone
	})
	if err == nil && state == fillDone {
		err = c.Queue.Cells().SetCell(ctx, cell, consumers.FillDone, revision)
	}
	return state, err
}

// fillStateOf returns the state that a job of its repository implies for an index that was empty. A run of the whole repository
// fills the index if it succeeds, even without records, or ends partial after it has written documents.
func fillStateOf(j core.Job, indexName string) fillState {
	switch {
	case j.Scope != core.ScopeRepository || j.IndexName != indexName:
		return fillDue
	case !j.State.Final():
		return fillOpen
	case j.HasWritten():
		return fillDone
	default:
		return fillDue
	}
}

// SetLastSuccess sets each repository's metric of the last success to the end of its newest job for which HasWritten holds.
func (c *Contents) SetLastSuccess(ctx context.Context) error {
	for _, rc := range c.Repositories {
		var at time.Time
		err := eachJob(ctx, c.Queue, core.JobFilter{Repository: rc.Code, Limit: jobsKept}, func(j core.Job) (done bool) {
			if j.HasWritten() && j.EndedAt != nil && j.EndedAt.After(at) {
				at = *j.EndedAt
			}
			return false
		})
		if err != nil {
			return err
		}
		c.watched.LastSuccess(rc.Code, at)
	}
	return nil
}

// fillBackoff limits how often a run that fills the built-in repository's index is queued. Its zero value allows the first run at
// once.
type fillBackoff struct {
	next time.Time
	wait time.Duration
}

// due reports whether a run may start now, and if so schedules the next one.
func (b *fillBackoff) due(now time.Time) bool {
	if now.Before(b.next) {
		return false
	}
	b.wait = min(max(fillRetry, 2*b.wait), fillRetryMax)
	b.next = now.Add(b.wait)
	return true
}

// Start marks the index of the built-in repository as filled if there are no studies: the outbox will publish all later
// changes.
func (c *Contents) Start(ctx context.Context) error {
	studies, err := c.watched.Studies(ctx)
	if err != nil || len(studies) > 0 {
		return err
	}
	for _, rc := range c.Repositories {
		if rc.Type != core.TypeLocal {
			continue
		}
		cell := consumers.FillCell(rc.Code, rc.IndexName)
		_, revision, err := c.Queue.Cells().Cell(ctx, cell)
		if err == nil {
			err = c.Queue.Cells().SetCell(ctx, cell, consumers.FillDone, revision)
		}
		if err != nil && core.CodeOf(err) != core.CodeConflict { // another process set it
			return err
		}
		c.filled[rc.Code] = struct{}{}
	}
	return nil
}
