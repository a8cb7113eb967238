package http

import (
	"net/http"
	"net/url"

	"tutti/internal/core"
)

// accepted is the body of every 202 of /index (CONTRACT section 1).
type accepted struct {
	Successful bool   `json:"successful"`
	IndexName  string `json:"indexName"`
	RequestID  string `json:"requestId"`
	JobID      string `json:"jobId,omitempty"`
}

// target is what the path of an /index request names.
type target struct{ repository, organization, id string }

func recordTarget(r *http.Request) (target, error) {
	t, err := organizationTarget(r)
	if err != nil {
		return target{}, err
	}
	t.id, err = pathParam(r, "id", "id")
	return t, err
}

func organizationTarget(r *http.Request) (target, error) {
	t, err := repositoryTarget(r)
	if err != nil {
		return target{}, err
	}
	t.organization, err = pathParam(r, "organization", "organization")
	return t, err
}

func repositoryTarget(r *http.Request) (target, error) {
	code, err := pathParam(r, "repositoryCode", "repositoryCode")
	return target{repository: code}, err
}

// record handles a trigger for one record.
func (h *Handler) record(kind core.Kind) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		t, err := recordTarget(r)
		if err != nil {
			return err
		}
		if _, err := runFlags(r, core.ScopeRecord); err != nil {
			return err
		}
		if err := h.readEmptyObject(r); err != nil {
			return err
		}
		requestID := exchangeOf(r.Context()).requestID
		index, err := h.ports.Ingest.Record(r.Context(), kind, t.repository, t.organization, t.id, requestID)
		if err != nil {
			return err
		}
		h.writeJSON(w, r, http.StatusAccepted, contentTypeJSON,
			accepted{Successful: true, IndexName: index, RequestID: requestID})
		return nil
	}
}

// run handles a trigger for a whole organization or repository.
func (h *Handler) run(scope core.Scope, targetOf func(*http.Request) (target, error)) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		t, err := targetOf(r)
		if err != nil {
			return err
		}
		force, err := runFlags(r, scope)
		if err != nil {
			return err
		}
		if force {
			if err := h.requireSystem(r); err != nil {
				return err
			}
		}
		if err := h.readEmptyObject(r); err != nil {
			return err
		}
		requestID := exchangeOf(r.Context()).requestID
		job, err := h.ports.Ingest.Run(r.Context(), scope, t.repository, t.organization, force, core.CauseREST, requestID)
		if err != nil {
			return err
		}
		w.Header().Set("Location", h.cfg.BasePath+"/jobs/"+url.PathEscape(job.ID))
		h.writeJSON(w, r, http.StatusAccepted, contentTypeJSON,
			accepted{Successful: true, IndexName: job.IndexName, RequestID: requestID, JobID: job.ID})
		return nil
	}
}

// runFlags reads force and rebuild, and refuses what the scope does not have.
func runFlags(r *http.Request, scope core.Scope) (force bool, err error) {
	q, err := queryOf(r)
	if err != nil {
		return false, err
	}
	if force, err = q.boolean("force"); err != nil {
		return false, err
	}
	if force && scope == core.ScopeRecord {
		return false, &core.Error{
			Code: core.CodeInvalid, Message: "force does not apply to one record",
			Hint: "force lifts the prune guard of an organization's or a repository's run",
		}
	}
	rebuild, err := q.boolean("rebuild")
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
