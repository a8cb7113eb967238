package http

import (
	"context"

	"tutti/internal/core"
)

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
