package indexing

import (
	"context"

	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/core/jobsum"
	"tutti/internal/index/mappingplan"
	"tutti/internal/report/recordtrace"
)

// Ports is what a Surface needs; each member but Pauses is required.
type Ports struct {
	Ingest        Ingest
	Traces        Traces
	Notifications Notifications
	Jobs          Jobs
	Organizations Organizations
	Lists         Lists
	JobEvents     JobEvents
	DeadLetters   DeadLetters
	Retries       Retries
	Rebuilds      Rebuilds
	Repositories  Repositories
	// Pauses lists the paused repositories, for the jobs that wait for them. Nil means that no repository pauses.
	Pauses Pauses
}

// Ingest accepts triggers. Its methods return nil only after the queue has stored the Request. Errors: CodeInvalid,
// CodeNotFound for an unknown repository, and CodeOverloaded or CodeUnavailable when the queue does not store it.
type Ingest interface {
	// Record requests the indexing or the removal of one record, and returns the alias that it is written to.
	Record(ctx context.Context, kind core.Kind, record core.RecordRef, requestID string) (indexName string, err error)
	// Run requests the indexing of an organization or a repository, and returns its job, which may have been queued before.
	Run(ctx context.Context, scope core.Scope, repository, organization string, flags core.RunFlags,
		cause core.Cause, requestID string) (core.Job, error)
	// IDs requests the indexing of a list of distinct ids, and returns its job. organization is the only one of the list, or empty.
	IDs(ctx context.Context, repository, organization string, list []idlist.List, requestID string) (core.Job, error)
}

// Lists reads the ids of jobs.
type Lists interface {
	// IDPage returns a page of the ids of one organization of a job, in the order of the list; CodeNotFound after the last one.
	IDPage(ctx context.Context, jobID, organization string, page int) ([]idlist.ID, error)
}

// Traces collects what is known of single records.
type Traces interface {
	// Trace returns what is known of a record between its repository and the index. With restricted it tells nothing of other
	// organizations. CodeNotFound for an unknown repository; what cannot be read is an error of its part of the trace.
	Trace(ctx context.Context, record core.RecordRef, restricted bool) (recordtrace.Trace, error)
}

// Rebuilds changes the indices of repositories that were rebuilt. CodeNotFound for an unknown repository, and where no index from before
// a rebuild is kept.
type Rebuilds interface {
	// Rollback moves the alias back to that index and returns the job that brings it up to date. CodeConflict during a rebuild, another
	// rollback or a deletion, and until the job of the last one has ended.
	Rollback(ctx context.Context, repository, requestID string) (core.Job, error)
	// DropPrevious deletes that index. CodeConflict as for Rollback.
	DropPrevious(ctx context.Context, repository string) error
	// Plan returns how the repository's index differs from the configuration. It changes nothing.
	Plan(ctx context.Context, repository string) (mappingplan.Plan, error)
}

// Repositories reports the states of the configured repositories.
type Repositories interface {
	// Repositories returns the state of every repository, in the order of the configuration.
	Repositories(ctx context.Context) ([]core.RepositoryStatus, error)
}

// Jobs reads and cancels jobs.
type Jobs interface {
	// List returns a page of jobs, newest first, and the cursor of the next ones, "" after the last. A cursor that List did not
	// return is CodeInvalid.
	List(ctx context.Context, f core.JobFilter) ([]core.Job, string, error)
	// Get returns one job, CodeNotFound when there is none.
	Get(ctx context.Context, id string) (core.Job, error)
	// Organizations returns all organizations of a job that are known so far, by name.
	Organizations(ctx context.Context, jobID string) ([]core.OrganizationRun, error)
	// Cancel ends a job and returns its new state; CodeConflict when it has already ended, CodeNotFound when there is none.
	Cancel(ctx context.Context, id string) (core.Job, error)
}

// Organizations lists the organizations of jobs.
type Organizations interface {
	// OrganizationPage returns a page of the organizations of a job that are known so far. A cursor that it did not return is CodeInvalid.
	OrganizationPage(ctx context.Context, jobID string, f jobsum.OrganizationFilter) (jobsum.OrganizationPage, error)
}

// JobEvents watches jobs.
type JobEvents interface {
	// Watch calls each for the current state of a job and of its organizations, in the order of their revisions, then once
	// with an empty change, and then for every change. It returns the error of each, the error of ctx when that ends, or nil
	// when the job is removed. CodeNotFound when there is no such job.
	Watch(ctx context.Context, id string, each func(core.JobChange) error) error
}

// Pauses lists the repositories whose consumers are paused. It does not block.
type Pauses interface {
	Paused() []core.Pause
}

// DeadLetters reads and deletes dead letters.
type DeadLetters interface {
	// List returns a page of letters, the last written first, and the cursor of the next ones, "" after the last. A cursor that
	// List did not return is CodeInvalid.
	List(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error)
	// Get returns one letter, CodeNotFound when there is none.
	Get(ctx context.Context, id string) (core.DeadLetter, error)
	// Delete discards one letter, CodeNotFound when there is none.
	Delete(ctx context.Context, id string) error
}

// Retries retries dead letters. A retry fetches the record again; the letter is deleted when it succeeds.
type Retries interface {
	// Retry publishes the Request of one letter again; CodeNotFound when there is none, CodeConflict when the letter
	// cannot be retried, with a hint that says what to do instead.
	Retry(ctx context.Context, id, requestID string) (core.DeadLetter, error)
	// RetryAll requests the retry of every letter of a repository and of a reason, "" for any, and returns its job, which may be that
	// of an earlier call for the same letters. It returns nil only after the queue has stored the Request, and goes on when ctx ends.
	RetryAll(ctx context.Context, f core.DeadLetterFilter, requestID string) (core.Job, error)
}

// Notifications accepts the webhook notifications of repositories.
type Notifications interface {
	// Notify accepts the body of a notification for a repository, one event or an array of events. signature is the value of
	// X-Signature-256, "" for none. It returns after the queue has stored every Request and dead letter. Errors: CodeInvalid
	// for a body that is neither a JSON object nor an array of objects, CodeNotFound for an unknown repository,
	// CodeUnauthenticated for a signature that is missing or wrong, CodeOverloaded or CodeUnavailable from the queue.
	Notify(ctx context.Context, repository string, body []byte, signature, requestID string) (core.NotificationResult, error)
	// Signed reports whether the notifications of a repository must be signed; false also for an unknown one.
	Signed(repository string) bool
}
