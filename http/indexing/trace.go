package indexing

import (
	"net/http"

	"tutti/http/api"
)

// trace returns the handler that says what is known of a record.
func trace(port Traces) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		at, err := recordTarget(r)
		if err != nil {
			return err
		}
		_, restricted := api.RestrictedCaller(r)
		found, err := port.Trace(r.Context(), at.repository, at.organization, at.id, restricted)
		if err != nil {
			return err
		}
		return api.WriteJSON(w, http.StatusOK, found)
	}
}
