package http

import (
	"context"

	"tutti/internal/core"
)

// Ports is everything that a Handler needs; each member is required.
type Ports struct {
	Ingest        Ingest
	Notifications Notifications
	Jobs          Jobs
	JobEvents     JobEvents
	DeadLetters   DeadLetters
	Retries       Retries
	Readiness     Readiness
}

// Notifications takes what repositories notify by webhook.
type Notifications interface {
	// Notify takes the body of a notification for a repository, one event or an array of them, with the value of
	// X-Signature-256, "" when there is none. It returns after the queue has stored every Request and dead letter. Errors:
	// CodeInvalid for a body that is no JSON object or array of objects, CodeNotFound for an unknown repository,
	// CodeUnauthenticated for a signature that is missing or wrong, CodeOverloaded or CodeUnavailable from the queue.
	Notify(ctx context.Context, repository string, body []byte, signature, requestID string) (core.Notified, error)
}

// JobEvents tells how jobs go on.
type JobEvents interface {
	// Watch calls each for a job and its organizations as they are, in the order of their revisions, then once with
	// neither, and then for every change, until each gives an error, which is returned, ctx ends, or the job is removed,
	// which gives nil. CodeNotFound when there is no such job.
	Watch(ctx context.Context, id string, each func(core.JobChange) error) error
}

// DeadLetters reads and discards what was given up.
type DeadLetters interface {
	// List gives at most limit letters, the last written first, and the cursor of the next ones, "" after the last. An
	// empty repository or reason means any; a cursor that List did not give is CodeInvalid.
	List(ctx context.Context, repository, reason string, limit int, cursor string) ([]core.DeadLetter, string, error)
	// Get gives one letter, CodeNotFound when there is none.
	Get(ctx context.Context, id string) (core.DeadLetter, error)
	// Delete discards one letter, CodeNotFound when there is none.
	Delete(ctx context.Context, id string) error
}

// Retries asks again for what was given up. A retry fetches the record anew; the letter goes when it succeeds.
type Retries interface {
	// Retry publishes the Request of one letter again; CodeNotFound when there is none, CodeConflict when the letter
	// cannot be retried, with a hint that says what to do instead.
	Retry(ctx context.Context, id, requestID string) (core.DeadLetter, error)
	// RetryAll retries every letter of a repository and of a reason, "" for any, that is there when it begins, and gives
	// how many were retried and how many cannot be. An error says that the queue stopped taking them; those that were
	// retried until then stay so.
	RetryAll(ctx context.Context, repository, reason, requestID string) (retried, refused int, err error)
}

// Ingest takes triggers. Both methods return nil only after the queue has stored the Request; both give CodeInvalid,
// CodeNotFound for an unknown repository, and CodeOverloaded or CodeUnavailable when the queue refuses.
type Ingest interface {
	// Record asks for one record to be indexed or removed and gives the alias it is written to.
	Record(ctx context.Context, kind core.Kind, repository, organization, id, requestID string) (indexName string, err error)
	// Run asks for an organization or a repository and gives the job that does it, which may be one queued before.
	Run(ctx context.Context, scope core.Scope, repository, organization string, force bool,
		cause core.Cause, requestID string) (core.Job, error)
}

// Jobs reads and cancels jobs.
type Jobs interface {
	// List gives at most limit jobs, newest first, and the cursor of the next ones, "" after the last. An empty
	// repository or state means any; a cursor that List did not give is CodeInvalid.
	List(ctx context.Context, repository string, state core.JobState, limit int, cursor string) ([]core.Job, string, error)
	// Get gives one job, CodeNotFound when there is none.
	Get(ctx context.Context, id string) (core.Job, error)
	// Organizations gives the organizations of a job that are known so far.
	Organizations(ctx context.Context, jobID string) ([]core.OrganizationRun, error)
	// Cancel ends a job and gives it as it is then; CodeConflict when it had ended before, CodeNotFound when there is
	// none.
	Cancel(ctx context.Context, id string) (core.Job, error)
}

// Readiness tells whether the process can do its work.
type Readiness interface {
	// Health looks at every part. It is bounded by ctx and never fails: what does not answer is down.
	Health(ctx context.Context) Health
}

// ComponentState is the state of a part of the process.
type ComponentState string

// States of a component.
const (
	ComponentUp       ComponentState = "up"
	ComponentDegraded ComponentState = "degraded"
	ComponentDown     ComponentState = "down"
)

// Status aggregates the catalogues (CONTRACT section 2).
type Status string

// Values of Status.
const (
	StatusHealthy   Status = "healthy"
	StatusDegraded  Status = "degraded"
	StatusUnhealthy Status = "unhealthy"
)

// Health is what GET /ready tells.
type Health struct {
	// Status is the aggregate over the catalogues; empty means StatusHealthy.
	Status Status
	// Components are the parts by name: queue, index, store. A queue or store that is down makes /ready answer 503.
	Components map[string]ComponentState
	// Paused lists the repositories whose consumers wait for something.
	Paused []Pause
}

// Pause says why a repository's consumers wait. Reason is safe to display.
type Pause struct {
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
}
