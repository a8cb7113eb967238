package jobsum

import (
	"cmp"
	"slices"
	"strings"

	"tutti/internal/core"
)

// Sum sums the organizations of a job that are known so far. The zero value is an empty sum.
type Sum struct {
	// Totals are the sums of the organizations' totals.
	Totals core.Totals `json:"totals"`
	// Known is the number of organizations, Counted the number of those whose expected records are known.
	Known   int `json:"known"`
	Counted int `json:"counted"`
	// States counts the organizations by their state; it has no zeros.
	States map[core.JobState]int `json:"states,omitempty"`
}

// Add adds an organization, unless it has moved: then it is counted where it moved to.
func (s *Sum) Add(o *core.OrganizationRun) {
	if o.Moved {
		return
	}
	s.Totals.Add(o.Totals)
	s.Known++
	if o.Counted() {
		s.Counted++
	}
	s.count(o.State, 1)
}

// AddSum adds the organizations of another sum.
func (s *Sum) AddSum(o Sum) {
	s.Totals.Add(o.Totals)
	s.Known += o.Known
	s.Counted += o.Counted
	for state, n := range o.States {
		s.count(state, n)
	}
}

func (s *Sum) count(state core.JobState, n int) {
	if s.States == nil {
		s.States = make(map[core.JobState]int)
	}
	s.States[state] += n
}

// Open returns the number of organizations that have not ended.
func (s *Sum) Open() int {
	open := 0
	for state, n := range s.States {
		if !state.Final() {
			open += n
		}
	}
	return open
}

// TotalsOf returns the totals of job, whose organizations are summed in s, and reports whether Expected is known: all
// organizations are listed and counted. A finished job has its own totals.
func (s *Sum) TotalsOf(job *core.Job) (totals core.Totals, counted bool) {
	totals = job.Totals
	if !job.State.Final() && s.Known > 0 {
		totals = s.Totals
	}
	listed := job.ExpectedOrganizations
	return totals, listed != nil && s.Known >= *listed && s.Counted == s.Known
}

// ranks orders the states in lists of organizations: first what needs attention, then what is in progress.
var ranks = []core.JobState{
	core.JobFailed, core.JobPartial, core.JobPaused, core.JobRunning, core.JobCancelled, core.JobQueued, core.JobSucceeded,
}

// Rank returns the position of a state in lists of organizations: failed and partial, paused, running, cancelled, queued,
// succeeded.
func Rank(s core.JobState) int {
	if rank := slices.Index(ranks, s); rank >= 0 {
		return rank
	}
	return len(ranks)
}

// States lists every state in the order of lists of organizations.
func States() []core.JobState { return slices.Clone(ranks) }

// Compare compares the positions of two organizations in a list of a job's organizations: by Rank, then by name.
func Compare(a, b *core.OrganizationRun) int {
	return cmp.Or(cmp.Compare(Rank(a.State), Rank(b.State)), strings.Compare(a.Organization, b.Organization))
}

// OrganizationFilter selects organizations of a job. The zero value selects all, in pages of 50.
type OrganizationFilter struct {
	// State is the only state, empty for all.
	State core.JobState
	// Limit is the page size, 0 for 50, at most 1000.
	Limit int
	// Cursor is OrganizationPage.Next of the page before; empty for the first.
	Cursor string
}

// OrganizationPage is a page of the organizations of a job, in the order of Compare.
type OrganizationPage struct {
	Runs []core.OrganizationRun
	// Next is the cursor of the next page, empty after the last one.
	Next string
	// Sum sums all organizations of the job, also those of other pages and states.
	Sum Sum
}

// Change is the sum of a group of organizations of a job, or of one that is stored by itself, after a change.
type Change struct {
	// Revision increases with every change.
	Revision uint64
	// Group is the number of the group, -1 for an organization by itself, whose name is Organization.
	Group        int
	Organization string
	Sum          Sum
	// Kinds are those of the organizations that have ended in the group, or of the organization.
	Kinds core.Kinds
}
