package indexing

import (
	"net/http"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
)

const (
	contentTypeNDJSON = "application/x-ndjson"
	// headerNextCursor is the trailer of an export that its limit has ended.
	headerNextCursor = "Next-Cursor"
)

// export streams whole letters, one a line, all of them unless there is a limit. When it cannot go on it breaks
// the connection off: the status is sent by then, and a part must never be taken for the whole.
func (d letters) export(w http.ResponseWriter, r *http.Request, l letterQuery) error {
	if r.Method == http.MethodHead {
		l.limit = 1 // the response body is discarded
	}
	control := http.NewResponseController(w)
	begun := false
	next, err := d.each(r, l, func(letters []core.DeadLetter) error {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", contentTypeNDJSON)
			if l.limit > 0 {
				w.Header().Set("Trailer", headerNextCursor)
			}
			w.WriteHeader(http.StatusOK)
		}
		for _, letter := range letters {
			// A writer without deadlines or flushing (a test's) is written without.
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
