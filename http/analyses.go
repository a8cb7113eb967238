package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"tutti/internal/core"
)

const (
	// defaultAnalyses is Song's.
	defaultAnalyses = 100
	// maxAnalyses is the largest page of analyses; pages are streamed, so it does not bound memory.
	maxAnalyses = 10_000
	// maxStates is the largest number of values of analysisStates.
	maxStates = 100
)

// routeAnalyses adds the routes that read analyses. With tokens, unpublished ones require the study's read scope.
func (h *Handler) routeAnalyses() {
	const list = "/studies/{study}/analysis"
	h.handle(http.MethodGet, list, h.listAnalyses, allowParams("analysisStates"), token())
	h.handle(http.MethodGet, list+"/paginated", h.pageAnalyses, allowParams("analysisStates", "limit", "offset"), token())
	h.handle(http.MethodGet, list+"/{id}", h.getAnalysis, allowParams(), token())
	h.handle(http.MethodGet, list+"/{id}/files", h.getAnalysisFiles, allowParams(), token())
}

// analysisQuery holds the parameters of a list of analyses.
type analysisQuery struct {
	study         string
	states        []core.AnalysisState
	limit, offset int
}

// listAnalyses answers all analyses of a study in some states as an array.
func (h *Handler) listAnalyses(w http.ResponseWriter, r *http.Request) error {
	a, err := h.analysisQueryOf(r)
	if err != nil {
		return err
	}
	stream := newListStream(w, r, "[")
	_, err = h.ports.Analyses.Page(r.Context(), a.study, a.states, 0, 0, stream.addAnalysis)
	if err != nil {
		return stream.fail(fmt.Errorf("listing analyses: %w", err))
	}
	return stream.end("]")
}

// pageAnalyses answers a page of the analyses of a study in some states, in Song's form: totalAnalyses is the length of
// the whole list, currentTotalAnalyses that of the page.
func (h *Handler) pageAnalyses(w http.ResponseWriter, r *http.Request) error {
	a, err := h.analysisQueryOf(r)
	if err != nil {
		return err
	}
	stream := newListStream(w, r, `{"analyses":[`)
	info, err := h.ports.Analyses.Page(r.Context(), a.study, a.states, a.offset, a.limit, stream.addAnalysis)
	if err != nil {
		return stream.fail(fmt.Errorf("listing a page of analyses: %w", err))
	}
	return stream.end(fmt.Sprintf(`],"totalAnalyses":%d,"currentTotalAnalyses":%d}`, info.Total, info.Rows))
}

// analysisQueryOf parses a list request and rejects a caller that may not read these analyses.
func (h *Handler) analysisQueryOf(r *http.Request) (analysisQuery, error) {
	var a analysisQuery
	var err error
	if a.study, err = pathParam(r, "study", "study"); err != nil {
		return a, err
	}
	q, err := queryOf(r)
	if err != nil {
		return a, err
	}
	if a.limit, err = q.integer("limit", 1, maxAnalyses, defaultAnalyses); err != nil {
		return a, err
	}
	if a.offset, err = q.integer("offset", 0, maxNumber, 0); err != nil {
		return a, err
	}
	if a.states, err = analysisStatesOf(q); err != nil {
		return a, err
	}
	return a, h.checkStates(r, a.study, a.states...)
}

// analysisStatesOf parses analysisStates, without duplicates.
func analysisStatesOf(q query) ([]core.AnalysisState, error) {
	given, err := q.list("analysisStates", maxStates)
	if err != nil {
		return nil, err
	}
	if len(given) == 0 {
		return []core.AnalysisState{core.StatePublished}, nil
	}
	var states []core.AnalysisState
	for _, v := range given {
		state := core.AnalysisState(v)
		if !state.Valid() {
			return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("query parameter analysisStates must be of %s, %s and %s, not %s",
				core.StateUnpublished, core.StatePublished, core.StateSuppressed, quoteValue(v)))
		}
		if !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	return states, nil
}

func (h *Handler) getAnalysis(w http.ResponseWriter, r *http.Request) error {
	a, err := h.analysisOf(r)
	if err != nil {
		return err
	}
	writeEncoded(w, a.Body)
	return nil
}

// getAnalysisFiles answers with the array of files in the body of an analysis.
func (h *Handler) getAnalysisFiles(w http.ResponseWriter, r *http.Request) error {
	a, err := h.analysisOf(r)
	if err != nil {
		return err
	}
	body := struct {
		Files json.RawMessage `json:"files"`
	}{Files: json.RawMessage("[]")}
	if err := json.Unmarshal(a.Body, &body); err != nil {
		return core.WrapError(core.CodeInternal, "an internal error occurred", fmt.Errorf("decoding a stored analysis: %w", err))
	}
	writeEncoded(w, body.Files)
	return nil
}

// analysisTarget is what the path of an analysis names.
type analysisTarget struct{ study, id string }

func analysisTargetOf(r *http.Request) (analysisTarget, error) {
	study, err := pathParam(r, "study", "study")
	if err != nil {
		return analysisTarget{}, err
	}
	id, err := pathParam(r, "id", "id")
	return analysisTarget{study: study, id: id}, err
}

// analysisOf reads the analysis that the path names. An analysis that the caller may not see returns the same error as one that
// does not exist, unless the caller may change it.
func (h *Handler) analysisOf(r *http.Request) (core.Analysis, error) {
	t, err := analysisTargetOf(r)
	if err != nil {
		return core.Analysis{}, err
	}
	a, err := h.ports.Analyses.Analysis(r.Context(), t.study, t.id)
	if e, ok := errors.AsType[*core.Error](err); ok && e.Code == core.CodeNotFound && e.ErrorID == errorIDAnalysisMissing {
		return core.Analysis{}, t.absent(err)
	}
	if err != nil {
		return core.Analysis{}, fmt.Errorf("reading an analysis: %w", err)
	}
	err = h.checkStates(r, t.study, a.State)
	if core.CodeOf(err) == core.CodeForbidden && h.requireWrite(r, t.study) != nil {
		err = t.absent(err)
	}
	if err != nil {
		return core.Analysis{}, err
	}
	return a, nil
}

func (t analysisTarget) absent(cause error) error {
	return &core.Error{
		Code: core.CodeNotFound, ErrorID: errorIDAnalysisMissing, Err: cause,
		Message: fmt.Sprintf("study %s has no analysis %s", quoteValue(t.study), quoteValue(t.id)),
	}
}

// checkStates rejects a caller that may not read analyses of a study in some states: every caller that passed requireAccess may
// read published ones.
func (h *Handler) checkStates(r *http.Request, study string, states ...core.AnalysisState) error {
	for _, s := range states {
		if s != core.StatePublished {
			return h.requireRead(r, study)
		}
	}
	return nil
}
