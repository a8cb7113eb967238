package run

import (
	"context"
	"slices"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// Bounds of groups.
const (
	// manyGroups is how many groups a job has at least, so that processes share it, unless they would be smaller than minGroup.
	manyGroups = 32
	// minGroup and maxGroup bound the number of organizations of a group. A group is stored as one message, and written at most every
	// ProgressEvery and at its end.
	minGroup = 8
	maxGroup = 100
)

// publishOrganizations creates and publishes the runs of a job's organizations, of which begun exist already: each by itself if they are
// few, otherwise in groups. An organization of a group costs no message and no write of its own, unless it has more than one page.
func (s *starter) publishOrganizations(ctx context.Context, job core.Job, begun []core.OrganizationRun, organizations []string) error {
	alone := make(map[string]struct{})
	next := 0
	var again []int
	err := s.cfg.Groups.EachSum(ctx, job.ID, 0, func(c jobsum.Change) error {
		if c.Group < 0 {
			alone[c.Organization] = struct{}{}
			return nil
		}
		if next = max(next, c.Group+1); c.Sum.Open() > 0 {
			again = append(again, c.Group)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, number := range again {
		runs, err := s.cfg.Groups.Group(ctx, job.ID, number)
		if err != nil {
			return err
		}
		if err := s.publishGroup(ctx, job, number, runs); err != nil {
			return err
		}
	}
	exist := make(map[string]struct{}, len(begun))
	for _, run := range begun {
		exist[run.Organization] = struct{}{}
	}
	var fresh []string
	for _, organization := range organizations {
		if _, is := exist[organization]; !is {
			fresh = append(fresh, organization)
		} else if _, is := alone[organization]; is {
			if err := s.publishOrganization(ctx, job, organization); err != nil {
				return err
			}
		}
	}
	if len(fresh) < s.cfg.GroupedFrom {
		for _, organization := range fresh {
			if err := s.publishOrganization(ctx, job, organization); err != nil {
				return err
			}
		}
		return nil
	}
	return s.createGroups(ctx, job, next, fresh)
}

// createGroups creates and publishes groups of organizations, numbered from next.
func (s *starter) createGroups(ctx context.Context, job core.Job, next int, fresh []string) error {
	slices.Sort(fresh)
	size := min(max(len(fresh)/manyGroups, minGroup), maxGroup)
	for names := range slices.Chunk(fresh, size) {
		runs := make([]core.OrganizationRun, len(names))
		for i, name := range names {
			runs[i] = core.OrganizationRun{Organization: name, State: core.JobQueued, DoneThrough: -1}
		}
		created, err := s.cfg.Groups.CreateGroup(ctx, job.ID, next, runs)
		if err != nil {
			return err
		}
		if !created { // by another consumer of this message, maybe with other organizations
			return loop.ErrBusy
		}
		if err := s.publishGroup(ctx, job, next, runs); err != nil {
			return err
		}
		next++
	}
	return nil
}

// publishGroup publishes the first pages of the organizations of a group. Doing so twice has no effect.
func (s *starter) publishGroup(ctx context.Context, job core.Job, number int, runs []core.OrganizationRun) error {
	req := state.Child(job, core.ScopePage, runs[0].Organization)
	req.Page = &core.Page{Group: true, Number: number, Limit: s.cfg.PageSize}
	return s.loop.RetryUntilStopped(ctx, "publishing a group of organizations", func() error { return s.cfg.Requests.Publish(ctx, req) })
}
