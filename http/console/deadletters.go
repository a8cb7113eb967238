package console

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

// lettersView is the content of the list of dead letters.
type lettersView struct {
	Base    string
	Now     time.Time
	System  bool
	Letters []core.DeadLetter
	core.DeadLetterFilter
	Repositories []core.RepositoryStatus
	Reasons      []string
	// Next is the path of the next page, empty after the last one.
	Next string
}

func (s *letterPages) deadLetters(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	v := lettersView{
		Base: s.base, Now: s.now(), System: api.RequireSystem(r) == nil, Reasons: core.DeadLetterReasons(),
		DeadLetterFilter: core.DeadLetterFilter{
			Repository: q.Get("repository"), Organization: q.Get("organization"), Reason: q.Get("reason"), Limit: listed, Cursor: q.Get("cursor"),
		},
	}
	var next string
	var err error
	v.Letters, next, err = indexing.VisibleDeadLetters(r, s.ports.DeadLetters, v.DeadLetterFilter)
	if err != nil {
		return err
	}
	if v.Repositories, err = indexing.VisibleRepositories(r, s.ports.Repositories); err != nil {
		return err
	}
	if next != "" {
		v.Next = s.link("dead-letters") + "?" + url.Values{"repository": {v.Repository}, "organization": {v.Organization}, "reason": {v.Reason}, "cursor": {next}}.Encode()
	}
	s.render(w, r, http.StatusOK, "deadletters", page{Title: "Dead letters", Active: "dead-letters", Content: v})
	return nil
}

// letterView is the content of the page of a dead letter.
type letterView struct {
	Base   string
	Now    time.Time
	System bool
	core.DeadLetter
	// Text is the document in its most readable form; Binary is set if it has none.
	Text   string
	Binary bool
	// Trace is the path of the trace of its record, empty if it has none.
	Trace string
}

func (s *letterPages) readLetter(r *http.Request) (letterView, error) {
	id, err := api.PathParam(r, "id", "dead letter id")
	if err != nil {
		return letterView{}, err
	}
	if err := indexing.CheckDeadLetter(r, s.ports.DeadLetters, id); err != nil {
		return letterView{}, letterError(err)
	}
	letter, err := s.ports.DeadLetters.Get(r.Context(), id)
	if err != nil {
		return letterView{}, letterError(err)
	}
	v := letterView{Base: s.base, Now: s.now(), System: api.RequireSystem(r) == nil, DeadLetter: letter}
	v.Text, v.Binary = readable(letter.Document)
	if letter.Repository != "" && letter.Organization != "" && letter.RecordID != "" {
		v.Trace = s.tracePath(letter.Repository, letter.Organization, letter.RecordID)
	}
	return v, nil
}

func letterError(err error) error {
	if core.CodeOf(err) != core.CodeNotFound {
		return err
	}
	return &core.Error{
		Code: core.CodeNotFound, Message: "there is no such dead letter", Err: err,
		Hint: "a dead letter disappears when its record succeeds, or when someone discards it",
	}
}

// readable returns a document indented if it is JSON that does not nest too deeply, or as it is if it is text.
func readable(document []byte) (text string, binary bool) {
	if indented, ok := jsontext.Indented(document); ok {
		return indented, false
	}
	for len(document) > 0 && !utf8.Valid(document) && len(document) > utf8.UTFMax {
		cut := document[:len(document)-1]
		if utf8.Valid(cut) || utf8.RuneStart(document[len(document)-1]) {
			document = cut
			break
		}
		document = cut
	}
	if !utf8.Valid(document) || bytes.IndexByte(document, 0) >= 0 {
		return "", len(document) > 0
	}
	return strings.ToValidUTF8(string(document), "\uFFFD"), false
}

func (s *letterPages) deadLetter(w http.ResponseWriter, r *http.Request) error {
	return s.showLetter(w, r, "deadletter", "Dead letter")
}

// confirmDiscard asks before a dead letter is discarded.
func (s *letterPages) confirmDiscard(w http.ResponseWriter, r *http.Request) error {
	return s.showLetter(w, r, "discard", "Discard a dead letter")
}

func (s *letterPages) showLetter(w http.ResponseWriter, r *http.Request, view, title string) error {
	v, err := s.readLetter(r)
	if err != nil {
		return err
	}
	s.render(w, r, http.StatusOK, view, page{Title: title, Active: "dead-letters", Content: v})
	return nil
}

func (s *letterPages) discardDeadLetter(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "id", "dead letter id")
	if err != nil {
		return err
	}
	if err := s.ports.DeadLetters.Delete(r.Context(), id); err != nil {
		return letterError(err)
	}
	s.see(w, s.link("dead-letters"), "discarded")
	return nil
}

func (s *letterPages) retryDeadLetter(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "id", "dead letter id")
	if err != nil {
		return err
	}
	if err := indexing.CheckDeadLetter(r, s.ports.DeadLetters, id); err != nil {
		return letterError(err)
	}
	if _, err := s.ports.Retries.Retry(r.Context(), id, api.RequestIDOf(r)); err != nil {
		return letterError(err)
	}
	s.see(w, s.link("dead-letters"), "retried")
	return nil
}

// retryDeadLetters retries all dead letters that the form selects.
func (s *letterPages) retryDeadLetters(w http.ResponseWriter, r *http.Request) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	job, err := s.ports.Retries.RetryAll(r.Context(), core.DeadLetterFilter{
		Repository: f.Get("repository"), Organization: f.Get("organization"), Reason: f.Get("reason"),
	}, api.RequestIDOf(r))
	if err != nil {
		return err
	}
	s.see(w, s.link("jobs", job.ID), "retried-all")
	return nil
}
