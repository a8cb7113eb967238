package metadata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/http/problem"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// listOfStudies is the segment below /studies that lists them, so that no study can have it as its id.
const listOfStudies = "all"

// memberInfo is the member of a study that contains any additional members.
const memberInfo = "info"

// messageBody describes what was done.
type messageBody struct {
	Message string `json:"message"`
}

// studies handles /studies.
type studies struct{ port Studies }

func (s studies) register(r *api.Router) {
	r.Handle(http.MethodGet, "/studies/"+listOfStudies, s.list, api.LenientParams(), api.Token())
	r.Handle(http.MethodGet, "/studies/{study}", s.get, api.LenientParams(), api.Token())
	r.Handle(http.MethodPost, "/studies/{study}", s.create, api.LenientParams(), api.System())
}

func (s studies) list(w http.ResponseWriter, r *http.Request) error {
	ids, err := s.port.Studies(r.Context())
	if err != nil {
		return fmt.Errorf("listing studies: %w", err)
	}
	if ids == nil {
		ids = []string{}
	}
	return api.WriteJSON(w, http.StatusOK, ids)
}

func (s studies) get(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "study", "study")
	if err != nil {
		return err
	}
	study, err := s.port.Study(r.Context(), id)
	if err != nil {
		return fmt.Errorf("reading a study: %w", err)
	}
	return api.WriteJSON(w, http.StatusOK, withInfo(study))
}

// withInfo returns a study that has info, which Song's clients expect.
func withInfo(study datamodel.Study) datamodel.Study {
	if study.Info == nil {
		study.Info = json.RawMessage("{}")
	}
	return study
}

// create adds the study of the path and returns it. The body, which describes it, is optional.
func (s studies) create(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "study", "study")
	if err != nil {
		return err
	}
	body, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	study, err := studyOf(id, body, r.Header)
	if err != nil {
		return err
	}
	if err := s.port.CreateStudy(r.Context(), study); err != nil {
		return fmt.Errorf("adding a study: %w", err)
	}
	return api.WriteJSON(w, http.StatusOK, createdStudy{
		Study: withInfo(study), Message: fmt.Sprintf("Successfully created study '%s'", id),
	})
}

// createdStudy is a study with a message that describes what was done, as in Song.
type createdStudy struct {
	datamodel.Study

	Message string `json:"message"`
}

// studyOf reads the study that a body describes.
func studyOf(id string, body []byte, header http.Header) (datamodel.Study, error) {
	study := datamodel.Study{ID: id}
	if id == listOfStudies {
		return study, core.NewError(core.CodeInvalid, fmt.Sprintf("a study must not be called %q, because that path lists all studies", id))
	}
	if len(bytes.Trim(body, " \t\r\n")) == 0 {
		return study, nil
	}
	if err := media.JSONContent(header); err != nil {
		return study, err
	}
	members, err := api.DecodeObject(body)
	if err != nil {
		return study, err
	}
	if err := members.Only("studyId", "name", "organization", "description", memberInfo); err != nil {
		return study, err
	}
	if members.Has(memberInfo) {
		if study.Info = members[memberInfo]; study.Info[0] != '{' {
			return study, api.MemberError(memberInfo, "must be an object")
		}
	}
	var given string
	for _, m := range []struct {
		name string
		into *string
	}{
		{"studyId", &given},
		{"name", &study.Name},
		{"organization", &study.Organization},
		{"description", &study.Description},
	} {
		if *m.into, err = members.Text(m.name); err != nil {
			return study, err
		}
	}
	if given != "" && given != id {
		return study, &core.Error{
			Code: core.CodeConflict, ErrorID: problem.ErrorIDStudyMismatch,
			Message: fmt.Sprintf("the body is of study %s, the path of study %s", api.QuoteValue(given), api.QuoteValue(id)),
		}
	}
	return study, nil
}
