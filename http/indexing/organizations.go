package indexing

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

const (
	// ShownOrganizations is how many organizations of a job its body holds; there may be thousands.
	ShownOrganizations = 100
	// listedOrganizations is how many organizations of each job a list of jobs shows.
	listedOrganizations = 10
	// maxOrganizations is the largest page of the organizations of a job.
	maxOrganizations = 1000
)

// organizationList is the body of GET /jobs/{id}/organizations.
type organizationList struct {
	Organizations []OrganizationBody    `json:"organizations"`
	Total         int                   `json:"organizationsTotal"`
	States        map[core.JobState]int `json:"organizationStates"`
	NextCursor    string                `json:"nextCursor,omitempty"`
}

// ReadJobBody returns the body of a job with its first organizations, at most limit, with rate and ETA as of now.
func ReadJobBody(ctx context.Context, port Organizations, job core.Job, limit int, now time.Time) (JobBody, error) {
	page, err := port.OrganizationPage(ctx, job.ID, jobsum.OrganizationFilter{Limit: limit})
	if err != nil {
		return JobBody{}, fmt.Errorf("reading the organizations of a job: %w", err)
	}
	return JobBody{JobSummary: newJobSummary(job, page.Sum, now), Organizations: organizationBodies(page.Runs)}, nil
}

func organizationBodies(runs []core.OrganizationRun) []OrganizationBody {
	rows := make([]OrganizationBody, len(runs))
	for i := range runs {
		rows[i] = newOrganizationBody(&runs[i])
	}
	return rows
}

// organizationPage handles GET /jobs/{id}/organizations.
func (j jobs) organizationPage(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "id", "id")
	if err != nil {
		return err
	}
	q, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	var filter jobsum.OrganizationFilter
	if filter.State, err = stateOf(q); err != nil {
		return err
	}
	if filter.Limit, err = q.Integer("limit", 1, maxOrganizations, ShownOrganizations); err != nil {
		return err
	}
	if filter.Cursor, err = cursorOf(q); err != nil {
		return err
	}
	if err := CheckJob(r, j.port, id); err != nil {
		return err
	}
	if _, err := j.port.Get(r.Context(), id); err != nil {
		return err
	}
	page, err := j.organizations.OrganizationPage(r.Context(), id, filter)
	if err != nil {
		return fmt.Errorf("listing the organizations of a job: %w", err)
	}
	return api.WriteJSON(w, http.StatusOK, organizationList{
		Organizations: organizationBodies(page.Runs), Total: page.Sum.Known, States: statesOf(page.Sum), NextCursor: page.Next,
	})
}

// statesOf returns the numbers of organizations by state, never nil.
func statesOf(sum jobsum.Sum) map[core.JobState]int {
	if sum.States == nil {
		return map[core.JobState]int{}
	}
	return sum.States
}
