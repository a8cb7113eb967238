package metadata

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/http/problem"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

const (
	// defaultAnalyses is the default size of a page, as in Song.
	defaultAnalyses = 100
	// maxAnalyses is the largest page of analyses; pages are streamed, so it does not bound memory.
	maxAnalyses = 10_000
	// maxStates is the largest number of values of analysisStates.
	maxStates = 100
)

// analyses handles the reading of analyses. With tokens, unpublished ones require the study's read scope.
type analyses struct{ port Analyses }

func (h analyses) register(r *api.Router) {
	const list = "/studies/{study}/analysis"
	r.Handle(http.MethodGet, list, h.list, api.LenientParams(), api.Token())
	r.Handle(http.MethodGet, list+"/paginated", h.page, api.LenientParams(), api.Token())
	// Without a token Score's server asks for the state, before it accepts an upload or a download.
	r.Handle(http.MethodGet, list+"/{id}", h.get, api.LenientParams(), api.OptionalToken())
	r.Handle(http.MethodGet, list+"/search/id", h.searchIDs, api.LenientParams(), api.Token())
	r.Handle(http.MethodGet, list+"/{id}/files", h.files, api.LenientParams(), api.Token())
}

// analysisQuery selects the analyses to list.
type analysisQuery struct {
	study  string
	states []datamodel.AnalysisState
}

// list writes all analyses of a study in some states as an array.
func (h analyses) list(w http.ResponseWriter, r *http.Request) error {
	a, err := analysisQueryOf(r)
	if err != nil {
		return err
	}
	stream := api.NewListStream(w, r, media.JSON, "[")
	_, err = h.port.Page(r.Context(), a.study, a.states, 0, 0, func(a datamodel.Analysis) error { return stream.AddRow(a.Body) })
	if err != nil {
		return stream.Fail(fmt.Errorf("listing analyses: %w", err))
	}
	return stream.End("]")
}

// page writes a page of the analyses of a study in some states, in Song's format: totalAnalyses is the length of the whole
// list, currentTotalAnalyses that of the page.
func (h analyses) page(w http.ResponseWriter, r *http.Request) error {
	a, err := analysisQueryOf(r)
	if err != nil {
		return err
	}
	offset, limit, err := pageOf(r)
	if err != nil {
		return err
	}
	stream := api.NewListStream(w, r, media.JSON, `{"analyses":[`)
	info, err := h.port.Page(r.Context(), a.study, a.states, offset, limit, func(a datamodel.Analysis) error { return stream.AddRow(a.Body) })
	if err != nil {
		return stream.Fail(fmt.Errorf("listing a page of analyses: %w", err))
	}
	return stream.End(fmt.Sprintf(`],"totalAnalyses":%d,"currentTotalAnalyses":%d}`, info.Total, info.Rows))
}

// analysisQueryOf parses a list request and rejects a caller that may not read these analyses.
func analysisQueryOf(r *http.Request) (analysisQuery, error) {
	var a analysisQuery
	var err error
	if a.study, err = api.PathParam(r, "study", "study"); err != nil {
		return a, err
	}
	q, err := api.LenientQueryOf(r)
	if err != nil {
		return a, err
	}
	if a.states, err = analysisStatesOf(q); err != nil {
		return a, err
	}
	return a, checkStates(r, a.study, a.states...)
}

// pageOf parses the offset and the limit of a page.
func pageOf(r *http.Request) (offset, limit int, err error) {
	q, err := api.LenientQueryOf(r)
	if err != nil {
		return 0, 0, err
	}
	if limit, err = q.Integer("limit", 0, maxAnalyses, defaultAnalyses); err != nil {
		return 0, 0, err
	}
	offset, err = q.Integer("offset", 0, maxNumber, 0)
	if limit == 0 {
		// A page past the end has no rows and the total, which is what Song returns for limit 0.
		offset, limit = maxNumber, 1
	}
	return offset, limit, err
}

// analysisStatesOf parses analysisStates, without duplicates.
func analysisStatesOf(q api.Query) ([]datamodel.AnalysisState, error) {
	given, err := q.List("analysisStates", maxStates)
	if err != nil {
		return nil, err
	}
	if len(given) == 0 {
		return []datamodel.AnalysisState{datamodel.StatePublished}, nil
	}
	var states []datamodel.AnalysisState
	for _, v := range given {
		state := datamodel.AnalysisState(v)
		if !state.Valid() {
			return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("query parameter analysisStates must be of %s, %s and %s, not %s",
				datamodel.StateUnpublished, datamodel.StatePublished, datamodel.StateSuppressed, api.QuoteValue(v)))
		}
		if !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	return states, nil
}

// stateBody contains the members of an analysis that a caller without a token may read.
type stateBody struct {
	AnalysisID    string                  `json:"analysisId"`
	StudyID       string                  `json:"studyId"`
	AnalysisState datamodel.AnalysisState `json:"analysisState"`
}

// get returns an analysis, and to a caller without a token only its state.
func (h analyses) get(w http.ResponseWriter, r *http.Request) error {
	w.Header().Add("Vary", api.HeaderAuthorization)
	a, err := h.read(r)
	if err != nil {
		return err
	}
	if anonymous(r) {
		return api.WriteJSON(w, http.StatusOK, stateBody{AnalysisID: a.ID, StudyID: a.Study, AnalysisState: a.State})
	}
	api.WriteEncoded(w, a.Body)
	return nil
}

// anonymous reports whether authentication is on and the request has no token.
func anonymous(r *http.Request) bool {
	caller, on := api.CallerOf(r.Context())
	return on && caller.ID == ""
}

// searchIDs returns the analyses of a study with matching ids: all to a caller who may read the unpublished ones, else the published.
func (h analyses) searchIDs(w http.ResponseWriter, r *http.Request) error {
	study, err := api.PathParam(r, "study", "study")
	if err != nil {
		return err
	}
	q, err := api.LenientQueryOf(r)
	if err != nil {
		return err
	}
	var search datamodel.IDSearch
	for _, p := range []struct {
		name string
		into *string
	}{
		{"donorId", &search.DonorID},
		{"specimenId", &search.SpecimenID},
		{"sampleId", &search.SampleID},
		{"submitterDonorId", &search.SubmitterDonorID},
		{"submitterSpecimenId", &search.SubmitterSpecimenID},
		{"submitterSampleId", &search.SubmitterSampleID},
		{"fileId", &search.FileID},
	} {
		if *p.into, err = q.Unicode(p.name); err != nil {
			return err
		}
	}
	states := allStates
	if err := checkStates(r, study, states...); err != nil {
		states = []datamodel.AnalysisState{datamodel.StatePublished}
	}
	stream := api.NewListStream(w, r, media.JSON, "[")
	err = h.port.SearchIDs(r.Context(), study, states, search, func(a datamodel.Analysis) error { return stream.AddRow(a.Body) })
	if err != nil {
		return stream.Fail(fmt.Errorf("searching analyses: %w", err))
	}
	return stream.End("]")
}

// files answers with the array of files in the body of an analysis.
func (h analyses) files(w http.ResponseWriter, r *http.Request) error {
	a, err := h.read(r)
	if err != nil {
		return err
	}
	body := struct {
		Files json.RawMessage `json:"files"`
	}{Files: json.RawMessage("[]")}
	if err := json.Unmarshal(a.Body, &body); err != nil {
		return core.WrapError(core.CodeInternal, "an internal error occurred", fmt.Errorf("decoding a stored analysis: %w", err))
	}
	api.WriteEncoded(w, body.Files)
	return nil
}

// analysisTarget identifies an analysis by the parameters of a path.
type analysisTarget struct{ study, id string }

func analysisTargetOf(r *http.Request) (analysisTarget, error) {
	study, err := api.PathParam(r, "study", "study")
	if err != nil {
		return analysisTarget{}, err
	}
	id, err := api.PathParam(r, "id", "id")
	return analysisTarget{study: study, id: id}, err
}

// read reads the analysis that the path names. An analysis that the caller may not see returns the same error as one that
// does not exist.
func (h analyses) read(r *http.Request) (datamodel.Analysis, error) {
	t, err := analysisTargetOf(r)
	if err != nil {
		return datamodel.Analysis{}, err
	}
	a, err := h.port.Analysis(r.Context(), t.study, t.id)
	if e, ok := errors.AsType[*core.Error](err); ok && e.Code == core.CodeNotFound && e.ErrorID == problem.ErrorIDAnalysisMissing {
		return datamodel.Analysis{}, t.absent(err)
	}
	if err != nil {
		return datamodel.Analysis{}, fmt.Errorf("reading an analysis: %w", err)
	}
	if anonymous(r) {
		return a, nil // get shows only its state
	}
	err = checkStates(r, t.study, a.State)
	if core.CodeOf(err) == core.CodeForbidden {
		err = t.absent(err)
	}
	if err != nil {
		return datamodel.Analysis{}, err
	}
	return a, nil
}

func (t analysisTarget) absent(cause error) error {
	return &core.Error{
		Code: core.CodeNotFound, ErrorID: problem.ErrorIDAnalysisMissing, Err: cause,
		Message: fmt.Sprintf("study %s has no analysis %s", api.QuoteValue(t.study), api.QuoteValue(t.id)),
	}
}

// checkStates rejects a caller that may not read analyses of a study in some states: every caller that passed requireAccess may
// read published ones.
func checkStates(r *http.Request, study string, states ...datamodel.AnalysisState) error {
	for _, s := range states {
		if s != datamodel.StatePublished {
			return api.RequireRead(r, study)
		}
	}
	return nil
}
