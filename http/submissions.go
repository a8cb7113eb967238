package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"tutti/internal/core"
)

// statusOK is what Song's clients read in the answer to a submission.
const statusOK = "OK"

// submittedBody is the answer to a submission.
type submittedBody struct {
	AnalysisID string `json:"analysisId"`
	Status     string `json:"status"`
}

// routeSubmissions routes what changes analyses.
func (h *Handler) routeSubmissions() {
	const analysis = "/studies/{study}/analysis"
	writer := writerOf("study")
	h.handle(http.MethodPost, "/submit/{study}", h.submit, allowParams("allowDuplicates"), writer)
	h.handle(http.MethodPut, analysis+"/{id}", h.change(func(s Submissions) changeFunc { return s.Replace }), allowParams(),
		writer)
	h.handle(http.MethodPatch, analysis+"/{id}", h.change(func(s Submissions) changeFunc { return s.Merge }), allowParams(),
		writer)
	h.handle(http.MethodPut, analysis+"/publish/{id}",
		h.setState(core.StatePublished, "AnalysisId %s successfully published"), allowParams("ignoreUndefinedMd5"), writer)
	h.handle(http.MethodPut, analysis+"/unpublish/{id}",
		h.setState(core.StateUnpublished, "AnalysisId %s successfully unpublished"), allowParams(), writer)
	h.handle(http.MethodPut, analysis+"/suppress/{id}",
		h.setState(core.StateSuppressed, "AnalysisId %s was suppressed"), allowParams(), writer)
}

func (h *Handler) submit(w http.ResponseWriter, r *http.Request) error {
	study, err := pathParam(r, "study", "study")
	if err != nil {
		return err
	}
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	allowDuplicates, err := q.lenientBoolean("allowDuplicates")
	if err != nil {
		return err
	}
	body, err := h.readPayload(r)
	if err != nil {
		return err
	}
	id, err := h.ports.Submissions.Submit(r.Context(), study, body, allowDuplicates)
	if err != nil {
		return fmt.Errorf("submitting an analysis: %w", err)
	}
	h.writeJSON(w, r, http.StatusOK, contentTypeJSON, submittedBody{AnalysisID: id, Status: statusOK})
	return nil
}

// changeFunc changes an analysis by a body.
type changeFunc func(ctx context.Context, study, id string, body []byte) error

// change handles a body that changes an analysis.
func (h *Handler) change(by func(Submissions) changeFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		t, err := analysisTargetOf(r)
		if err != nil {
			return err
		}
		body, err := h.readPayload(r)
		if err != nil {
			return err
		}
		if err := by(h.ports.Submissions)(r.Context(), t.study, t.id, body); err != nil {
			return fmt.Errorf("changing an analysis: %w", err)
		}
		h.writeJSON(w, r, http.StatusOK, contentTypeJSON, messageBody{Message: "AnalysisId " + t.id + " successfully updated"})
		return nil
	}
}

// setState handles a change of state; done is the answer, with the id, in Song's words.
func (h *Handler) setState(state core.AnalysisState, done string) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		t, err := analysisTargetOf(r)
		if err != nil {
			return err
		}
		q, err := queryOf(r)
		if err != nil {
			return err
		}
		// Song's clients send it. It is of the storage that Song asks and tutti does not, so it changes nothing.
		if _, err := q.lenientBoolean("ignoreUndefinedMd5"); err != nil {
			return err
		}
		if err := h.readEmptyObject(r); err != nil {
			return err
		}
		if err := h.ports.Submissions.SetState(r.Context(), t.study, t.id, state); err != nil {
			return fmt.Errorf("changing the state of an analysis: %w", err)
		}
		h.writeJSON(w, r, http.StatusOK, contentTypeJSON, messageBody{Message: fmt.Sprintf(done, t.id)})
		return nil
	}
}

// readPayload reads the body of a submission, and waits for the memory that working on it takes; what is no payload at all
// is that to Song's clients too.
func (h *Handler) readPayload(r *http.Request) ([]byte, error) {
	body, release, err := h.receiveJSON(r)
	if e, ok := errors.AsType[*core.Error](err); ok && e.Code == core.CodeInvalid {
		refused := *e
		refused.ErrorID = errorIDPayload
		return nil, &refused
	}
	if err != nil || len(body) <= smallBody {
		return body, err
	}
	defer release()
	_, err = h.acquire(r, h.cfg.Payloads, payloadWeight(body))
	return body, err
}
