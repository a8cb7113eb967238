package indexing

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

const (
	defaultJobs = 50
	maxJobs     = 200
	// parallelJobs is how many jobs' organizations are read at a time for a list.
	parallelJobs = 8
	// maxCursorBytes bounds a cursor before it is parsed.
	maxCursorBytes = 1024
)

// TotalsBody is Totals whose Expected is null until it is known.
type TotalsBody struct {
	Expected *int64 `json:"expected"`
	core.Totals
}

func newTotalsBody(t core.Totals, counted bool) TotalsBody {
	body := TotalsBody{Totals: t}
	if counted {
		body.Expected = &t.Expected
	}
	return body
}

// JobSummary is a job in JSON (CONTRACT section 1), without its organizations.
type JobSummary struct {
	ID           string        `json:"id"`
	Scope        core.Scope    `json:"scope"`
	Repository   string        `json:"repository"`
	Organization string        `json:"organization,omitempty"`
	IndexName    string        `json:"indexName"`
	State        core.JobState `json:"state"`
	Cause        core.Cause    `json:"cause"`
	Rebuild      bool          `json:"rebuild,omitempty"`
	Difference   bool          `json:"difference,omitempty"`
	// Reason is that of the dead letters of a retry, "" for any.
	Reason        string         `json:"reason,omitempty"`
	QueuedAt      time.Time      `json:"queuedAt"`
	StartedAt     *time.Time     `json:"startedAt"`
	EndedAt       *time.Time     `json:"endedAt"`
	Totals        TotalsBody     `json:"totals"`
	RatePerSecond float64        `json:"ratePerSecond"`
	ETASeconds    *int64         `json:"etaSeconds"`
	Error         *core.JobError `json:"error,omitempty"`
	// Note says what else the job did, "" for nothing.
	Note string `json:"note,omitempty"`
	// Paused is why the job waits, "" while it does not.
	Paused string `json:"paused,omitempty"`
	// OrganizationsTotal is the number of organizations, OrganizationStates that of each state.
	OrganizationsTotal int                   `json:"organizationsTotal"`
	OrganizationStates map[core.JobState]int `json:"organizationStates"`
}

// Retry reports whether the job retries dead letters.
func (j JobSummary) Retry() bool { return j.Scope == core.ScopeRetry }

// JobBody is a job in JSON with its first organizations, in the order of jobsum.Compare.
type JobBody struct {
	JobSummary
	Organizations []OrganizationBody `json:"organizations"`
}

// MoreOrganizations returns how many organizations of the job Organizations does not hold.
func (b JobBody) MoreOrganizations() int { return b.OrganizationsTotal - len(b.Organizations) }

// OrganizationBody is one organization of a job in JSON.
type OrganizationBody struct {
	Organization string         `json:"organization"`
	Totals       TotalsBody     `json:"totals"`
	State        core.JobState  `json:"state"`
	Error        *core.JobError `json:"error,omitempty"`
}

type jobList struct {
	Jobs       []JobBody `json:"jobs"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// newJobSummary returns the body of a job, with rate and eta as of now. The expected number of records is
// known once every organization was counted.
func newJobSummary(job core.Job, sum jobsum.Sum, now time.Time) JobSummary {
	b := JobSummary{
		ID: job.ID, Scope: job.Scope, Repository: job.Repository, Organization: job.Organization,
		IndexName: job.IndexName, State: job.State, Cause: job.Cause, Rebuild: job.Rebuild, Difference: job.Difference, Reason: job.Reason, QueuedAt: job.QueuedAt.UTC(),
		StartedAt: utc(job.StartedAt), EndedAt: utc(job.EndedAt), Error: job.Error, Note: job.Note,
		OrganizationsTotal: sum.Known, OrganizationStates: statesOf(sum),
	}
	if job.Pause != nil {
		b.Paused = job.Pause.Reason
	}
	b.Totals = newTotalsBody(sum.TotalsOf(&job))
	b.RatePerSecond = job.Rate(b.Totals.Fetched, now)
	b.ETASeconds = eta(b.Totals, b.RatePerSecond, job.State)
	return b
}

func newOrganizationBody(o *core.OrganizationRun) OrganizationBody {
	totals := o.Totals
	if o.State.Final() {
		totals = o.FinalTotals()
	}
	return OrganizationBody{Organization: o.Organization, Totals: newTotalsBody(totals, o.Counted()), State: o.State, Error: o.Error}
}

// eta returns the remaining seconds of a running job at its rate, nil if unknown.
func eta(t TotalsBody, rate float64, state core.JobState) *int64 {
	if state != core.JobRunning || rate <= 0 || t.Expected == nil || *t.Expected <= 0 {
		return nil
	}
	left := int64(math.Ceil(float64(max(0, *t.Expected-t.Fetched)) / rate))
	return &left
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// jobs handles /jobs.
type jobs struct {
	port          Jobs
	organizations Organizations
	lists         Lists
	events        JobEvents
	// pauses is nil for none.
	pauses Pauses
	now    func() time.Time
}

func (j jobs) list(w http.ResponseWriter, r *http.Request) error {
	q, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	repository, err := repositoryOf(q)
	if err != nil {
		return err
	}
	state, err := stateOf(q)
	if err != nil {
		return err
	}
	limit, err := q.Integer("limit", 1, maxJobs, defaultJobs)
	if err != nil {
		return err
	}
	cursor, err := cursorOf(q)
	if err != nil {
		return err
	}
	page, next, err := VisibleJobs(r, j.port, core.JobFilter{Repository: repository, State: state, Limit: limit, Cursor: cursor})
	if err != nil {
		return fmt.Errorf("listing jobs: %w", err)
	}
	bodies, err := j.bodies(r.Context(), page)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, jobList{Jobs: bodies, NextCursor: next})
}

// repositoryOf returns the repository that a list is filtered by, "" for any.
func repositoryOf(q api.Query) (string, error) {
	repository, err := q.Text("repository")
	if err != nil || repository == "" {
		return "", err
	}
	return repository, core.ValidID("query parameter repository", repository)
}

// cursorOf returns the cursor of a list, "" for its beginning.
func cursorOf(q api.Query) (string, error) {
	cursor, err := q.Text("cursor")
	if err == nil && len(cursor) > maxCursorBytes {
		err = core.NewError(core.CodeInvalid, "query parameter cursor was not issued by this server")
	}
	return cursor, err
}

func stateOf(q api.Query) (core.JobState, error) {
	v, err := q.Text("state")
	if err != nil {
		return "", err
	}
	state := core.JobState(v)
	if v != "" && !slices.Contains(core.JobStates(), state) {
		return "", core.NewError(core.CodeInvalid, fmt.Sprintf("query parameter state must be one of %v", core.JobStates()))
	}
	return state, nil
}

// bodies returns the bodies of a list, with no more than listedOrganizations of each job.
func (j jobs) bodies(ctx context.Context, list []core.Job) ([]JobBody, error) {
	bodies := make([]JobBody, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelJobs)
	for i, job := range list {
		group.Go(func() (err error) {
			bodies[i], err = j.body(ctx, job, listedOrganizations)
			return err
		})
	}
	return bodies, group.Wait()
}

func (j jobs) body(ctx context.Context, job core.Job, limit int) (JobBody, error) {
	body, err := ReadJobBody(ctx, j.organizations, job, limit, j.now())
	if err == nil {
		j.notePause(&body.JobSummary)
	}
	return body, err
}

// notePause sets the reason of a job that waits because its repository is paused.
func (j jobs) notePause(job *JobSummary) {
	if job.State.Final() || job.Paused != "" || j.pauses == nil || job.Scope == core.ScopeRetry { // a retry only publishes requests
		return
	}
	for _, p := range j.pauses.Paused() {
		if p.Repository == job.Repository {
			job.Paused = p.Reason
			return
		}
	}
}

func (j jobs) get(w http.ResponseWriter, r *http.Request) error {
	return j.answer(w, r, j.port.Get)
}

// cancel cancels a job. A job that has already ended is 409.
func (j jobs) cancel(w http.ResponseWriter, r *http.Request) error {
	return j.answer(w, r, func(ctx context.Context, id string) (core.Job, error) {
		if err := api.ReadEmptyObject(r); err != nil {
			return core.Job{}, err
		}
		return j.port.Cancel(ctx, id)
	})
}

func (j jobs) answer(
	w http.ResponseWriter, r *http.Request, do func(context.Context, string) (core.Job, error),
) error {
	id, err := api.PathParam(r, "id", "id")
	if err != nil {
		return err
	}
	if err := CheckJob(r, j.port, id); err != nil {
		return err
	}
	job, err := do(r.Context(), id)
	if err != nil {
		return err
	}
	body, err := j.body(r.Context(), job, ShownOrganizations)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, body)
}
