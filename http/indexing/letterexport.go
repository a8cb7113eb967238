package indexing

import (
	"net/http"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
)

const (
	contentTypeNDJSON = "application/x-ndjson"
	// headerNextCursor is the trailer of an export that ended at its limit.
	headerNextCursor = "Next-Cursor"
)

// export streams letters with their documents, one per line, all of them unless there is a limit. On an error
// it aborts the connection, because the status was already sent and the client must not take the partial export
// for a complete one.
func (d letters) export(w http.ResponseWriter, r *http.Request, f core.DeadLetterFilter) error {
	if r.Method == http.MethodHead {
		f.Limit = 1 // the response body is discarded
	}
	control := http.NewResponseController(w)
	begun := false
	next, err := d.each(r, f, func(letters []core.DeadLetter) error {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", contentTypeNDJSON)
			if f.Limit > 0 {
				w.Header().Set("Trailer", headerNextCursor)
			}
			w.WriteHeader(http.StatusOK)
		}
		for _, letter := range letters {
			// Writers of tests may support neither deadlines nor flushing.
			_ = control.SetWriteDeadline(time.Now().Add(api.LineTimeout))
			if err := api.EncodeJSON(w, wholeLetterBody(letter)); err != nil {
				return err
			}
		}
		_ = control.Flush()
		return r.Context().Err()
	})
	if err != nil && !begun {
		return err
	}
	if err != nil {
		return api.AbortResponse(r, err)
	}
	if next != "" {
		w.Header().Set(headerNextCursor, next)
	}
	return nil
}
