package indexing

import (
	"fmt"
	"net/http"

	"tutti/http/api"
	"tutti/internal/core"
)

// maxVisiblePages is how many pages of a list are read for one page of the entries that a caller may see. A page may therefore hold
// fewer entries than its limit and still have a next cursor.
const maxVisiblePages = 8

// seesJob reports whether a caller may see a job: it must have write access to the job's organization.
func seesJob(caller core.Principal, job core.Job) bool {
	return (job.Scope == core.ScopeOrganization || job.Scope == core.ScopeIDs) && job.Organization != "" && caller.MayWrite(job.Organization)
}

// seesLetter reports whether a caller may see a dead letter: it must have write access to the organization of the letter and of its
// Request. Only the system sees a message that could not be parsed, because its content, and the effect of a retry, are unknown.
func seesLetter(caller core.Principal, letter core.DeadLetter) bool {
	if letter.Source != "" || letter.Organization == "" || !caller.MayWrite(letter.Organization) {
		return false
	}
	return letter.Request == nil || letter.Request.Organization == letter.Organization
}

// CheckJob returns an error if the caller may not see a job: the same as for a job that does not exist.
func CheckJob(r *http.Request, port Jobs, id string) error {
	caller, bound := api.RestrictedCaller(r)
	if !bound {
		return nil
	}
	job, err := port.Get(r.Context(), id)
	if core.CodeOf(err) == core.CodeNotFound || err == nil && !seesJob(caller, job) {
		return &core.Error{Code: core.CodeNotFound, Message: "job not found", Hint: "jobs are deleted after a while", Err: err}
	}
	return err
}

// CheckDeadLetter returns an error if the caller may not see a dead letter: the same as for one that does not exist.
func CheckDeadLetter(r *http.Request, port DeadLetters, id string) error {
	caller, bound := api.RestrictedCaller(r)
	if !bound {
		return nil
	}
	letter, err := port.Get(r.Context(), id)
	if core.CodeOf(err) == core.CodeNotFound || err == nil && !seesLetter(caller, letter) {
		return &core.Error{
			Code: core.CodeNotFound, Message: "dead letter not found", Hint: "it is deleted when its record succeeds", Err: err,
		}
	}
	return err
}

// VisibleRepositories returns the states of the repositories, never nil. Only callers that may see all organizations get the figures, and
// the states that follow from them.
func VisibleRepositories(r *http.Request, port Repositories) ([]core.RepositoryStatus, error) {
	all, err := port.Repositories(r.Context())
	if err != nil {
		return nil, fmt.Errorf("reading the states of the repositories: %w", err)
	}
	seen := append([]core.RepositoryStatus{}, all...)
	if _, bound := api.RestrictedCaller(r); !bound {
		return seen, nil
	}
	for i := range seen {
		seen[i].RepositoryFigures = nil
		if seen[i].State == core.RepositoryAttention || seen[i].State == core.RepositoryFailing {
			seen[i].State = core.RepositoryOK
		}
	}
	return seen, nil
}

// VisibleJobs returns a page of the jobs that the caller may see, and the cursor of the next ones.
func VisibleJobs(r *http.Request, port Jobs, f core.JobFilter) ([]core.Job, string, error) {
	caller, bound := api.RestrictedCaller(r)
	if !bound {
		return port.List(r.Context(), f)
	}
	var seen []core.Job
	for round := 1; ; round++ {
		rest := f
		rest.Limit -= len(seen)
		page, next, err := port.List(r.Context(), rest)
		if err != nil {
			return nil, "", err
		}
		for _, job := range page {
			if seesJob(caller, job) {
				seen = append(seen, job)
			}
		}
		if next == "" || len(seen) >= f.Limit || round == maxVisiblePages {
			return seen, next, nil
		}
		f.Cursor = next
	}
}

// VisibleDeadLetters returns a page of the dead letters that the caller may see, and the cursor of the next ones.
func VisibleDeadLetters(r *http.Request, port DeadLetters, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
	var seen []core.DeadLetter
	next, err := letters{port: port}.each(r, f, func(letters []core.DeadLetter) error {
		seen = append(seen, letters...)
		return nil
	})
	return seen, next, err
}

// visibleLetters returns a function that keeps only the letters that the caller may see.
func visibleLetters(r *http.Request) (filter func([]core.DeadLetter) []core.DeadLetter, bound bool) {
	caller, bound := api.RestrictedCaller(r)
	return func(letters []core.DeadLetter) []core.DeadLetter {
		if !bound {
			return letters
		}
		var seen []core.DeadLetter
		for _, letter := range letters {
			if seesLetter(caller, letter) {
				seen = append(seen, letter)
			}
		}
		return seen
	}, bound
}
