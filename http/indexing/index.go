package indexing

import (
	"net/http"
	"net/url"

	"tutti/http/api"
	"tutti/internal/core"
)

// accepted is the body of every 202 of /index (CONTRACT section 1).
type accepted struct {
	Successful bool   `json:"successful"`
	IndexName  string `json:"indexName"`
	RequestID  string `json:"requestId"`
	JobID      string `json:"jobId,omitempty"`
}

// target identifies what a request of /index for a run is for, by the parameters of its path.
type target struct{ repository, organization string }

func organizationTarget(r *http.Request) (target, error) {
	t, err := repositoryTarget(r)
	if err != nil {
		return target{}, err
	}
	t.organization, err = api.PathParam(r, "organization", "organization")
	return t, err
}

func repositoryTarget(r *http.Request) (target, error) {
	code, err := api.PathParam(r, "repositoryCode", "repositoryCode")
	return target{repository: code}, err
}

// triggers handles /index.
type triggers struct {
	ingest   Ingest
	basePath string
}

// record handles a trigger for one record.
func (t triggers) record(kind core.Kind) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		record, err := api.PathRecord(r)
		if err != nil {
			return err
		}
		if _, err := runFlags(r, core.ScopeRecord); err != nil {
			return err
		}
		requestID, err := api.ReadTrigger(r)
		if err != nil {
			return err
		}
		index, err := t.ingest.Record(r.Context(), kind, record, requestID)
		if err != nil {
			return err
		}
		return api.WriteJSON(w, http.StatusAccepted, accepted{Successful: true, IndexName: index, RequestID: requestID})
	}
}

// locateJob sets the Location of a 202 to the job that was accepted.
func locateJob(w http.ResponseWriter, basePath, id string) {
	w.Header().Set("Location", basePath+"/jobs/"+url.PathEscape(id))
}

// run handles a trigger for a whole organization or repository.
func (t triggers) run(scope core.Scope, targetOf func(*http.Request) (target, error)) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		at, err := targetOf(r)
		if err != nil {
			return err
		}
		flags, err := runFlags(r, scope)
		if err != nil {
			return err
		}
		if flags.Force {
			if err := api.RequireSystem(r); err != nil {
				return err
			}
		}
		requestID, err := api.ReadTrigger(r)
		if err != nil {
			return err
		}
		job, err := t.ingest.Run(r.Context(), scope, at.repository, at.organization, flags, core.CauseREST, requestID)
		if err != nil {
			return err
		}
		locateJob(w, t.basePath, job.ID)
		return api.WriteJSON(w, http.StatusAccepted, accepted{Successful: true, IndexName: job.IndexName, RequestID: requestID, JobID: job.ID})
	}
}

// runFlags reads force, rebuild and difference, and rejects a flag that does not apply to the scope.
func runFlags(r *http.Request, scope core.Scope) (flags core.RunFlags, err error) {
	if err := api.LenientBooleans(r, []string{"force", "rebuild", "difference"}, &flags.Force, &flags.Rebuild, &flags.Difference); err != nil {
		return flags, err
	}
	if flags.Force && scope == core.ScopeRecord {
		return flags, &core.Error{
			Code: core.CodeInvalid, Message: "force does not apply to one record",
			Hint: "force lifts the prune guard of an organization's or a repository's run",
		}
	}
	if flags.Rebuild && scope != core.ScopeRepository {
		return flags, core.NewError(core.CodeInvalid, "rebuild applies to a whole repository only")
	}
	if flags.Difference && scope == core.ScopeRecord {
		return flags, core.NewError(core.CodeInvalid, "difference does not apply to one record")
	}
	return flags, nil
}
