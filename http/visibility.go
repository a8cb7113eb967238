package http

import (
	"net/http"

	"tutti/internal/core"
)

// maxVisiblePages is how many pages of a list are read for one page of what a caller may see of it. A page may so hold less
// than was asked for and have others behind it.
const maxVisiblePages = 8

// seesJob reports whether a caller sees a job: it may write in the organization that the job is of.
func seesJob(caller core.Principal, job core.Job) bool {
	return job.Scope == core.ScopeOrganization && job.Organization != "" && caller.MayWrite(job.Organization)
}

// seesLetter reports whether a caller sees a dead letter: it may write in the organization that the letter and its Request
// are of. A message that was not understood may hold anything, and its retry do anything, so it is the system's.
func seesLetter(caller core.Principal, letter core.DeadLetter) bool {
	if letter.Source != "" || letter.Organization == "" || !caller.MayWrite(letter.Organization) {
		return false
	}
	return letter.Request == nil || letter.Request.Organization == letter.Organization
}

// checkJob answers a job that the caller does not see in the words for one that does not exist.
func (h *Handler) checkJob(r *http.Request, id string) error {
	caller, bound := h.restrictedCaller(r)
	if !bound {
		return nil
	}
	job, err := h.ports.Jobs.Get(r.Context(), id)
	if core.CodeOf(err) == core.CodeNotFound || err == nil && !seesJob(caller, job) {
		return &core.Error{Code: core.CodeNotFound, Message: "there is no such job", Hint: "jobs go after a while", Err: err}
	}
	return err
}

// checkLetter answers a dead letter that the caller does not see in the words for one that does not exist.
func (h *Handler) checkLetter(r *http.Request, id string) error {
	caller, bound := h.restrictedCaller(r)
	if !bound {
		return nil
	}
	letter, err := h.ports.DeadLetters.Get(r.Context(), id)
	if core.CodeOf(err) == core.CodeNotFound || err == nil && !seesLetter(caller, letter) {
		return &core.Error{
			Code: core.CodeNotFound, Message: "there is no such dead letter", Hint: "it goes when its record succeeds", Err: err,
		}
	}
	return err
}

// jobQuery is what the list of jobs can be asked for.
type jobQuery struct {
	repository string
	state      core.JobState
	limit      int
	cursor     string
}

// visibleJobs returns a page of the jobs that the caller sees, and the cursor of the next ones.
func (h *Handler) visibleJobs(r *http.Request, q jobQuery) ([]core.Job, string, error) {
	caller, bound := h.restrictedCaller(r)
	if !bound {
		return h.ports.Jobs.List(r.Context(), q.repository, q.state, q.limit, q.cursor)
	}
	var seen []core.Job
	for round := 1; ; round++ {
		jobs, next, err := h.ports.Jobs.List(r.Context(), q.repository, q.state, q.limit-len(seen), q.cursor)
		if err != nil {
			return nil, "", err
		}
		for _, job := range jobs {
			if seesJob(caller, job) {
				seen = append(seen, job)
			}
		}
		if next == "" || len(seen) >= q.limit || round == maxVisiblePages {
			return seen, next, nil
		}
		q.cursor = next
	}
}

// letterFilter returns what keeps of some letters those that the caller sees.
func (h *Handler) letterFilter(r *http.Request) (filter func([]core.DeadLetter) []core.DeadLetter, bound bool) {
	caller, bound := h.restrictedCaller(r)
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
