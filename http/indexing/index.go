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

// target identifies what a request of /index is for, by the parameters of its path.
type target struct{ repository, organization, id string }

func recordTarget(r *http.Request) (target, error) {
	t, err := organizationTarget(r)
	if err != nil {
		return target{}, err
	}
	t.id, err = api.PathParam(r, "id", "id")
	return t, err
}

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
		at, err := recordTarget(r)
		if err != nil {
			return err
		}
		if _, err := runFlags(r, core.ScopeRecord); err != nil {
			return err
		}
		if err := api.ReadEmptyObject(r); err != nil {
			return err
		}
		requestID := api.RequestIDOf(r)
		index, err := t.ingest.Record(r.Context(), kind, at.repository, at.organization, at.id, requestID)
		if err != nil {
			return err
		}
		return api.WriteJSON(w, http.StatusAccepted, accepted{Successful: true, IndexName: index, RequestID: requestID})
	}
}

// run handles a trigger for a whole organization or repository.
func (t triggers) run(scope core.Scope, targetOf func(*http.Request) (target, error)) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		at, err := targetOf(r)
		if err != nil {
			return err
		}
		force, err := runFlags(r, scope)
		if err != nil {
			return err
		}
		if force {
			if err := api.RequireSystem(r); err != nil {
				return err
			}
		}
		if err := api.ReadEmptyObject(r); err != nil {
			return err
		}
		requestID := api.RequestIDOf(r)
		job, err := t.ingest.Run(r.Context(), scope, at.repository, at.organization, force, core.CauseREST, requestID)
		if err != nil {
			return err
		}
		w.Header().Set("Location", t.basePath+"/jobs/"+url.PathEscape(job.ID))
		return api.WriteJSON(w, http.StatusAccepted, accepted{Successful: true, IndexName: job.IndexName, RequestID: requestID, JobID: job.ID})
	}
}

// runFlags reads force and rebuild, and rejects a flag that does not apply to the scope.
func runFlags(r *http.Request, scope core.Scope) (force bool, err error) {
	q, err := api.LenientQueryOf(r)
	if err != nil {
		return false, err
	}
	if force, err = q.Boolean("force"); err != nil {
		return false, err
	}
	if force && scope == core.ScopeRecord {
		return false, &core.Error{
			Code: core.CodeInvalid, Message: "force does not apply to one record",
			Hint: "force lifts the prune guard of an organization's or a repository's run",
		}
	}
	rebuild, err := q.Boolean("rebuild")
	switch {
	case err != nil:
		return false, err
	case rebuild && scope != core.ScopeRepository:
		return false, core.NewError(core.CodeInvalid, "rebuild applies to a whole repository only")
	case rebuild:
		return false, &core.Error{
			Code: core.CodeUnsupported, Message: "rebuilding an index is not supported yet",
			Hint: "index the repository without rebuild: it writes every record again, into the same index",
		}
	}
	return force, nil
}
