package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/http/console/mark"
	"tutti/http/metadata"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// studiesView is the content of the list of studies.
type studiesView struct {
	Base    string
	System  bool
	Studies []string
}

func (s *studyPages) studies(w http.ResponseWriter, r *http.Request) error {
	ids, err := s.ports.Studies.Studies(r.Context())
	if err != nil {
		return err
	}
	v := studiesView{Base: s.base, System: api.RequireSystem(r) == nil, Studies: ids}
	s.render(w, r, http.StatusOK, "studies", page{Title: "Studies", Active: "studies", Content: v})
	return nil
}

// createStudy adds a study to the built-in repository.
func (s *studyPages) createStudy(w http.ResponseWriter, r *http.Request) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	study := datamodel.Study{ID: f.Get("study"), Name: f.Get("name"), Description: f.Get("description"), Organization: f.Get("organization")}
	if err := core.ValidID("the id of the study", study.ID); err != nil {
		return err
	}
	if study.ID == "all" {
		return core.NewError(core.CodeInvalid, `a study must not be called "all", because that path lists all studies`)
	}
	if err := s.ports.Studies.CreateStudy(r.Context(), study); err != nil {
		return err
	}
	s.see(w, s.link("studies", study.ID), "study-added")
	return nil
}

// analysisRow is one analysis of the list of a study.
type analysisRow struct {
	ID, Type  string
	State     datamodel.AnalysisState
	UpdatedAt time.Time
	Files     int
}

// studyView is the content of the page of a study.
type studyView struct {
	Base string
	Now  time.Time
	datamodel.Study
	Analyses []analysisRow
	Total    int
	// Writes is set if the caller may submit and publish; OnlyPublished if it sees only published analyses.
	Writes, OnlyPublished bool
	// NotIndexed is metadata.Ports.NotIndexed.
	NotIndexed    string
	Before, After string
	// Payload is a submission that failed because of Failed, with its violations in Lines.
	Payload string
	Failed  *core.Error
	Lines   []mark.Line
}

// readStudy returns the page of a study.
func (s *studyPages) readStudy(r *http.Request) (studyView, error) {
	id, err := api.PathParam(r, "study", "study")
	if err != nil {
		return studyView{}, err
	}
	study, err := s.ports.Studies.Study(r.Context(), id)
	if err != nil {
		return studyView{}, err
	}
	v := studyView{Base: s.base, Now: s.now(), Study: study, NotIndexed: s.ports.NotIndexed, Writes: api.RequireWrite(r, id) == nil}
	states := []datamodel.AnalysisState{datamodel.StatePublished, datamodel.StateUnpublished, datamodel.StateSuppressed}
	if api.RequireRead(r, id) != nil {
		states, v.OnlyPublished = states[:1], true
	}
	offset, err := strconv.Atoi(r.URL.Query().Get("offset"))
	if err != nil || offset < 0 {
		offset = 0
	}
	info, err := s.ports.Analyses.Page(r.Context(), id, states, offset, listed, func(a datamodel.Analysis) error {
		body := gjson.ParseBytes(a.Body)
		v.Analyses = append(v.Analyses, analysisRow{
			ID: a.ID, State: a.State, Type: body.Get("analysisType.name").String() + ", version " + body.Get("analysisType.version").String(),
			UpdatedAt: body.Get("updatedAt").Time(), Files: len(body.Get("files").Array()),
		})
		return nil
	})
	if err != nil {
		return studyView{}, err
	}
	v.Total = info.Total
	page := func(at int) string {
		return s.link("studies", id) + "?" + url.Values{"offset": {strconv.Itoa(at)}}.Encode()
	}
	if offset > 0 {
		v.Before = page(max(0, offset-listed))
	}
	if offset+len(v.Analyses) < info.Total {
		v.After = page(offset + listed)
	}
	return v, nil
}

func (s *studyPages) study(w http.ResponseWriter, r *http.Request) error {
	v, err := s.readStudy(r)
	if err != nil {
		return err
	}
	s.render(w, r, http.StatusOK, "study", page{Title: "Study " + v.ID, Active: "studies", Content: v})
	return nil
}

// submit submits an analysis. An invalid one is shown again with its violations.
func (s *studyPages) submit(w http.ResponseWriter, r *http.Request) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	v, err := s.readStudy(r)
	if err != nil {
		return err
	}
	v.Payload = f.Get("payload")
	if err := metadata.AcquirePayload(r, s.ports.Payloads, []byte(v.Payload)); err != nil {
		return err
	}
	if _, err := s.ports.Submissions.Submit(r.Context(), v.ID, []byte(v.Payload), f.Get("allowDuplicates") == "true"); err != nil {
		var failed *core.Error
		if !errors.As(err, &failed) || failed.Code != core.CodeInvalid && failed.Code != core.CodeConflict && failed.Code != core.CodeNotFound {
			return err
		}
		v.Failed, v.Lines = failed, mark.Lines(v.Payload, failed.Violations, "the analysis")
		s.render(w, r, http.StatusUnprocessableEntity, "study", page{Title: "Study " + v.ID, Active: "studies", Content: v})
		return nil
	}
	s.see(w, s.link("studies", v.ID), "submitted")
	return nil
}

// setState returns the handler that publishes, unpublishes or suppresses an analysis.
func (s *studyPages) setState(state datamodel.AnalysisState, notice string) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		study, err := api.PathParam(r, "study", "study")
		if err != nil {
			return err
		}
		id, err := api.PathParam(r, "id", "analysis id")
		if err != nil {
			return err
		}
		if err := s.ports.Submissions.SetState(r.Context(), study, id, state, false); err != nil {
			return err
		}
		s.see(w, s.link("studies", study), notice)
		return nil
	}
}

// suppressView is the content of the page that asks before an analysis is suppressed.
type suppressView struct {
	Base  string
	Study string
	ID    string
	State datamodel.AnalysisState
}

// confirmSuppress asks before an analysis is suppressed, which is final.
func (s *studyPages) confirmSuppress(w http.ResponseWriter, r *http.Request) error {
	study, err := api.PathParam(r, "study", "study")
	if err != nil {
		return err
	}
	id, err := api.PathParam(r, "id", "analysis id")
	if err != nil {
		return err
	}
	a, err := s.ports.Analyses.Analysis(r.Context(), study, id)
	if err != nil {
		return err
	}
	v := suppressView{Base: s.base, Study: study, ID: id, State: a.State}
	s.render(w, r, http.StatusOK, "suppress", page{Title: "Suppress an analysis", Active: "studies", Content: v})
	return nil
}
