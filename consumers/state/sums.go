package state

import (
	"context"
	"sync"
	"time"

	"tutti/internal/base/keylock"
	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// sums counts the organizations of jobs that have not ended. A call reads what has changed since the last one, so that all the calls for a
// job together read each change once. It is safe for concurrent use.
type sums struct {
	groups  OrganizationGroups
	reading keylock.Locks

	mu   sync.Mutex
	jobs map[string]*jobSums
}

// jobSums are the counts of one job.
type jobSums struct {
	counts
	// revision is that of the last change that was read, began the time before the last read.
	revision  uint64
	began     time.Time
	byGroup   map[int]counts
	bySelf    map[string]counts
	lastAsked time.Time
}

// counts counts organizations.
type counts struct{ known, open, paused int }

func (c *counts) add(o counts, times int) {
	c.known += times * o.known
	c.open += times * o.open
	c.paused += times * o.paused
}

// forgetAfter is how long after the last call the counts of a job are forgotten.
const forgetAfter = time.Minute

func newSums(groups OrganizationGroups) *sums {
	return &sums{groups: groups, jobs: make(map[string]*jobSums)}
}

// of returns the counts of a job, of a time after the call began.
func (s *sums) of(ctx context.Context, jobID string) (counts, error) {
	called := time.Now()
	unlock, err := s.reading.Lock(ctx, jobID)
	if err != nil {
		return counts{}, err
	}
	defer unlock()
	job := s.job(jobID, called)
	if job.began.After(called) { // another caller has read since
		return job.counts, nil
	}
	began := time.Now()
	if err := s.groups.EachSum(ctx, jobID, job.revision, job.put); err != nil {
		return counts{}, err
	}
	job.began = began
	return job.counts, nil
}

// job returns the counts of a job, and forgets those of jobs that nothing has asked for since a while.
func (s *sums) job(id string, now time.Time) *jobSums {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, job := range s.jobs {
		if now.Sub(job.lastAsked) > forgetAfter {
			delete(s.jobs, other)
		}
	}
	job := s.jobs[id]
	if job == nil {
		job = &jobSums{byGroup: make(map[int]counts), bySelf: make(map[string]counts)}
		s.jobs[id] = job
	}
	job.lastAsked = now
	return job
}

// put replaces the sum of a group, or of one organization.
func (j *jobSums) put(c jobsum.Change) error {
	now := counts{known: c.Sum.Known, open: c.Sum.Open(), paused: c.Sum.States[core.JobPaused]}
	if c.Group >= 0 {
		j.add(j.byGroup[c.Group], -1)
		j.byGroup[c.Group] = now
	} else {
		j.add(j.bySelf[c.Organization], -1)
		j.bySelf[c.Organization] = now
	}
	j.add(now, 1)
	j.revision = c.Revision
	return nil
}
