package console

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/http/system"
	"tutti/internal/base/order"
	"tutti/internal/core"
)

// probeTimeout bounds the probes of the components, or of the catalogues, for one page.
const probeTimeout = 3 * time.Second

// overviewView is the content of the overview.
type overviewView struct {
	Base   string
	Now    time.Time
	System bool
	// Healthy is set if nothing needs attention; Summary says so, or what does.
	Healthy      bool
	Summary      string
	Components   []component
	Reasons      []string
	Repositories []core.RepositoryStatus
	Catalogues   []*core.Catalogue
	Failed       int
	Jobs         []indexing.JobBody
}

// component is one part of the process.
type component struct {
	Name  string
	State system.ComponentState
}

// overview serves GET /: the health of everything, what fails on top.
func (s *overviewPage) overview(w http.ResponseWriter, r *http.Request) error {
	repositories, err := indexing.VisibleRepositories(r, s.ports.Indexing.Repositories)
	if err != nil {
		return err
	}
	states := core.RepositoryStates()
	order.Stable(repositories, func(a, b core.RepositoryStatus) int {
		return cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State))
	})
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	health := s.ports.Readiness.Health(ctx)
	_, restricted := api.RestrictedCaller(r)
	v := overviewView{
		Base: s.base, Now: s.now(), System: !restricted, Reasons: health.Reasons, Repositories: repositories,
		Catalogues: s.ports.Search.Catalogues.Catalogues().Catalogues,
	}
	for _, name := range slices.Sorted(maps.Keys(health.Components)) {
		v.Components = append(v.Components, component{name, health.Components[name]})
	}
	for _, c := range v.Catalogues {
		if c.Problem != nil {
			v.Failed++
		}
	}
	v.summarize()
	if v.Jobs, err = s.runningJobs(r); err != nil {
		return err
	}
	s.render(w, r, http.StatusOK, "overview", page{Title: "Overview", Active: "overview", Content: v})
	return nil
}

// summarize sets what the page says first.
func (v *overviewView) summarize() {
	bad, warned := 0, 0
	for _, r := range v.Repositories {
		switch r.State {
		case core.RepositoryPaused, core.RepositoryFailing:
			bad++
		case core.RepositoryNeverIndexed:
			if r.Type != core.TypeLocal { // whose analyses are indexed when they are published
				warned++
			}
		case core.RepositoryAttention:
			warned++
		case core.RepositoryOK:
		}
	}
	down := 0
	for _, c := range v.Components {
		if c.State != system.ComponentUp {
			down++
		}
	}
	var parts []string
	add := func(n int, one, many string) {
		if n > 0 {
			parts = append(parts, countOf(n, one, many))
		}
	}
	add(down, "component does not work as it should", "components do not work as they should")
	add(bad, "repository is not being indexed", "repositories are not being indexed")
	add(warned, "repository needs attention", "repositories need attention")
	add(v.Failed, "catalogue has failed", "catalogues have failed")
	switch {
	case len(v.Repositories) == 0:
		v.Summary = "No repository is configured."
	case len(parts) > 0:
		v.Summary = strings.Join(parts, ", ") + "."
	case !v.System: // whose list does not say which repositories fail
		v.Healthy, v.Summary = true, "No repository is paused and every component works."
	default:
		v.Healthy, v.Summary = true, "No repository needs attention, and every component works."
	}
}

// countOf returns a number and its noun.
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// runningJobs returns the newest jobs that have not ended.
func (s *overviewPage) runningJobs(r *http.Request) ([]indexing.JobBody, error) {
	var running []indexing.JobBody
	for _, state := range []core.JobState{core.JobRunning, core.JobPaused, core.JobQueued} {
		jobs, _, err := indexing.VisibleJobs(r, s.ports.Indexing.Jobs, core.JobFilter{State: state, Limit: 5})
		if err != nil {
			return nil, err
		}
		bodies, err := s.jobs.jobBodies(r.Context(), jobs, 1)
		if err != nil {
			return nil, err
		}
		running = append(running, bodies...)
	}
	return running, nil
}

// indexRepository queues a run of a whole repository.
func (s *overviewPage) indexRepository(w http.ResponseWriter, r *http.Request) error {
	code, err := api.PathParam(r, "repositoryCode", "repository code")
	if err != nil {
		return err
	}
	f, err := readForm(r)
	if err != nil {
		return err
	}
	flags := core.RunFlags{Difference: f.Get("difference") == "true"}
	job, err := s.ports.Indexing.Ingest.Run(r.Context(), core.ScopeRepository, code, "", flags, core.CauseREST, api.RequestIDOf(r))
	if err != nil {
		return err
	}
	s.see(w, s.link("jobs", job.ID), "queued")
	return nil
}
