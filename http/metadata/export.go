package metadata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/http/problem"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// allStates are the states of analyses.
var allStates = []datamodel.AnalysisState{datamodel.StatePublished, datamodel.StateUnpublished, datamodel.StateSuppressed}

// exports handles /export: payloads that could be submitted again.
type exports struct{ port Exports }

func (h exports) register(r *api.Router) {
	r.Handle(http.MethodGet, "/export/studies/{study}", h.study, api.LenientParams(), api.Token())
	r.Handle(http.MethodGet, "/export/analysis/{ids}", h.analyses, api.LenientParams(), api.Token())
}

// study exports all analyses of a study, in any state.
func (h exports) study(w http.ResponseWriter, r *http.Request) error {
	study, err := api.PathParam(r, "study", "study")
	if err != nil {
		return err
	}
	if err := checkStates(r, study, allStates...); err != nil {
		return err
	}
	stream := api.NewListStream(w, r, media.JSON, exportHead(study))
	err = h.port.ExportStudy(r.Context(), study, func(a datamodel.Analysis) error { return stream.AddRow(a.Body) })
	if err != nil {
		return stream.Fail(fmt.Errorf("exporting a study: %w", err))
	}
	return stream.End("]}]")
}

// exportHead returns the start of an export with one study.
func exportHead(study string) string {
	name, _ := json.Marshal(study) // encoding a string does not fail
	return `[{"studyId":` + string(name) + `,"payloads":[`
}

// readable returns what read returns for an analysis. The caller receives the same error for one that it may not see as for one that does
// not exist.
func readable(r *http.Request, id string, read func(context.Context, string) (datamodel.Analysis, error)) (datamodel.Analysis, error) {
	a, err := read(r.Context(), id)
	if err == nil {
		err = checkStates(r, a.Study, a.State)
	}
	e, ok := errors.AsType[*core.Error](err)
	if ok && e.ErrorID == problem.ErrorIDAnalysisMissing || core.CodeOf(err) == core.CodeForbidden {
		return datamodel.Analysis{}, &core.Error{
			Code: core.CodeNotFound, ErrorID: problem.ErrorIDAnalysisMissing, Err: err, Message: "there is no analysis " + api.QuoteValue(id),
		}
	}
	if err != nil {
		return datamodel.Analysis{}, fmt.Errorf("reading an analysis: %w", err)
	}
	return a, nil
}

// analyses exports the analyses that the path lists, by study. If one does not exist, or the caller may not see it, none is exported.
func (h exports) analyses(w http.ResponseWriter, r *http.Request) error {
	ids, err := api.PathParams(r, "ids", "id", maxListed)
	if err != nil {
		return err
	}
	var studies []string
	byStudy := map[string][]string{}
	for _, id := range ids {
		a, err := readable(r, id, h.port.FindAnalysis)
		if err != nil {
			return err
		}
		if byStudy[a.Study] == nil {
			studies = append(studies, a.Study)
		}
		byStudy[a.Study] = append(byStudy[a.Study], id)
	}
	stream := api.NewListStream(w, r, media.JSON, "")
	for i, study := range studies {
		head := exportHead(study)
		if i > 0 {
			head = "]}," + head[1:]
		}
		if err := stream.Add([]byte(head)); err != nil {
			return stream.Fail(err)
		}
		for j, id := range byStudy[study] {
			a, err := readable(r, id, h.port.ExportAnalysis) // it may have been unpublished since
			if err != nil {
				return stream.Fail(err)
			}
			if j > 0 {
				a.Body = append([]byte{','}, a.Body...)
			}
			if err := stream.Add(a.Body); err != nil {
				return stream.Fail(err)
			}
		}
	}
	return stream.End("]}]")
}
