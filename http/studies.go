package http

import (
	"bytes"
	"fmt"
	"net/http"

	"tutti/internal/core"
)

// listOfStudies is the segment below /studies that lists them, so that no study can have it as its id.
const listOfStudies = "all"

// studyBody is a study as Song's clients get it. Info is where Song keeps members that it does not know; there are none.
type studyBody struct {
	core.Study
	Info struct{} `json:"info"`
}

// messageBody says in words what was done.
type messageBody struct {
	Message string `json:"message"`
}

// routeStudies routes the built-in metadata repository (CONTRACT section 8).
func (h *Handler) routeStudies() {
	h.handle(http.MethodGet, "/isAlive", h.isAlive, allowParams(), open())
	h.handle(http.MethodGet, "/studies/"+listOfStudies, h.listStudies, allowParams(), token())
	h.handle(http.MethodGet, "/studies/{study}", h.getStudy, allowParams(), token())
	h.handle(http.MethodPost, "/studies/{study}", h.createStudy, allowParams(), system())
	h.handle(http.MethodPost, "/studies/{study}/", h.createStudy, allowParams(), system())
	h.routeAnalyses()
	h.routeSubmissions()
}

// isAlive answers what Song's clients ask before anything else.
func (h *Handler) isAlive(w http.ResponseWriter, _ *http.Request) error {
	writeEncoded(w, []byte("true"))
	return nil
}

func (h *Handler) listStudies(w http.ResponseWriter, r *http.Request) error {
	ids, err := h.ports.Studies.Studies(r.Context())
	if err != nil {
		return fmt.Errorf("listing studies: %w", err)
	}
	if ids == nil {
		ids = []string{}
	}
	h.writeJSON(w, r, http.StatusOK, contentTypeJSON, ids)
	return nil
}

func (h *Handler) getStudy(w http.ResponseWriter, r *http.Request) error {
	id, err := pathParam(r, "study", "study")
	if err != nil {
		return err
	}
	study, err := h.ports.Studies.Study(r.Context(), id)
	if err != nil {
		return fmt.Errorf("reading a study: %w", err)
	}
	h.writeJSON(w, r, http.StatusOK, contentTypeJSON, studyBody{Study: study})
	return nil
}

// createStudy adds the study of the path; what the body may say of it is optional. It answers the study.
func (h *Handler) createStudy(w http.ResponseWriter, r *http.Request) error {
	id, err := pathParam(r, "study", "study")
	if err != nil {
		return err
	}
	body, err := h.readBody(r)
	if err != nil {
		return err
	}
	study, err := studyOf(id, body, r.Header)
	if err != nil {
		return err
	}
	if err := h.ports.Studies.CreateStudy(r.Context(), study); err != nil {
		return fmt.Errorf("adding a study: %w", err)
	}
	h.writeJSON(w, r, http.StatusOK, contentTypeJSON, studyBody{Study: study})
	return nil
}

// studyOf reads the study that a body describes. Members that a study does not have are passed over: Song's clients send
// info, among others.
func studyOf(id string, body []byte, header http.Header) (core.Study, error) {
	study := core.Study{ID: id}
	if id == listOfStudies {
		return study, core.NewError(core.CodeInvalid, fmt.Sprintf("no study can be called %q: its path lists all studies", id))
	}
	if len(bytes.Trim(body, " \t\r\n")) == 0 {
		return study, nil
	}
	if err := jsonContent(header); err != nil {
		return study, err
	}
	members, err := decodeObject(body)
	if err != nil {
		return study, err
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
		if *m.into, err = members.text(m.name); err != nil {
			return study, err
		}
	}
	if given != "" && given != id {
		return study, &core.Error{
			Code: core.CodeConflict, ErrorID: errorIDStudyMismatch,
			Message: fmt.Sprintf("the body is of study %s, the path of study %s", quoteValue(given), quoteValue(id)),
		}
	}
	return study, nil
}
