// Package sweep removes the documents that a run did not see: it reads the index after the lists, requests what is left from the repository,
// and deletes what the lists showed as not valid, unless that is too much. For a rebuild it completes the index that is filled, and compares
// a sample of it.
//
// It imports internal/core, internal/index/bulk and the packages consumers/loop, fetch, outage, outcome and state.
package sweep

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/consumers/outage"
	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// Config holds the settings and dependencies of a Sweeper; all but one of Document and Split are required.
type Config struct {
	Repository core.Repository
	Logger     *slog.Logger
	Loop       *loop.Loop
	Jobs       *state.Jobs
	Calls      *outage.Calls
	Fetcher    *fetch.Fetcher
	Outcomes   *outcome.Outcomes
	Writer     *bulk.Writer

	Organizations Organizations
	Requests      Requests
	Notes         Notes
	Index         Index
	// Document appends the document made of a record to dst.
	Document func(dst []byte, rec core.Record) []byte
	// Split calls each with the documents of a record instead, if it is set.
	Split func(rec core.Record, each func(id string, document []byte) error) error
	// ExcludedOrganizations are those whose records are all excluded.
	ExcludedOrganizations []string
	// ClockSkew is how far a stored version may lie ahead of now without being a version from the future.
	ClockSkew time.Duration
	// Timeout is how long a sweep waits for the next of its records to end, Attempts how often it tries to delete a document.
	Timeout  time.Duration
	Attempts int
}

// Sweeper sweeps the index for documents that a run did not see. It publishes record Requests for a job, and waits for their outcomes.
type Sweeper struct {
	cfg      Config
	requests *requests
	remover  *remover
	sampler  *sampler
}

// New returns a Sweeper.
func New(cfg Config) *Sweeper {
	q := &requests{cfg}
	return &Sweeper{cfg: cfg, requests: q, remover: &remover{cfg, q}, sampler: &sampler{cfg, q}}
}

// Refresh makes earlier writes visible to scans and searches, as soon as the index takes writes. It returns why that failed,
// and an error only when the process is stopping or, loop.ErrJobEnded, the job has ended.
func (s *Sweeper) Refresh(ctx context.Context, job core.Job) (*core.JobError, error) {
	return s.requests.refresh(ctx, job)
}

// Result is the result of one sweep: how many documents were removed and how many records were rejected, or why nothing
// was requested.
type Result struct {
	Removed, Rejected int64
	Surplus           int64 // documents that a job that compares did not find on the list
	Guard             *core.JobError
}

// add adds the result of another sweep.
func (s *Result) add(o Result) {
	s.Removed += o.Removed
	s.Rejected += o.Rejected
	s.Surplus += o.Surplus
	if o.Guard != nil {
		s.Guard = o.Guard
	}
}

// Note adds the result to the organization's run, once.
func (s Result) Note(run *core.OrganizationRun) {
	if run.Swept {
		return
	}
	run.Swept = true
	run.Totals.Removed += s.Removed
	run.Totals.Rejected += s.Rejected
	run.Totals.Drift.Surplus += s.Surplus
	if s.Guard != nil {
		run.State, run.Error = core.JobPartial, s.Guard
	}
}

// Organization requests each document of an organization that the run did not see from the upstream. It waits until each of those Requests
// has its outcome.
func (s *Sweeper) Organization(ctx context.Context, job core.Job, run core.OrganizationRun) (Result, error) {
	organization := run.Organization
	job.Force = job.Force || slices.Contains(s.cfg.ExcludedOrganizations, organization) // its documents are to be removed
	unseen, guard, err := s.unseen(ctx, job, []core.OrganizationRun{run}, s.scopeOf(organization))
	if err != nil {
		return Result{}, err
	}
	noted, err := s.remover.noted(ctx, job, organization, stepUnseen)
	if err != nil {
		return Result{}, err
	}
	if guard == nil {
		return s.remover.remove(ctx, job, organization, stepUnseen, unseen, noted[organization])
	}
	return s.remover.notRemoved(ctx, job, unseen, guard, noted)
}

// sweepCompleteOrganizations sweeps each organization of a repository's job that was read completely, and stores the result
// in its run.
func (s *Sweeper) sweepCompleteOrganizations(ctx context.Context, job core.Job, runs []core.OrganizationRun) error {
	for _, run := range runs {
		if !run.ReadWhole() || run.Swept {
			continue
		}
		swept, err := s.Organization(ctx, job, run)
		if err != nil {
			return err
		}
		if err := s.noteSweep(ctx, job, run.Organization, swept); err != nil {
			return err
		}
	}
	return nil
}

// sweepRepository sweeps a repository of which all organizations were read completely: their documents, and those of
// organizations that it no longer lists. It returns the result of the latter, and stores the others in their runs.
func (s *Sweeper) sweepRepository(ctx context.Context, job core.Job, runs []core.OrganizationRun) (Result, error) {
	unseen, guard, err := s.unseen(ctx, job, runs, core.IndexScope{Repository: s.cfg.Repository.Code})
	if err != nil {
		return Result{}, err
	}
	noted, err := s.remover.noted(ctx, job, "", stepUnseen)
	if err != nil {
		return Result{}, err
	}
	for _, run := range runs {
		if run.Swept { // its totals have it
			delete(noted, run.Organization)
		}
	}
	if guard != nil {
		return s.remover.notRemoved(ctx, job, unseen, guard, noted)
	}
	byOrganization, err := s.groupByOrganization(ctx, job, unseen)
	if err != nil {
		return Result{}, err
	}
	addNoted(byOrganization, noted)
	for _, run := range runs {
		unseen, is := byOrganization[run.Organization]
		before := noted[run.Organization]
		delete(byOrganization, run.Organization)
		delete(noted, run.Organization)
		if !is {
			continue
		}
		if err := s.sweepWithGuard(ctx, job, run.Organization, unseen, before); err != nil {
			return Result{}, err
		}
	}
	return s.remover.removeAll(ctx, job, stepUnseen, byOrganization, noted)
}

// sweepWithGuard sweeps one organization of a repository's job, under its own guard.
func (s *Sweeper) sweepWithGuard(ctx context.Context, job core.Job, organization string, unseen unseenDocuments, noted []string) error {
	total, err := s.cfg.Index.Count(ctx, s.cfg.Repository.IndexName, s.scopeOf(organization))
	if err != nil {
		return s.cfg.Outcomes.PauseOnError(err)
	}
	var swept Result
	if unseen.guard(job, total) {
		swept, err = s.remover.notRemoved(ctx, job, unseen, unseen.guardError(total), map[string][]string{organization: noted})
	} else {
		swept, err = s.remover.remove(ctx, job, organization, stepUnseen, unseen, noted)
	}
	if err != nil {
		return err
	}
	return s.noteSweep(ctx, job, organization, swept)
}

func (s *Sweeper) noteSweep(ctx context.Context, job core.Job, organization string, swept Result) error {
	_, err := s.cfg.Organizations.UpdateOrganization(ctx, job.ID, organization, func(run *core.OrganizationRun) error {
		swept.Note(run)
		state.NoteRejected(s.cfg.Repository.Code, run)
		return nil
	})
	return err
}

func (s *Sweeper) scopeOf(organization string) core.IndexScope {
	return core.IndexScope{Repository: s.cfg.Repository.Code, Field: s.cfg.Repository.Fields.Organization, Organization: organization}
}

// groupByOrganization groups documents by their organization, without those that no longer exist.
func (s *Sweeper) groupByOrganization(ctx context.Context, job core.Job, all unseenDocuments) (map[string]unseenDocuments, error) {
	groups := make(map[string]unseenDocuments)
	var mu sync.Mutex
	add := func(ids []string, invalid bool) error {
		return s.requests.eachDocument(ctx, job, ids, func(id string, stored core.StoredDocument, found bool) {
			if !found {
				return
			}
			organization := gjson.GetBytes(stored.Source, s.cfg.Repository.Fields.Organization).String()
			mu.Lock()
			defer mu.Unlock()
			group := groups[organization]
			group.first, group.requestedAlone = all.first, all.requestedAlone
			group.add(id, stored.Version, invalid)
			groups[organization] = group
		})
	}
	if err := add(all.ids, false); err != nil {
		return groups, err
	}
	return groups, add(all.invalidIDs, true)
}

// unseen returns the documents of the scope of runs that these may not have seen, or whose records their lists showed as not to be
// indexed, or why the guard forbids to remove them.
func (s *Sweeper) unseen(
	ctx context.Context, job core.Job, runs []core.OrganizationRun, scope core.IndexScope,
) (unseenDocuments, *core.JobError, error) {
	unseen := unseenDocuments{first: job.StartVersion}
	if job.StartCheckpoint == core.CheckpointNone {
		return unseen, nil, nil
	}
	var err error
	// The scan sees the documents of Requests that end after this.
	if unseen.requestedAlone, err = s.cfg.Requests.PendingRecords(ctx, s.cfg.Repository.Code, scope.Organization); err != nil {
		return unseen, nil, err
	}
	if why, err := s.requests.refresh(ctx, job); why != nil || err != nil {
		return unseen, why, err
	}
	shown, err := s.shown(ctx, job, runs)
	if err != nil {
		return unseen, nil, err
	}
	index := s.cfg.Index
	scan := scope
	scan.WrittenBy = job.StartCheckpoint
	scan.Beyond = core.Version(time.Now().Add(s.cfg.ClockSkew).UnixNano())
	total := int64(-1)
	err = index.Scan(ctx, s.cfg.Repository.IndexName, scan, job.StartVersion, func(id string, v core.Version) error {
		record := id
		if s.cfg.Split != nil && len(unseen.requestedAlone)+len(shown.invalid) > 0 {
			var err error
			if record, err = s.requests.recordOf(ctx, id); err != nil {
				return err
			}
		}
		invalid := contains(shown.invalid, record)
		if !invalid && contains(shown.listed, id) {
			return nil
		}
		if total < 0 { // most sweeps find nothing and need no count
			var err error
			if total, err = index.Count(ctx, s.cfg.Repository.IndexName, scope); err != nil {
				return err
			}
		}
		if _, is := unseen.requestedAlone[record]; is && s.cfg.Split != nil { // its own Request removes the document
			return nil
		}
		unseen.add(id, v, invalid)
		unseen.guard(job, total) // which bounds the ids that are held
		return nil
	})
	if err != nil {
		return unseen, nil, s.cfg.Outcomes.PauseOnError(err)
	}
	if unseen.guard(job, total) {
		return unseen, unseen.guardError(total), nil
	}
	return unseen, nil, nil
}

// Late waits until the record Requests of ids of an organization have ended, which its pages have published, and counts the outcomes. open is
// the number of records that have not ended.
func (s *Sweeper) Late(ctx context.Context, job core.Job, organization string, ids []string) (settled core.Totals, open int, err error) {
	return s.requests.settle(ctx, job, organization, ids, true)
}
