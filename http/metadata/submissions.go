package metadata

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"tutti/http/api"
	"tutti/http/problem"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// statusOK is the status that Song's clients expect in the response to a submission.
const statusOK = "OK"

// submittedBody is the response to a submission.
type submittedBody struct {
	AnalysisID string `json:"analysisId"`
	Status     string `json:"status"`
}

// submissions handles the requests that change analyses.
type submissions struct {
	port Submissions
	// memory bounds the memory for processing large payloads.
	memory core.Memory
	// notIndexed is Ports.NotIndexed.
	notIndexed string
}

// headerWarning has the code 299 and Ports.NotIndexed (RFC 7234, section 5.5): the bodies are Song's.
const headerWarning = "Warning"

// warn says in a header that an analysis that was stored or published will not be in any index.
func (s submissions) warn(w http.ResponseWriter) {
	if s.notIndexed != "" {
		w.Header().Set(headerWarning, `299 tutti "`+s.notIndexed+`"`)
	}
}

func (s submissions) register(r *api.Router) {
	const analysis = "/studies/{study}/analysis"
	writer := api.WriterOf("study")
	r.Handle(http.MethodPost, "/submit/{study}", s.submit, api.LenientParams(), writer)
	r.Handle(http.MethodPut, analysis+"/{id}", s.change(func(p Submissions) changeFunc { return p.Replace }), api.LenientParams(), writer)
	r.Handle(http.MethodPatch, analysis+"/{id}", s.change(func(p Submissions) changeFunc { return p.Merge }), api.LenientParams(), writer)
	r.Handle(http.MethodPut, analysis+"/publish/{id}",
		s.setState(datamodel.StatePublished, "AnalysisId %s successfully published"), api.LenientParams(), writer)
	r.Handle(http.MethodPut, analysis+"/unpublish/{id}",
		s.setState(datamodel.StateUnpublished, "AnalysisId %s successfully unpublished"), api.LenientParams(), writer)
	r.Handle(http.MethodPut, analysis+"/suppress/{id}",
		s.setState(datamodel.StateSuppressed, "AnalysisId %s was suppressed"), api.LenientParams(), writer)
}

func (s submissions) submit(w http.ResponseWriter, r *http.Request) error {
	study, err := api.PathParam(r, "study", "study")
	if err != nil {
		return err
	}
	q, err := api.LenientQueryOf(r)
	if err != nil {
		return err
	}
	allowDuplicates, err := q.LenientBoolean("allowDuplicates")
	if err != nil {
		return err
	}
	body, err := s.readPayload(r)
	if err != nil {
		return err
	}
	id, err := s.port.Submit(r.Context(), study, body, allowDuplicates)
	if err != nil {
		return fmt.Errorf("submitting an analysis: %w", err)
	}
	s.warn(w)
	return api.WriteJSON(w, http.StatusOK, submittedBody{AnalysisID: id, Status: statusOK})
}

// changeFunc changes an analysis by a body.
type changeFunc func(ctx context.Context, study, id string, body []byte) error

// change handles a body that changes an analysis.
func (s submissions) change(by func(Submissions) changeFunc) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		t, err := analysisTargetOf(r)
		if err != nil {
			return err
		}
		body, err := s.readPayload(r)
		if err != nil {
			return err
		}
		if err := by(s.port)(r.Context(), t.study, t.id, body); err != nil {
			return fmt.Errorf("changing an analysis: %w", err)
		}
		return api.WriteJSON(w, http.StatusOK, messageBody{Message: "AnalysisId " + t.id + " successfully updated"})
	}
}

// setState handles a change of state. done is the format of the response, which contains the id, as in Song.
func (s submissions) setState(state datamodel.AnalysisState, done string) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		t, err := analysisTargetOf(r)
		if err != nil {
			return err
		}
		q, err := api.LenientQueryOf(r)
		if err != nil {
			return err
		}
		ignoreUndefinedMD5, err := q.LenientBoolean("ignoreUndefinedMd5")
		if err != nil {
			return err
		}
		if err := api.ReadEmptyObjectOrNull(r); err != nil {
			return err
		}
		if err := s.port.SetState(r.Context(), t.study, t.id, state, ignoreUndefinedMD5); err != nil {
			return fmt.Errorf("changing the state of an analysis: %w", err)
		}
		if state == datamodel.StatePublished {
			s.warn(w)
		}
		return api.WriteJSON(w, http.StatusOK, messageBody{Message: fmt.Sprintf(done, t.id)})
	}
}

// readPayload reads the body of a submission, and waits for the memory for processing it. An invalid body has the error id
// that Song's clients expect.
func (s submissions) readPayload(r *http.Request) ([]byte, error) {
	body, release, err := api.ReceiveJSON(r)
	if e, ok := errors.AsType[*core.Error](err); ok && e.Code == core.CodeInvalid {
		refused := *e
		refused.ErrorID = problem.ErrorIDPayload
		return nil, &refused
	}
	if err != nil || len(body) <= api.SmallBody {
		return body, err
	}
	defer release()
	return body, AcquirePayload(r, s.memory, body)
}

// AcquirePayload waits for the memory for validating and storing an analysis, until the end of the request. A nil memory has no bound.
func AcquirePayload(r *http.Request, memory core.Memory, body []byte) error {
	if memory == nil || len(body) <= api.SmallBody {
		return nil
	}
	_, err := api.Acquire(r, memory, payloadWeight(body))
	return err
}

const (
	// payloadCopies is the approximate number of copies of an analysis while it is validated and stored, payloadValue the
	// additional memory for each of its values, in bytes.
	payloadCopies, payloadValue = 6, 100
)

// payloadWeight estimates the memory that validating and storing an analysis takes, in bytes.
func payloadWeight(body []byte) int64 {
	values := bytes.Count(body, []byte(",")) + bytes.Count(body, []byte("{")) + bytes.Count(body, []byte("["))
	return payloadCopies*int64(len(body)) + payloadValue*int64(values)
}
