package jobs

import (
	"context"
	"strings"

	"tutti/internal/base/order"
	"tutti/internal/core"
	"tutti/internal/core/jobsum"
	"tutti/internal/queue/paging"
)

// organizationCursor names the list of the organizations of a job in its cursors.
const organizationCursor = "organizations "

// OrganizationPage returns a page of the organizations of a job, those that failed and those in progress first. The first page of
// all of an ended job is that of its summary; otherwise they are read, and only the groups that the page shows are decoded. CodeInvalid for an invalid cursor.
func (g *Groups) OrganizationPage(ctx context.Context, jobID string, f jobsum.OrganizationFilter) (jobsum.OrganizationPage, error) {
	var page jobsum.OrganizationPage
	list := organizationCursor + jobID + " " + string(f.State)
	states := jobsum.States()
	after := ""
	if f.Cursor != "" {
		position, err := paging.DecodeCursor(list, f.Cursor)
		if err != nil {
			return page, err
		}
		var state string
		state, after, _ = strings.Cut(position, " ")
		states = states[min(jobsum.Rank(core.JobState(state)), len(states)-1):]
	}
	limit := paging.Size(f.Limit)
	size, summarized := summarySize(limit)
	if summarized = summarized && f.State == "" && f.Cursor == ""; summarized {
		s, found, err := g.jobs.summary(ctx, jobID, size)
		if found || err != nil {
			return s.page(list, limit), err
		}
	}
	stored, err := g.jobs.readOrganizations(ctx, jobID)
	if err != nil {
		return page, err
	}
	if summarized {
		if err := g.jobs.summarizeEnded(ctx, jobID, &stored); err != nil {
			g.jobs.bucket.Conn.Log.Debug("the summary of a job is not stored", "job_id", jobID, "err", err)
		}
	}
	page.Sum = stored.sum()
	for _, state := range states {
		if f.State == "" || f.State == state {
			rows, err := stored.inState(state, after, limit+1-len(page.Runs))
			if err != nil {
				return page, err
			}
			page.Runs = append(page.Runs, rows...)
		}
		if after = ""; len(page.Runs) > limit {
			page.Runs = page.Runs[:limit]
			page.Next = nextOrganizations(list, page.Runs)
			break
		}
	}
	return page, nil
}

// inState returns the first organizations by name in a state, at most limit, whose names come after one.
func (o *organizations) inState(state core.JobState, after string, limit int) ([]core.OrganizationRun, error) {
	var rows []core.OrganizationRun
	add := func(run core.OrganizationRun) {
		if run.State == state && (after == "" || run.Organization > after) {
			rows = append(rows, run)
		}
	}
	byName := func(a, b core.OrganizationRun) int { return strings.Compare(a.Organization, b.Organization) }
	for _, run := range o.alone {
		add(run)
	}
	order.Sort(rows, byName)
	for i := range o.groups { // by their first organizations
		group := &o.groups[i]
		if group.sum.States[state] == 0 || after != "" && group.sum.Last <= after {
			continue
		}
		if len(rows) >= limit && rows[limit-1].Organization < group.sum.First {
			break
		}
		runs, err := o.runs(group)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			add(run)
		}
		order.Sort(rows, byName)
	}
	return rows[:min(limit, len(rows))], nil
}
