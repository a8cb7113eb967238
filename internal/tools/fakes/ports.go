package fakes

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"tutti/http/indexing"
	"tutti/http/system"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/core/jobsum"
	"tutti/internal/index/mappingplan"
	"tutti/internal/report/recordtrace"
)

// SignedRepository is the one whose notifications must be signed.
const SignedRepository = "signed"

// Ports implements the ports of the indexing surface, Readiness and Backups. A method calls its function, which has no context unless the
// answer depends on it; a method whose function is nil panics.
type Ports struct {
	RecordFn        func(kind core.Kind, record core.RecordRef, requestID string) (string, error)
	RunFn           func(scope core.Scope, repository, organization string, flags core.RunFlags, cause core.Cause, requestID string) (core.Job, error)
	IDsFn           func(repository, organization string, list []idlist.List, requestID string) (core.Job, error)
	IDPageFn        func(jobID, organization string, page int) ([]idlist.ID, error)
	TraceFn         func(record core.RecordRef, restricted bool) (recordtrace.Trace, error)
	RollbackFn      func(repository, requestID string) (core.Job, error)
	DropPreviousFn  func(repository string) error
	PlanFn          func(repository string) (mappingplan.Plan, error)
	RepositoriesFn  func() ([]core.RepositoryStatus, error)
	ListFn          func(f core.JobFilter) ([]core.Job, string, error)
	GetFn           func(id string) (core.Job, error)
	OrganizationsFn func(jobID string) ([]core.OrganizationRun, error)
	CancelFn        func(id string) (core.Job, error)
	WatchFn         func(ctx context.Context, id string, each func(core.JobChange) error) error
	PausedFn        func() []core.Pause
	NotifyFn        func(repository string, body []byte, signature, requestID string) (core.NotificationResult, error)
	HealthFn        func() system.Health
	BackupFn        func(ctx context.Context, w io.Writer) error
	Letters         *Letters

	// The functions of New answer from what follows. Mutex guards Jobs, Runs, DeadLetters and Calls.
	sync.Mutex
	// Jobs are all jobs, the newest first, and Runs the organizations of each of them.
	Jobs []core.Job
	Runs []core.OrganizationRun
	// DeadLetters are all dead letters, the last written first.
	DeadLetters []core.DeadLetter
	// Statuses are those of the repositories.
	Statuses []core.RepositoryStatus
	// Err is returned beside what is read, unless it is nil.
	Err error
	// Calls has a line for each call of a method that changes something.
	Calls []string
}

// New returns ports that all succeed, without TraceFn and with nothing in memory. CodeNotFound is the error of IDPage and of a Get of what is
// not in memory. Cancel, Delete and Retry return what Get does.
func New() *Ports {
	p := &Ports{}
	p.RecordFn = func(kind core.Kind, record core.RecordRef, _ string) (string, error) {
		p.Note("%s %s %s %s", kind, record.Repository(), record.Organization(), record.ID())
		return "analyses", nil
	}
	run := core.Job{ID: "job-1", IndexName: "analyses"}
	p.RunFn = func(scope core.Scope, repository, organization string, flags core.RunFlags, _ core.Cause, _ string) (core.Job, error) {
		p.Note("run %s %s %s %+v", scope, repository, organization, flags)
		return run, nil
	}
	p.IDsFn = func(repository, organization string, list []idlist.List, _ string) (core.Job, error) {
		p.Note("ids %s %q %v", repository, organization, list)
		return run, nil
	}
	p.IDPageFn = func(string, string, int) ([]idlist.ID, error) {
		return nil, core.NewError(core.CodeNotFound, "no such page")
	}
	p.RollbackFn = func(string, string) (core.Job, error) { return run, nil }
	p.DropPreviousFn = func(string) error { return nil }
	p.PlanFn = func(repository string) (mappingplan.Plan, error) {
		return mappingplan.Plan{
			Repository: repository, State: "absent", Summary: "absent", Fields: []mappingplan.Field{}, Limits: []mappingplan.Setting{}, Difference: true,
		}, nil
	}
	p.RepositoriesFn = func() ([]core.RepositoryStatus, error) { return p.Statuses, p.Err }
	p.ListFn = func(f core.JobFilter) ([]core.Job, string, error) {
		return matching(p, &p.Jobs, func(j core.Job) bool { return f.Matches(j.Repository, j.State) }), "", p.Err
	}
	p.GetFn = func(id string) (core.Job, error) {
		return one(p, matching(p, &p.Jobs, func(j core.Job) bool { return j.ID == id }), "no such job")
	}
	p.CancelFn = func(id string) (core.Job, error) {
		p.Note("cancel %s", id)
		return p.GetFn(id)
	}
	p.OrganizationsFn = func(string) ([]core.OrganizationRun, error) {
		return matching(p, &p.Runs, func(core.OrganizationRun) bool { return true }), p.Err
	}
	p.WatchFn = func(ctx context.Context, _ string, _ func(core.JobChange) error) error {
		<-ctx.Done()
		return ctx.Err()
	}
	p.PausedFn = func() []core.Pause { return nil }
	p.NotifyFn = func(string, []byte, string, string) (core.NotificationResult, error) {
		return core.NotificationResult{Accepted: 1}, nil
	}
	p.HealthFn = func() system.Health { return system.Health{} }
	p.BackupFn = func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, "archive")
		return err
	}
	p.Letters = newLetters(p)
	return p
}

// matching returns those of a slice in memory that match.
func matching[T any](p *Ports, all *[]T, match func(T) bool) (found []T) {
	p.Lock()
	defer p.Unlock()
	for _, v := range *all {
		if match(v) {
			found = append(found, v)
		}
	}
	return found
}

// one returns the first of some, CodeNotFound if there is none.
func one[T any](p *Ports, found []T, missing string) (T, error) {
	if len(found) == 0 {
		var none T
		return none, core.NewError(core.CodeNotFound, missing)
	}
	return found[0], p.Err
}

// Note adds a line to Calls.
func (p *Ports) Note(format string, args ...any) {
	p.Lock()
	defer p.Unlock()
	p.Calls = append(p.Calls, fmt.Sprintf(format, args...))
}

// Indexing returns the ports of the indexing surface.
func (p *Ports) Indexing() indexing.Ports {
	return indexing.Ports{
		Ingest: p, Traces: p, Notifications: p, Jobs: p, Organizations: p, Lists: p, JobEvents: p, DeadLetters: p.Letters, Retries: p.Letters,
		Rebuilds: p, Repositories: p, Pauses: p,
	}
}

// Record implements indexing.Ingest.
func (p *Ports) Record(_ context.Context, kind core.Kind, record core.RecordRef, requestID string) (string, error) {
	return p.RecordFn(kind, record, requestID)
}

// Run implements indexing.Ingest.
func (p *Ports) Run(_ context.Context, scope core.Scope, repository, organization string, flags core.RunFlags, cause core.Cause, requestID string) (core.Job, error) {
	return p.RunFn(scope, repository, organization, flags, cause, requestID)
}

// IDs implements indexing.Ingest.
func (p *Ports) IDs(_ context.Context, repository, organization string, list []idlist.List, requestID string) (core.Job, error) {
	return p.IDsFn(repository, organization, list, requestID)
}

// IDPage implements indexing.Lists.
func (p *Ports) IDPage(_ context.Context, jobID, organization string, page int) ([]idlist.ID, error) {
	return p.IDPageFn(jobID, organization, page)
}

// Trace implements indexing.Traces.
func (p *Ports) Trace(_ context.Context, record core.RecordRef, restricted bool) (recordtrace.Trace, error) {
	return p.TraceFn(record, restricted)
}

// Rollback implements indexing.Rebuilds.
func (p *Ports) Rollback(_ context.Context, repository, requestID string) (core.Job, error) {
	return p.RollbackFn(repository, requestID)
}

// DropPrevious implements indexing.Rebuilds.
func (p *Ports) DropPrevious(_ context.Context, repository string) error {
	return p.DropPreviousFn(repository)
}

// Plan implements indexing.Rebuilds.
func (p *Ports) Plan(_ context.Context, repository string) (mappingplan.Plan, error) {
	return p.PlanFn(repository)
}

// Repositories implements indexing.Repositories.
func (p *Ports) Repositories(context.Context) ([]core.RepositoryStatus, error) {
	return p.RepositoriesFn()
}

// List implements indexing.Jobs.
func (p *Ports) List(_ context.Context, f core.JobFilter) ([]core.Job, string, error) {
	return p.ListFn(f)
}

// Get implements indexing.Jobs.
func (p *Ports) Get(_ context.Context, id string) (core.Job, error) { return p.GetFn(id) }

// Organizations implements indexing.Jobs.
func (p *Ports) Organizations(_ context.Context, jobID string) ([]core.OrganizationRun, error) {
	return p.OrganizationsFn(jobID)
}

// Cancel implements indexing.Jobs.
func (p *Ports) Cancel(_ context.Context, id string) (core.Job, error) { return p.CancelFn(id) }

// OrganizationPage implements indexing.Organizations with the organizations of OrganizationsFn. A cursor is the number of the next one.
func (p *Ports) OrganizationPage(_ context.Context, jobID string, f jobsum.OrganizationFilter) (jobsum.OrganizationPage, error) {
	runs, err := p.OrganizationsFn(jobID)
	var page jobsum.OrganizationPage
	slices.SortStableFunc(runs, func(a, b core.OrganizationRun) int {
		return jobsum.Rank(a.State) - jobsum.Rank(b.State)
	})
	for i := range runs {
		page.Sum.Add(&runs[i])
		if f.State == "" || runs[i].State == f.State {
			page.Runs = append(page.Runs, runs[i])
		}
	}
	if at, _ := strconv.Atoi(f.Cursor); at > 0 {
		page.Runs = page.Runs[at:]
	}
	if len(page.Runs) > f.Limit {
		page.Runs, page.Next = page.Runs[:f.Limit], strconv.Itoa(f.Limit)
	}
	return page, err
}

// Watch implements indexing.JobEvents.
func (p *Ports) Watch(ctx context.Context, id string, each func(core.JobChange) error) error {
	return p.WatchFn(ctx, id, each)
}

// Paused implements indexing.Pauses.
func (p *Ports) Paused() []core.Pause { return p.PausedFn() }

// Notify implements indexing.Notifications.
func (p *Ports) Notify(_ context.Context, repository string, body []byte, signature, requestID string) (core.NotificationResult, error) {
	return p.NotifyFn(repository, body, signature, requestID)
}

// Signed implements indexing.Notifications.
func (p *Ports) Signed(repository string) bool { return repository == SignedRepository }

// Health implements system.Readiness.
func (p *Ports) Health(context.Context) system.Health { return p.HealthFn() }

// Backup implements system.Backups.
func (p *Ports) Backup(ctx context.Context, w io.Writer) error { return p.BackupFn(ctx, w) }

var (
	_ system.Readiness = (*Ports)(nil)
	_ system.Backups   = (*Ports)(nil)
)
