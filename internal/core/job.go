package core

import "time"

// JobState is where a job stands.
type JobState string

// States of a Job and of one organization of it. All but the first two are final.
const (
	JobQueued    JobState = "queued"
	JobRunning   JobState = "running"
	JobSucceeded JobState = "succeeded"
	JobPartial   JobState = "partial"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// Final reports whether a job in this state never changes again.
func (s JobState) Final() bool { return s != JobQueued && s != JobRunning }

// JobStates lists every state.
func JobStates() []JobState {
	return []JobState{JobQueued, JobRunning, JobSucceeded, JobPartial, JobFailed, JobCancelled}
}

// Totals counts the records of a job.
type Totals struct {
	Expected int64 `json:"expected"`
	Fetched  int64 `json:"fetched"`
	Indexed  int64 `json:"indexed"`
	Stale    int64 `json:"stale"`
	Removed  int64 `json:"removed"`
	Rejected int64 `json:"rejected"`
	Retried  int64 `json:"retried"`
}

// Add adds o to t, member by member.
func (t *Totals) Add(o Totals) {
	t.Expected += o.Expected
	t.Fetched += o.Fetched
	t.Indexed += o.Indexed
	t.Stale += o.Stale
	t.Removed += o.Removed
	t.Rejected += o.Rejected
	t.Retried += o.Retried
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
	case OutcomeRemoved, OutcomeMismatch, OutcomeRetry:
	}
}

// cancelOverlap takes from t what counts again in o, and returns what o counts beyond t.
func (t *Totals) cancelOverlap(o Totals) Totals {
	for _, pair := range [][2]*int64{
		{&t.Expected, &o.Expected},
		{&t.Fetched, &o.Fetched},
		{&t.Indexed, &o.Indexed},
		{&t.Stale, &o.Stale},
		{&t.Removed, &o.Removed},
		{&t.Rejected, &o.Rejected},
		{&t.Retried, &o.Retried},
		{&t.Indexed, &o.Stale},
		{&t.Stale, &o.Indexed}, // a newer write may have come between the two
	} {
		both := min(*pair[0], *pair[1])
		*pair[0] -= both
		*pair[1] -= both
	}
	return o
}

// JobError says why a job or one organization of it did not succeed; safe to display.
type JobError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Codes of a JobError beside those of Error.
const (
	JobErrorPruneGuard      = "prune_guard"
	JobErrorListShifted     = "list_shifted"
	JobErrorCancelled       = "cancelled"
	JobErrorSweepIncomplete = "sweep_incomplete"
	JobErrorInterrupted     = "interrupted"
	JobErrorRecordsRejected = "records_rejected"
	JobErrorNotRefreshed    = "not_refreshed"

	JobErrorUnknownRepository = ReasonUnknownRepository
)

// Job is one run over an organization or a repository, as kept in the queue's key-value bucket.
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
	RequestID    string     `json:"requestId,omitempty"`
	QueuedAt     time.Time  `json:"queuedAt"`
	StartedAt    *time.Time `json:"startedAt,omitempty"`
	EndedAt      *time.Time `json:"endedAt,omitempty"`
	Totals       Totals     `json:"totals"`
	Error        *JobError  `json:"error,omitempty"`
	// StartVersion is the timestamp of the job's first Request: documents below it were not seen by the run.
	StartVersion Version `json:"startVersion,omitempty"`
	// StartCheckpoint is the index's mark at the start, empty where older Requests were still worked on then: what was
	// written after it is not older than the run.
	StartCheckpoint string `json:"startMark,omitempty"`
	// ExpectedOrganizations is the number of organizations of the run, nil until they are listed.
	ExpectedOrganizations *int `json:"expectedOrganizations,omitempty"`
	// Returned counts how often this job was returned to a trigger instead of queuing a second one.
	Returned int `json:"returned,omitempty"`
}

// OrganizationRun is one organization of a job, with what its chain of pages needs to go on after a crash.
type OrganizationRun struct {
	Organization string    `json:"organization"`
	State        JobState  `json:"state"`
	Totals       Totals    `json:"totals"`
	Error        *JobError `json:"error,omitempty"`
	// Epoch and Restart: the chain was restarted Epoch times, the last time from page number Restart.
	Epoch   int `json:"epoch,omitempty"`
	Restart int `json:"restart,omitempty"`
	// DoneThrough is the highest page number up to which all pages have ended, -1 for none; Ahead holds the totals of
	// the ended pages beyond it by their number, which a restart of the chain voids.
	DoneThrough int            `json:"doneThrough"`
	Ahead       map[int]Totals `json:"ahead,omitempty"`
	// Voided is what Totals counts of pages that were voided since and that no page counted again: the pages that replace
	// them count only what is beyond it, so that Totals never fall.
	Voided Totals `json:"voided,omitzero"`
	// Late holds, by the number of each ended page that requested records one by one, the epoch under which they are noted.
	// It is nil once their outcomes are in Totals.
	Late map[int]int `json:"late,omitempty"`
	// LastPage is the number of the last page, nil until it was read.
	LastPage *int `json:"lastPage,omitempty"`
	// Listed is how many records the repository reported with the last page, nil before any. Totals.Expected is the highest
	// number that it reported, so that the totals of a running job never fall.
	Listed *int64 `json:"listed,omitempty"`
	// ListTotal is how many rows the list had when its first page was reported, nil before; Shifted is true once a page
	// said otherwise. Both are kept for lists whose pages cannot overlap.
	ListTotal *int `json:"listTotal,omitempty"`
	Shifted   bool `json:"shifted,omitempty"`
	// Rereads counts how often the whole list was begun anew, the last time with epoch ListEpoch.
	Rereads   int `json:"rereads,omitempty"`
	ListEpoch int `json:"listEpoch,omitempty"`
	// Unswept says why this organization must not be swept, nil when it may be. Swept is true once it was.
	Unswept *JobError `json:"unswept,omitempty"`
	Swept   bool      `json:"swept,omitempty"`
}

// ReadWhole reports whether the organization was read to its end and nothing forbids its sweep, also when some of its
// records were rejected.
func (o *OrganizationRun) ReadWhole() bool {
	return o.State == JobSucceeded || o.OnlyRejected()
}

// OnlyRejected reports whether rejected records are all that went wrong.
func (o *OrganizationRun) OnlyRejected() bool {
	return o.State == JobPartial && o.Error != nil && o.Error.Code == JobErrorRecordsRejected
}

// Counted reports whether it is known how many records the organization has.
func (o *OrganizationRun) Counted() bool {
	return o.Listed != nil || o.Totals.Expected > 0 || o.LastPage != nil
}

// Expect sets how many records the repository reported for the organization.
func (o *OrganizationRun) Expect(records int64) {
	o.Listed = &records
	o.Totals.Expected = max(o.Totals.Expected, records)
}

// FinalTotals returns the totals of a run that has ended, which expects as many records as were reported last.
func (o *OrganizationRun) FinalTotals() Totals {
	t := o.Totals
	if o.Listed != nil {
		t.Expected = *o.Listed
	}
	return t
}

// JobSum sums up the organizations of a job that are known so far. The zero value is an empty sum.
type JobSum struct {
	// Totals are the sums of the organizations' totals.
	Totals Totals
	// Known is the number of organizations, Counted that of those whose expected records are known.
	Known, Counted int
}

// Add adds an organization.
func (s *JobSum) Add(o *OrganizationRun) {
	s.Totals.Add(o.Totals)
	s.Known++
	if o.Counted() {
		s.Counted++
	}
}

// TotalsOf returns the totals of job, whose organizations are summed up in s, and reports whether their Expected is known: all
// organizations are listed and counted. A job that has ended has totals of its own.
func (s *JobSum) TotalsOf(job *Job) (totals Totals, counted bool) {
	totals = job.Totals
	if !job.State.Final() && s.Known > 0 {
		totals = s.Totals
	}
	listed := job.ExpectedOrganizations
	return totals, listed != nil && s.Known >= *listed && s.Counted == s.Known
}

// PageDone reports whether page n has ended.
func (o *OrganizationRun) PageDone(n int) bool {
	return n <= o.DoneThrough || o.aheadOf(n)
}

// EndPage notes that page n has ended, and adds what it counted to the totals.
func (o *OrganizationRun) EndPage(n int, counted Totals) {
	if o.PageDone(n) {
		return
	}
	o.Count(counted)
	if o.Ahead == nil {
		o.Ahead = make(map[int]Totals)
	}
	o.Ahead[n] = counted
	for o.aheadOf(o.DoneThrough + 1) {
		o.DoneThrough++
		delete(o.Ahead, o.DoneThrough)
	}
}

// Count adds what a page counted to the totals, but for what voided pages counted before it.
func (o *OrganizationRun) Count(counted Totals) {
	o.Totals.Add(o.Voided.cancelOverlap(counted))
}

func (o *OrganizationRun) aheadOf(n int) bool {
	_, ok := o.Ahead[n]
	return ok
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
		}
	}
}

// NoteLate notes that page n of an epoch has requested records one by one.
func (o *OrganizationRun) NoteLate(n, epoch int) {
	if o.Late == nil {
		o.Late = make(map[int]int)
	}
	o.Late[n] = epoch
}

// IsVoid reports whether page n of an epoch belongs to a part of a chain that was begun anew since.
func (o *OrganizationRun) IsVoid(n, epoch int) bool {
	return epoch < o.ListEpoch || epoch < o.Epoch && n > o.Restart
}

// NoteTotal notes how many rows a page said that the list has.
func (o *OrganizationRun) NoteTotal(total int) {
	if o.ListTotal == nil {
		o.ListTotal = &total
	}
	o.Shifted = o.Shifted || *o.ListTotal != total
}

// Reread voids all pages, for a list that is read once more from its start.
func (o *OrganizationRun) Reread() {
	o.Rereads++
	o.Epoch++
	o.ListEpoch = o.Epoch
	o.Restart, o.DoneThrough, o.Ahead, o.LastPage = 0, -1, nil, nil
	o.ListTotal, o.Shifted, o.Late = nil, false, nil
	o.Voided = o.Totals
	o.Voided.Expected = 0
}

// AllPagesDone reports whether every page up to the last one has ended.
func (o *OrganizationRun) AllPagesDone() bool {
	return o.LastPage != nil && o.DoneThrough >= *o.LastPage
}

// JobChange is one change of a job or of one of its organizations, as Jobs.Watch gives it: Job or Run is set. Both are
// nil once, after everything that was there at the start.
type JobChange struct {
	// Revision grows with every change of the job and its organizations and is the same in every process.
	Revision uint64
	Job      *Job
	Run      *OrganizationRun
}
