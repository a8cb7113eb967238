package state

import (
	"context"

	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// OrganizationRuns stores the runs of the organizations of jobs.
type OrganizationRuns interface {
	CreateOrganization(ctx context.Context, jobID string, run core.OrganizationRun) (created bool, err error)
	Organization(ctx context.Context, jobID, organization string) (core.OrganizationRun, error)
	UpdateOrganization(ctx context.Context, jobID, organization string, change func(*core.OrganizationRun) error) (core.OrganizationRun, error)
	Organizations(ctx context.Context, jobID string) ([]core.OrganizationRun, error)
}

// OrganizationGroups stores the runs of organizations in groups, for jobs that have many.
type OrganizationGroups interface {
	GroupRuns
	// UpdateOrganizations changes every organization of a job, also those that are in no group, and returns them.
	UpdateOrganizations(ctx context.Context, jobID string, change func(*core.OrganizationRun) error) ([]core.OrganizationRun, error)
}

// GroupRuns stores the organizations of one group. An organization of a group that is also created by CreateOrganization is only read
// and changed there.
type GroupRuns interface {
	CreateGroup(ctx context.Context, jobID string, number int, runs []core.OrganizationRun) (created bool, err error)
	Group(ctx context.Context, jobID string, number int) ([]core.OrganizationRun, error)
	// UpdateGroup is a compare-and-set that is retried on a conflict.
	UpdateGroup(ctx context.Context, jobID string, number int, change func([]core.OrganizationRun) error) ([]core.OrganizationRun, error)
	// EachSum calls each with the current sum of every group of a job that changed after a revision, and of every organization that
	// is stored by itself.
	EachSum(ctx context.Context, jobID string, after uint64, each func(jobsum.Change) error) error
}

// Pages stores the ids of list pages.
type Pages interface {
	// ForgetPages removes what is stored of an organization's list, or of every list of the job when organization is empty.
	ForgetPages(ctx context.Context, jobID, organization string) error
}
