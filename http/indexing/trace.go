package indexing

import (
	"net/http"

	"tutti/http/api"
	"tutti/internal/core"
)

// repositoryList is the body of GET /repositories.
type repositoryList struct {
	Repositories []core.RepositoryStatus `json:"repositories"`
}

// repositories returns the handler that reports the states of the repositories.
func repositories(port Repositories) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		all, err := VisibleRepositories(r, port)
		if err != nil {
			return err
		}
		return api.WriteJSON(w, http.StatusOK, repositoryList{Repositories: all})
	}
}

// trace returns the handler that says what is known of a record.
func trace(port Traces) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		record, err := api.PathRecord(r)
		if err != nil {
			return err
		}
		_, restricted := api.RestrictedCaller(r)
		found, err := port.Trace(r.Context(), record, restricted)
		if err != nil {
			return err
		}
		return api.WriteJSON(w, http.StatusOK, found)
	}
}
