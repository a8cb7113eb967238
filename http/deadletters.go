package http

import (
	"fmt"
	"net/http"
	"slices"

	"tutti/internal/core"
)

const (
	defaultLetters = 50
	maxLetters     = 1000
	// letterPage is how many letters are read at a time: each holds up to core.MaxDeadLetterBytes of a document.
	letterPage = 64
)

// letterQuery holds the parameters of a list of dead letters.
type letterQuery struct {
	// repository and reason are "" for any.
	repository, reason string
	// limit is 0 for none.
	limit  int
	cursor string
}

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
	Retried    int    `json:"retried"`
	Refused    int    `json:"refused"`
}

// letterReasons lists the reasons that a letter can have.
func letterReasons() []string {
	return []string{
		core.ReasonRejected, core.ReasonTooLarge, core.ReasonInvalidID, core.ReasonUpstream,
		core.ReasonUnknownRepository, core.ReasonCrashLoop, core.ReasonNotUnderstood,
	}
}

// letterFilterOf parses the filter parameters of dead letters.
func letterFilterOf(q query) (repository, reason string, err error) {
	if repository, err = q.text("repository"); err != nil {
		return "", "", err
	}
	if repository != "" {
		if err := core.ValidID("query parameter repository", repository); err != nil {
			return "", "", err
		}
	}
	if reason, err = q.text("reason"); err != nil {
		return "", "", err
	}
	if reason != "" && !slices.Contains(letterReasons(), reason) {
		return "", "", core.NewError(core.CodeInvalid, fmt.Sprintf("query parameter reason must be one of %v", letterReasons()))
	}
	return repository, reason, nil
}

func letterQueryOf(r *http.Request) (letterQuery, error) {
	q, err := queryOf(r)
	if err != nil {
		return letterQuery{}, err
	}
	var l letterQuery
	if l.repository, l.reason, err = letterFilterOf(q); err != nil {
		return letterQuery{}, err
	}
	if l.limit, err = q.integer("limit", 1, maxLetters, 0); err != nil {
		return letterQuery{}, err
	}
	if l.cursor, err = q.text("cursor"); err != nil {
		return letterQuery{}, err
	}
	if len(l.cursor) > maxCursorBytes {
		return letterQuery{}, core.NewError(core.CodeInvalid, "query parameter cursor was not issued by this server")
	}
	return l, nil
}

// eachLetters calls each with pages of the letters of l that the caller may see, up to l's limit, and returns the next cursor.
// Memory is bounded by the page, not by the limit.
func (h *Handler) eachLetters(
	r *http.Request, l letterQuery, each func([]core.DeadLetter) error,
) (string, error) {
	filter, narrowed := h.letterFilter(r)
	cursor := l.cursor
	seen := 0
	for round := 1; ; round++ {
		n := letterPage
		if l.limit > 0 {
			n = min(n, l.limit-seen)
		}
		letters, next, err := h.ports.DeadLetters.List(r.Context(), l.repository, l.reason, n, cursor)
		if err != nil {
			return "", fmt.Errorf("listing dead letters: %w", err)
		}
		letters = filter(letters)
		if err := each(letters); err != nil {
			return "", err
		}
		seen += len(letters)
		if next == "" || l.limit > 0 && (seen >= l.limit || narrowed && round == maxVisiblePages) {
			return next, nil
		}
		cursor = next
	}
}

// listDeadLetters answers a page of letters without their documents, or streams whole letters as NDJSON.
func (h *Handler) listDeadLetters(w http.ResponseWriter, r *http.Request) error {
	w.Header().Add("Vary", "Accept")
	l, err := letterQueryOf(r)
	if err != nil {
		return err
	}
	if negotiate(r.Header.Values("Accept"), contentTypeJSON, contentTypeNDJSON) == contentTypeNDJSON {
		return h.exportDeadLetters(w, r, l)
	}
	if l.limit == 0 {
		l.limit = defaultLetters
	}
	list := letterList{DeadLetters: []letterBody{}}
	list.NextCursor, err = h.eachLetters(r, l, func(letters []core.DeadLetter) error {
		for _, letter := range letters {
			list.DeadLetters = append(list.DeadLetters, newLetterBody(letter))
		}
		return nil
	})
	if err != nil {
		return err
	}
	h.writeJSON(w, r, http.StatusOK, contentTypeJSON, list)
	return nil
}

func (h *Handler) getDeadLetter(w http.ResponseWriter, r *http.Request) error {
	id, err := pathParam(r, "id", "id")
	if err != nil {
		return err
	}
	if err := h.checkLetter(r, id); err != nil {
		return err
	}
	letter, err := h.ports.DeadLetters.Get(r.Context(), id)
	if err != nil {
		return err
	}
	h.writeJSON(w, r, http.StatusOK, contentTypeJSON, wholeLetterBody(letter))
	return nil
}

func (h *Handler) discardDeadLetter(w http.ResponseWriter, r *http.Request) error {
	id, err := pathParam(r, "id", "id")
	if err != nil {
		return err
	}
	if err := h.readEmptyObject(r); err != nil {
		return err
	}
	if err := h.ports.DeadLetters.Delete(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *Handler) retryDeadLetter(w http.ResponseWriter, r *http.Request) error {
	id, err := pathParam(r, "id", "id")
	if err != nil {
		return err
	}
	if err := h.readEmptyObject(r); err != nil {
		return err
	}
	if err := h.checkLetter(r, id); err != nil {
		return err
	}
	requestID := exchangeOf(r.Context()).requestID
	letter, err := h.ports.Retries.Retry(r.Context(), id, requestID)
	if err != nil {
		return err
	}
	h.writeJSON(w, r, http.StatusAccepted, contentTypeJSON, retriedLetter{
		Successful: true, RequestID: requestID, ID: id, Repository: letter.Repository,
		Organization: letter.Organization, RecordID: letter.RecordID,
	})
	return nil
}

func (h *Handler) retryDeadLetters(w http.ResponseWriter, r *http.Request) error {
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	repository, reason, err := letterFilterOf(q)
	if err != nil {
		return err
	}
	if err := h.readEmptyObject(r); err != nil {
		return err
	}
	requestID := exchangeOf(r.Context()).requestID
	retried, refused, err := h.ports.Retries.RetryAll(r.Context(), repository, reason, requestID)
	if err != nil {
		return partialRetryError(err, retried)
	}
	h.writeJSON(w, r, http.StatusAccepted, contentTypeJSON,
		retriedLetters{Successful: true, RequestID: requestID, Retried: retried, Refused: refused})
	return nil
}

// partialRetryError adds to err how many letters were retried before it; they stay retried.
func partialRetryError(err error, retried int) error {
	if retried == 0 {
		return err
	}
	return &core.Error{
		Code:    core.CodeOf(err),
		Message: fmt.Sprintf("%s; %d dead letters had been retried before", core.MessageOf(err), retried),
		Hint:    "retry the others: retrying a letter twice is harmless", RetryAfter: core.RetryAfterOf(err), Err: err,
	}
}
