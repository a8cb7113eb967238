package indexing

import (
	"net/http"

	"tutti/http/api"
)

// rebuilds handles the index that a repository had before its last rebuild, and the plan of the next one.
type rebuilds struct {
	port     Rebuilds
	basePath string
}

func (b rebuilds) rollback(w http.ResponseWriter, r *http.Request) error {
	at, err := repositoryTarget(r)
	if err != nil {
		return err
	}
	requestID, err := api.ReadTrigger(r)
	if err != nil {
		return err
	}
	job, err := b.port.Rollback(r.Context(), at.repository, requestID)
	if err != nil {
		return err
	}
	locateJob(w, b.basePath, job.ID)
	return api.WriteJSON(w, http.StatusAccepted, accepted{Successful: true, IndexName: job.IndexName, RequestID: requestID, JobID: job.ID})
}

func (b rebuilds) dropPrevious(w http.ResponseWriter, r *http.Request) error {
	at, err := repositoryTarget(r)
	if err != nil {
		return err
	}
	if err := api.ReadEmptyObject(r); err != nil {
		return err
	}
	if err := b.port.DropPrevious(r.Context(), at.repository); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (b rebuilds) plan(w http.ResponseWriter, r *http.Request) error {
	at, err := repositoryTarget(r)
	if err != nil {
		return err
	}
	plan, err := b.port.Plan(r.Context(), at.repository)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, plan)
}
