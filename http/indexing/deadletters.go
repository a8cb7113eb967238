package indexing

import (
	"fmt"
	"net/http"
	"slices"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/internal/core"
)

const (
	defaultLetters = 50
	maxLetters     = 1000
	// letterPage is how many letters are read at a time: each holds up to core.MaxDeadLetterBytes of a document.
	letterPage = 64
)

type letterList struct {
	DeadLetters []letterBody `json:"deadLetters"`
	NextCursor  string       `json:"nextCursor,omitempty"`
}

// retriedLetter is the 202 of the retry of one letter.
type retriedLetter struct {
	Successful   bool   `json:"successful"`
	RequestID    string `json:"requestId"`
	ID           string `json:"id"`
	Repository   string `json:"repository"`
	Organization string `json:"organization,omitempty"`
	RecordID     string `json:"recordId,omitempty"`
}

// retriedLetters is the 202 of the retry of many.
type retriedLetters struct {
	Successful bool   `json:"successful"`
	RequestID  string `json:"requestId"`
	JobID      string `json:"jobId"`
}

// letterFilterOf parses the parameters that select dead letters.
func letterFilterOf(q api.Query) (f core.DeadLetterFilter, err error) {
	if f.Repository, err = repositoryOf(q); err != nil {
		return f, err
	}
	if f.Reason, err = q.Text("reason"); err != nil {
		return f, err
	}
	if f.Reason != "" && !slices.Contains(core.DeadLetterReasons(), f.Reason) {
		return f, core.NewError(core.CodeInvalid, fmt.Sprintf("query parameter reason must be one of %v", core.DeadLetterReasons()))
	}
	if f.Organization, err = q.Text("organization"); err != nil || f.Organization == "" {
		return f, err
	}
	return f, core.ValidID("query parameter organization", f.Organization)
}

// letterPageOf parses the parameters of a list of dead letters; its Limit is 0 for none.
func letterPageOf(r *http.Request) (f core.DeadLetterFilter, err error) {
	q, err := api.QueryOf(r)
	if err != nil {
		return f, err
	}
	if f, err = letterFilterOf(q); err != nil {
		return f, err
	}
	if f.Limit, err = q.Integer("limit", 1, maxLetters, 0); err != nil {
		return f, err
	}
	f.Cursor, err = cursorOf(q)
	return f, err
}

// letters handles /dead-letters.
type letters struct {
	port     DeadLetters
	retries  Retries
	basePath string
}

// each calls each with pages of the letters of f that the caller may see, up to f's limit (0 for all), and returns the next cursor.
// Memory is bounded by the page, not by the limit.
func (d letters) each(
	r *http.Request, f core.DeadLetterFilter, each func([]core.DeadLetter) error,
) (string, error) {
	filter, narrowed := visibleLetters(r)
	page := f
	seen := 0
	for round := 1; ; round++ {
		page.Limit = letterPage
		if f.Limit > 0 {
			page.Limit = min(letterPage, f.Limit-seen)
		}
		letters, next, err := d.port.List(r.Context(), page)
		if err != nil {
			return "", fmt.Errorf("listing dead letters: %w", err)
		}
		letters = filter(letters)
		if err := each(letters); err != nil {
			return "", err
		}
		seen += len(letters)
		if next == "" || f.Limit > 0 && (seen >= f.Limit || narrowed && round == maxVisiblePages) {
			return next, nil
		}
		page.Cursor = next
	}
}

// list writes a page of letters without their documents, or streams letters with their documents as NDJSON.
func (d letters) list(w http.ResponseWriter, r *http.Request) error {
	w.Header().Add("Vary", "Accept")
	f, err := letterPageOf(r)
	if err != nil {
		return err
	}
	if media.Negotiate(r.Header.Values("Accept"), media.JSON, contentTypeNDJSON) == contentTypeNDJSON {
		return d.export(w, r, f)
	}
	if f.Limit == 0 {
		f.Limit = defaultLetters
	}
	list := letterList{DeadLetters: []letterBody{}}
	list.NextCursor, err = d.each(r, f, func(letters []core.DeadLetter) error {
		for _, letter := range letters {
			list.DeadLetters = append(list.DeadLetters, newLetterBody(letter))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, list)
}

func (d letters) get(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "id", "id")
	if err != nil {
		return err
	}
	if err := CheckDeadLetter(r, d.port, id); err != nil {
		return err
	}
	letter, err := d.port.Get(r.Context(), id)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, wholeLetterBody(letter))
}

func (d letters) discard(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "id", "id")
	if err != nil {
		return err
	}
	if err := api.ReadEmptyObject(r); err != nil {
		return err
	}
	if err := d.port.Delete(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d letters) retry(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "id", "id")
	if err != nil {
		return err
	}
	requestID, err := api.ReadTrigger(r)
	if err != nil {
		return err
	}
	if err := CheckDeadLetter(r, d.port, id); err != nil {
		return err
	}
	letter, err := d.retries.Retry(r.Context(), id, requestID)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusAccepted, retriedLetter{
		Successful: true, RequestID: requestID, ID: id, Repository: letter.Repository,
		Organization: letter.Organization, RecordID: letter.RecordID,
	})
}

func (d letters) retryAll(w http.ResponseWriter, r *http.Request) error {
	q, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	f, err := letterFilterOf(q)
	if err != nil {
		return err
	}
	requestID, err := api.ReadTrigger(r)
	if err != nil {
		return err
	}
	job, err := d.retries.RetryAll(r.Context(), f, requestID)
	if err != nil {
		return err
	}
	locateJob(w, d.basePath, job.ID)
	return api.WriteJSON(w, http.StatusAccepted, retriedLetters{Successful: true, RequestID: requestID, JobID: job.ID})
}
