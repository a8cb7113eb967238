package core

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// SpacedCell begins the name of a cell that holds the last job of a scope whose runs must not start in quick succession.
const SpacedCell = "spaced."

// JobState is the state of a job.
type JobState string

// States of a Job and of one organization of it. All but the first three are final.
const (
	JobQueued    JobState = "queued"
	JobRunning   JobState = "running"
	JobPaused    JobState = "paused" // waits until the repository answers
	JobSucceeded JobState = "succeeded"
	JobPartial   JobState = "partial"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// Final reports whether a job in this state never changes again.
func (s JobState) Final() bool { return s != JobQueued && s != JobRunning && s != JobPaused }

// JobStates lists every state.
func JobStates() []JobState {
	return []JobState{JobQueued, JobRunning, JobPaused, JobSucceeded, JobPartial, JobFailed, JobCancelled}
}

// Totals counts the records of a job.
type Totals struct {
	Expected int64 `json:"expected"`
	Fetched  int64 `json:"fetched"`
	Indexed  int64 `json:"indexed"`
	Stale    int64 `json:"stale"`
	Removed  int64 `json:"removed"`
	Rejected int64 `json:"rejected"`
	Excluded int64 `json:"excluded"`
	Retried  int64 `json:"retried"`
	// Drift is that of a job with Job.Difference, zero for other jobs.
	Drift Drift `json:"drift,omitzero"`
}

// Drift is the comparison of an index with its repository, in records.
type Drift struct {
	// Unchanged records have the document that they should have.
	Unchanged int64 `json:"unchanged"`
	// Missing records had no document, Different ones another one.
	Missing   int64 `json:"missing"`
	Different int64 `json:"different"`
	// Older are those of the different records that the repository changed last before the state in the index, as after its restore from
	// a backup.
	Older int64 `json:"older"`
	// Surplus documents had no record on the repository's list, or one that it showed as not to be indexed.
	Surplus int64 `json:"surplus"`
	// Uncompared records were written, or requested, because the index did not return their documents.
	Uncompared int64 `json:"uncompared"`
}

// Found returns the number of records whose documents were not what they should have been, or could not be compared.
func (d Drift) Found() int64 { return d.Missing + d.Different + d.Surplus + d.Uncompared }

// String lists what was found.
func (d Drift) String() string {
	text := fmt.Sprintf("%d documents missing, %d different and %d surplus", d.Missing, d.Different, d.Surplus)
	if d.Uncompared > 0 {
		text += fmt.Sprintf(", and %d that could not be compared", d.Uncompared)
	}
	if d.Older > 0 {
		text += fmt.Sprintf("; %d of the different records are older in the repository than they were in the index: "+
			"it may have been restored from a backup", d.Older)
	}
	return text
}

// Add adds o to t, member by member.
func (t *Totals) Add(o Totals) {
	t.Expected += o.Expected
	t.Fetched += o.Fetched
	t.Indexed += o.Indexed
	t.Stale += o.Stale
	t.Removed += o.Removed
	t.Rejected += o.Rejected
	t.Excluded += o.Excluded
	t.Retried += o.Retried
	t.Drift.Unchanged += o.Drift.Unchanged
	t.Drift.Missing += o.Drift.Missing
	t.Drift.Different += o.Drift.Different
	t.Drift.Older += o.Drift.Older
	t.Drift.Surplus += o.Drift.Surplus
	t.Drift.Uncompared += o.Drift.Uncompared
}

// Written reports whether a document was written, removed, or found equal or newer in the index.
func (t *Totals) Written() bool {
	return t.Indexed+t.Stale+t.Removed+t.Excluded+t.Drift.Unchanged > 0
}

// AddOutcome counts one record's final outcome.
func (t *Totals) AddOutcome(o Outcome) {
	switch o {
	case OutcomeIndexed:
		t.Indexed++
	case OutcomeStale:
		t.Stale++
	case OutcomeRejected:
		t.Rejected++
	case OutcomeExcluded:
		t.Excluded++
	case OutcomeRemoved, OutcomeMismatch, OutcomeRetry:
	}
}

// cancelOverlap removes from t what o counts again, and returns what o counts in addition to t.
func (t *Totals) cancelOverlap(o Totals) Totals {
	for _, pair := range [][2]*int64{
		{&t.Expected, &o.Expected},
		{&t.Fetched, &o.Fetched},
		{&t.Indexed, &o.Indexed},
		{&t.Stale, &o.Stale},
		{&t.Removed, &o.Removed},
		{&t.Rejected, &o.Rejected},
		{&t.Excluded, &o.Excluded},
		{&t.Retried, &o.Retried},
		{&t.Drift.Unchanged, &o.Drift.Unchanged},
		{&t.Drift.Missing, &o.Drift.Missing},
		{&t.Drift.Different, &o.Drift.Different},
		{&t.Drift.Older, &o.Drift.Older},
		{&t.Drift.Surplus, &o.Drift.Surplus},
		{&t.Drift.Uncompared, &o.Drift.Uncompared},
		{&t.Indexed, &o.Stale},
		{&t.Stale, &o.Indexed},                 // there may have been a newer write between the two
		{&t.Drift.Missing, &o.Drift.Different}, // the voided page has written them
		{&t.Drift.Uncompared, &o.Drift.Different},
	} {
		both := min(*pair[0], *pair[1])
		*pair[0] -= both
		*pair[1] -= both
	}
	return o
}

// JobError is the reason why a job or one organization of it did not succeed; safe to display.
type JobError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Codes of a JobError in addition to those of Error.
const (
	JobErrorPruneGuard      = "prune_guard"
	JobErrorManyInvalid     = "many_invalid"
	JobErrorListShifted     = "list_shifted"
	JobErrorCancelled       = "cancelled"
	JobErrorSweepIncomplete = "sweep_incomplete"
	JobErrorInterrupted     = "interrupted"
	JobErrorRecordsRejected = "records_rejected"
	JobErrorNotRefreshed    = "not_refreshed"
	JobErrorIDsNotIndexed   = "ids_not_indexed"
	JobErrorContentDiffers  = "content_differs"
	JobErrorNotRetryable    = "not_retryable"

	JobErrorUnknownRepository = ReasonUnknownRepository
)

// Guard reports whether the guard against a mass removal has kept documents.
func (e *JobError) Guard() bool {
	return e != nil && (e.Code == JobErrorPruneGuard || e.Code == JobErrorManyInvalid)
}

// JobPause is why a job is paused, safe to display, and since when.
type JobPause struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// Job is one run over an organization, a repository or a list of ids, or one retry of dead letters, as stored in the queue's
// key-value bucket. In a retry's Totals, Expected counts the dead letters, Fetched those that were processed, Retried those whose
// Requests were published and Rejected those that cannot be retried; the others were removed before their turn.
type Job struct {
	ID           string     `json:"id"`
	Scope        Scope      `json:"scope"`
	Repository   string     `json:"repository"`
	Organization string     `json:"organization,omitempty"`
	IndexName    string     `json:"indexName"`
	State        JobState   `json:"state"`
	Cause        Cause      `json:"cause"`
	Force        bool       `json:"force,omitempty"`
	Rebuild      bool       `json:"rebuild,omitempty"`
	Difference   bool       `json:"difference,omitempty"`
	RequestID    string     `json:"requestId,omitempty"`
	QueuedAt     time.Time  `json:"queuedAt"`
	StartedAt    *time.Time `json:"startedAt,omitempty"`
	EndedAt      *time.Time `json:"endedAt,omitempty"`
	Totals       Totals     `json:"totals"`
	Error        *JobError  `json:"error,omitempty"`
	// Pause is set while State is JobPaused.
	Pause *JobPause `json:"pause,omitempty"`
	// StartVersion is later than the newest message of another Request that was stored when the run began: the run writes its documents with
	// it, and nothing else does.
	StartVersion Version `json:"startVersion,omitempty"`
	// StartCheckpoint is the index's checkpoint at the start, empty if older Requests were still in flight then: writes after it
	// are not older than the run.
	StartCheckpoint string `json:"startMark,omitempty"`
	// Kinds is set for a run that counts the JSON kinds of its records.
	Kinds bool `json:"kinds,omitempty"`
	// Note says what else the job did, safe to display; "" for nothing.
	Note string `json:"note,omitempty"`
	// ExpectedOrganizations is the number of organizations of the run, nil until they are listed.
	ExpectedOrganizations *int `json:"expectedOrganizations,omitempty"`
	// Begun is true once the index of a rebuild is about to be created: the mapping file is not read again.
	Begun bool `json:"begun,omitempty"`
	// Returned counts how often this job was returned to a trigger instead of queuing a second one.
	Returned int `json:"returned,omitempty"`
	// Reason is that of the dead letters which a job of ScopeRetry retries, empty for any; its Repository may be empty too. Cursor
	// is that of the dead letters which it has not processed yet.
	Reason string `json:"reason,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// NewJob returns the queued job of its first Request, which writes to an index.
func NewJob(r Request, indexName string) Job {
	job := Job{
		ID: r.JobID, Scope: r.Scope, Repository: r.Repository, Organization: r.Organization, IndexName: indexName,
		State: JobQueued, Cause: r.Cause, Force: r.Force, Rebuild: r.Rebuild, Difference: r.Difference,
		RequestID: r.ID, QueuedAt: r.ReceivedAt, Reason: r.Reason,
	}
	if job.Scope == ScopePage {
		job.Scope = ScopeOrganization
	}
	return job
}

// PageVersion returns the version with which a page of the job writes whose message has the given one: that of the run's beginning. So a
// removal that was requested since then wins over all pages, and a document that another Request has written since then, which is not older
// than the run, stays.
func (j *Job) PageVersion(message Version) Version {
	return min(cmp.Or(j.StartVersion, message), message)
}

// HasWritten reports whether the job is a run that succeeded, even without records, or ended partial and has written documents.
func (j *Job) HasWritten() bool {
	return j.Scope != ScopeRetry && (j.State == JobSucceeded || j.State == JobPartial && j.Totals.Written())
}

// Joinable reports whether a trigger of the job's scope and flags is returned this job instead of a new one. A run that has started
// may have passed what changed since, so that only a queued one is; a retry of dead letters is until it ends.
func (j *Job) Joinable() bool {
	return j.State == JobQueued && !j.Begun || j.Scope == ScopeRetry && !j.State.Final()
}

// End ends the job now, with the reason why it did not succeed, nil if it did.
func (j *Job) End(state JobState, reason *JobError) {
	now := time.Now().UTC()
	j.State, j.EndedAt, j.Error, j.Pause = state, &now, reason, nil
}

// OrganizationRun is one organization of a job, with the state that its chain of pages needs to continue after a crash.
type OrganizationRun struct {
	Organization string   `json:"organization"`
	State        JobState `json:"state"`
	Totals       Totals   `json:"totals"`
	// Error is also the reason of a pause.
	Error *JobError `json:"error,omitempty"`
	// PausedSince is when the calls began to fail that led to the pause; nil if the organization is not paused.
	PausedSince *time.Time `json:"pausedSince,omitempty"`
	// Epoch counts the restarts of the chain; Restart is the page number of the last one.
	Epoch   int `json:"epoch,omitempty"`
	Restart int `json:"restart,omitempty"`
	// DoneThrough is the highest page number up to which all pages have ended, -1 for none; Ahead holds the totals of the ended
	// pages beyond it by page number, which a restart of the chain voids.
	DoneThrough int            `json:"doneThrough"`
	Ahead       map[int]Totals `json:"ahead,omitempty"`
	// Voided is the part of Totals from pages that were voided later and have not been counted again. The pages that replace them
	// add only what exceeds it, so that Totals never fall.
	Voided Totals `json:"voided,omitzero"`
	// Late holds, by page number, the epoch of each ended page that requested records one by one. It is nil once their outcomes
	// are in Totals.
	Late map[int]int `json:"late,omitempty"`
	// LastPage is the number of the last page, nil until it is read.
	LastPage *int `json:"lastPage,omitempty"`
	// Listed is the number of records that the repository reported with the last page, nil before any. Totals.Expected is the
	// highest number reported, so that the totals of a running job never fall.
	Listed *int64 `json:"listed,omitempty"`
	// ListTotal is the number of rows of the list when its first page was reported, nil before; Shifted is true once a page
	// reported another number. Both are used for lists whose pages cannot overlap.
	ListTotal *int `json:"listTotal,omitempty"`
	Shifted   bool `json:"shifted,omitempty"`
	// Rereads counts how often the whole list was restarted, the last time with epoch ListEpoch.
	Rereads   int `json:"rereads,omitempty"`
	ListEpoch int `json:"listEpoch,omitempty"`
	// Unswept is the reason why this organization must not be swept, nil if it may be. Swept is true once it was.
	Unswept *JobError `json:"unswept,omitempty"`
	Swept   bool      `json:"swept,omitempty"`
	// Moved is true in a group once the organization is stored by itself, because it has more pages than one.
	Moved bool `json:"moved,omitempty"`
	// IDs are the sorted hashes of the ids of an organization of a group, 8 bytes each, in the job of a difference.
	IDs []byte `json:"ids,omitempty"`
	// Invalid is true once a page showed records that are not to be indexed: their ids are stored with the page or, of an organization
	// of a group, as InvalidIDs, in the form of IDs.
	Invalid    bool   `json:"invalid,omitempty"`
	InvalidIDs []byte `json:"invalidIds,omitempty"`
	// Kinds are those of the records on the pages up to DoneThrough, AheadKinds those of the pages in Ahead, in the job of a repository. Both
	// are removed when the job ends.
	Kinds      Kinds         `json:"kinds,omitempty"`
	AheadKinds map[int]Kinds `json:"aheadKinds,omitempty"`
	// InGroup is set once the Kinds of an organization are among those of its group.
	InGroup bool `json:"inGroup,omitempty"`
}

// EndPause removes the reason and the start of a pause. The caller sets the new state.
func (o *OrganizationRun) EndPause() {
	if o.PausedSince != nil {
		o.PausedSince, o.Error = nil, nil
	}
}

// Begun reports whether a page of the organization has ended, or its chain of pages was restarted.
func (o *OrganizationRun) Begun() bool {
	return o.State.Final() || o.DoneThrough >= 0 || len(o.Ahead) > 0 || o.Epoch > 0
}

// ReadWhole reports whether the organization was read completely and may be swept, even if some of its records were rejected.
func (o *OrganizationRun) ReadWhole() bool {
	return o.State == JobSucceeded || o.OnlyRejected()
}

// OnlyRejected reports whether rejected records are the only failures.
func (o *OrganizationRun) OnlyRejected() bool {
	return o.State == JobPartial && o.Error != nil && o.Error.Code == JobErrorRecordsRejected
}

// Counted reports whether the number of records of the organization is known.
func (o *OrganizationRun) Counted() bool {
	return o.Listed != nil || o.Totals.Expected > 0 || o.LastPage != nil
}

// Expect sets the number of records that the repository reported for the organization.
func (o *OrganizationRun) Expect(records int64) {
	o.Listed = &records
	o.Totals.Expected = max(o.Totals.Expected, records)
}

// FinalTotals returns the totals of a finished run, with the last reported number of expected records.
func (o *OrganizationRun) FinalTotals() Totals {
	t := o.Totals
	if o.Listed != nil {
		t.Expected = *o.Listed
	}
	return t
}

// Rate returns records fetched per second between a job's start and its end or now, 0 before the start.
func (j *Job) Rate(fetched int64, now time.Time) float64 {
	if j.StartedAt == nil {
		return 0
	}
	if j.EndedAt != nil {
		now = *j.EndedAt
	}
	elapsed := now.Sub(*j.StartedAt).Seconds()
	if elapsed <= 0 {
		return 0
	}
	return math.Round(float64(fetched)/elapsed*1000) / 1000
}

// PageDone reports whether page n has ended.
func (o *OrganizationRun) PageDone(n int) bool {
	return n <= o.DoneThrough || o.aheadOf(n)
}

// EndPage records that page n has ended, and adds its counts to the totals, and the kinds of its records to those of the organization.
func (o *OrganizationRun) EndPage(n int, counted Totals, kinds Kinds) {
	if o.PageDone(n) {
		return
	}
	o.Count(counted)
	o.noteKinds(n, kinds)
	if o.Ahead == nil {
		o.Ahead = make(map[int]Totals)
	}
	o.Ahead[n] = counted
	for o.aheadOf(o.DoneThrough + 1) {
		o.DoneThrough++
		delete(o.Ahead, o.DoneThrough)
		o.Kinds = o.Kinds.Add(o.AheadKinds[o.DoneThrough], MaxKindsBytes)
		delete(o.AheadKinds, o.DoneThrough)
	}
}

// noteKinds records the kinds of the records on page n. Together with those of the other pages that are Ahead they are bounded as the
// organization's are.
func (o *OrganizationRun) noteKinds(n int, kinds Kinds) {
	if len(kinds) == 0 || !o.Kinds.Whole() {
		return
	}
	if o.AheadKinds == nil {
		o.AheadKinds = make(map[int]Kinds)
	}
	o.AheadKinds[n] = kinds
	size := 0
	for _, ahead := range o.AheadKinds {
		size += len(ahead)
	}
	if size > MaxKindsBytes {
		o.Kinds, o.AheadKinds = OverflownKinds(), nil
	}
}

// Count adds the counts of a page to the totals, except what voided pages counted before it.
func (o *OrganizationRun) Count(counted Totals) {
	o.Totals.Add(o.Voided.cancelOverlap(counted))
}

func (o *OrganizationRun) aheadOf(n int) bool {
	_, ok := o.Ahead[n]
	return ok
}

// MoveKinds moves the kinds of an organization that has ended to those of its group, which it returns. Those of one that was moved out of
// the group since are counted there again: then they are not known.
func (o *OrganizationRun) MoveKinds(group Kinds) Kinds {
	switch {
	case o.Moved && o.InGroup:
		return OverflownKinds()
	case !o.State.Final() || o.Moved || len(o.Kinds) == 0:
		return group
	}
	group = group.Add(o.Kinds, MaxKindsBytes)
	o.Kinds, o.InGroup = nil, true
	return group
}

// RestartFrom voids all pages from n on, for a chain that is read again from there. Page n must not have ended.
func (o *OrganizationRun) RestartFrom(n int) {
	o.Epoch++
	o.Restart = n
	o.LastPage = nil
	for page, counted := range o.Ahead {
		if page > n {
			o.Voided.Add(counted)
			delete(o.Ahead, page)
			delete(o.Late, page)
			delete(o.AheadKinds, page)
		}
	}
}

// NoteLate records that page n of an epoch has requested records one by one.
func (o *OrganizationRun) NoteLate(n, epoch int) {
	if o.Late == nil {
		o.Late = make(map[int]int)
	}
	o.Late[n] = epoch
}

// IsVoid reports whether page n of an epoch belongs to a part of the chain that was restarted later.
func (o *OrganizationRun) IsVoid(n, epoch int) bool {
	return epoch < o.ListEpoch || epoch < o.Epoch && n > o.Restart
}

// NoteTotal records the number of rows that a page reported for the list.
func (o *OrganizationRun) NoteTotal(total int) {
	if o.ListTotal == nil {
		o.ListTotal = &total
	}
	o.Shifted = o.Shifted || *o.ListTotal != total
}

// Reread voids all pages, for a list that is read again from its start.
func (o *OrganizationRun) Reread() {
	o.Rereads++
	o.Epoch++
	o.ListEpoch = o.Epoch
	o.Restart, o.DoneThrough, o.Ahead, o.LastPage = 0, -1, nil, nil
	o.ListTotal, o.Shifted, o.Late = nil, false, nil
	o.Kinds, o.AheadKinds = nil, nil
	o.Voided = o.Totals
	o.Voided.Expected = 0
}

// AllPagesDone reports whether every page up to the last one has ended.
func (o *OrganizationRun) AllPagesDone() bool {
	return o.LastPage != nil && o.DoneThrough >= *o.LastPage
}

// JobChange is the state of a job or of one of its organizations after a change, as Jobs.Watch returns it: Job or Run is set. Both are
// nil once, after the initial state. A Run may be as it was before.
type JobChange struct {
	// Revision increases with every change of the job and its organizations and is the same in every process.
	Revision uint64
	Job      *Job
	Run      *OrganizationRun
}

// JobFilter selects jobs. The zero value selects all.
type JobFilter struct {
	// Repository and State are those of the jobs, empty for any.
	Repository string
	State      JobState
	// Limit bounds the page, 0 for the default of who lists.
	Limit int
	// Cursor is that of the next page, which the one before returned; empty for the first.
	Cursor string
}

// Matches reports whether the filter selects the jobs of a repository in a state, of any page.
func (f JobFilter) Matches(repository string, state JobState) bool {
	return (f.Repository == "" || f.Repository == repository) && (f.State == "" || f.State == state)
}
