package metadata

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/http/problem"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

const (
	// defaultEntities and maxEntities are the default and the maximum size of a page, which are Song's.
	defaultEntities = 10
	maxEntities     = 2000
)

// entityMembers are the members of an entity, which are also the filters of the list.
var entityMembers = []string{"id", "gnosId", "fileName", "projectCode", "access"}

// entities handles /entities, by which Score's server and client find files. Score has no token to send.
type entities struct{ port Entities }

func (h entities) register(r *api.Router) {
	r.Handle(http.MethodGet, "/entities", h.list, api.SpringParams(problem.ErrorIDQuery), api.Open())
	r.Handle(http.MethodGet, "/entities/{id}", h.get, api.LenientParams(), api.Open())
}

func (h entities) get(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "id", "id")
	if err != nil {
		return err
	}
	e, err := h.port.Entity(r.Context(), id)
	if err != nil {
		return fmt.Errorf("reading an entity: %w", err)
	}
	return api.WriteJSON(w, http.StatusOK, entityBody(e))
}

func entityBody(e datamodel.Entity) map[string]string {
	return map[string]string{"id": e.ObjectID, "gnosId": e.AnalysisID, "fileName": e.FileName, "projectCode": e.Study, "access": e.Access}
}

// entityPage is a page of Spring Data, of which Score reads content and last.
type entityPage struct {
	Content          []map[string]string `json:"content"`
	Pageable         pageable            `json:"pageable"`
	Last             bool                `json:"last"`
	TotalPages       int                 `json:"totalPages"`
	TotalElements    int                 `json:"totalElements"`
	Size             int                 `json:"size"`
	Number           int                 `json:"number"`
	Sort             pageSort            `json:"sort"`
	First            bool                `json:"first"`
	NumberOfElements int                 `json:"numberOfElements"`
	Empty            bool                `json:"empty"`
}

type pageable struct {
	Sort       pageSort `json:"sort"`
	Offset     int      `json:"offset"`
	PageNumber int      `json:"pageNumber"`
	PageSize   int      `json:"pageSize"`
	Paged      bool     `json:"paged"`
	Unpaged    bool     `json:"unpaged"`
}

type pageSort struct {
	Sorted   bool `json:"sorted"`
	Unsorted bool `json:"unsorted"`
	Empty    bool `json:"empty"`
}

// list handles GET /entities: a page of the files of all analyses, by object id.
func (h entities) list(w http.ResponseWriter, r *http.Request) error {
	q, err := api.LenientQueryOf(r)
	if err != nil {
		return err
	}
	fields, err := entityFieldsOf(q)
	if err != nil {
		return err
	}
	page, size := pageNumber(q, "page", 0, maxNumber/maxEntities), pageNumber(q, "size", 1, maxNumber)
	if size == 0 {
		size = defaultEntities
	}
	size = min(size, maxEntities)
	query := datamodel.EntityQuery{Offset: page * size, Limit: size}
	for i, into := range []*string{&query.ObjectID, &query.AnalysisID, &query.FileName, &query.Study, &query.Access} {
		if *into, err = q.Text(entityMembers[i]); err != nil {
			return err
		}
	}
	found, total, err := h.port.Entities(r.Context(), query)
	if err != nil {
		return fmt.Errorf("listing entities: %w", err)
	}
	sorted := pageSort{Sorted: true}
	body := entityPage{
		Content: make([]map[string]string, len(found)), Pageable: pageable{Sort: sorted, Offset: query.Offset, PageNumber: page, PageSize: size, Paged: true},
		Last: query.Offset+len(found) >= total, TotalPages: (total + size - 1) / size, TotalElements: total, Size: size, Number: page,
		Sort: sorted, First: page == 0, NumberOfElements: len(found), Empty: len(found) == 0,
	}
	for i, e := range found {
		body.Content[i] = entityBody(e)
		for _, name := range entityMembers {
			if len(fields) > 0 && !slices.Contains(fields, name) {
				delete(body.Content[i], name)
			}
		}
	}
	return api.WriteJSON(w, http.StatusOK, body)
}

// entityFieldsOf returns the members that the content of a page has, none for all.
func entityFieldsOf(q api.Query) ([]string, error) {
	fields, err := q.List("fields", maxListed)
	if err != nil {
		return nil, err
	}
	for _, name := range fields {
		if !slices.Contains(entityMembers, name) {
			return nil, &core.Error{
				Code: core.CodeInvalid, ErrorID: problem.ErrorIDFilter, Message: "unknown field " + api.QuoteValue(name),
				Hint: "fields takes " + strings.Join(entityMembers, ", "),
			}
		}
	}
	return fields, nil
}

// pageNumber returns a query parameter as a number from low to high, 0 when it is absent or is not one such number: Song ignores it then.
func pageNumber(q api.Query, name string, low, high int) int {
	n, err := q.Integer(name, low, high, 0)
	if err != nil {
		return 0
	}
	return n
}

// files handles the files of a study by their object ids.
type files struct{ port Files }

func (h files) register(r *api.Router) {
	const path = "/studies/{study}/files/{id}"
	writer := api.WriterOf("study")
	r.Handle(http.MethodGet, path, h.get, api.LenientParams(), api.Token())
	r.Handle(http.MethodPut, path, h.change, api.LenientParams(), writer)
	r.HandleMedia(http.MethodDelete, path, []string{"text/plain", media.JSON}, h.remove, api.LenientParams(), writer)
}

// get returns a file. The caller receives the same error for a file that it may not see as for one that does not exist.
func (h files) get(w http.ResponseWriter, r *http.Request) error {
	t, err := analysisTargetOf(r)
	if err != nil {
		return err
	}
	file, state, err := h.port.File(r.Context(), t.study, t.id)
	if err != nil {
		return fmt.Errorf("reading a file: %w", err)
	}
	if err := checkStates(r, t.study, state); err != nil {
		if core.CodeOf(err) == core.CodeForbidden {
			err = &core.Error{Code: core.CodeNotFound, ErrorID: problem.ErrorIDFileMissing, Message: "the study has no file of this object id", Err: err}
		}
		return err
	}
	api.WriteEncoded(w, file)
	return nil
}

// fileChangeBody is the response to a change of a file. Song has never unpublished an analysis for it since version 5.
type fileChangeBody struct {
	FileUpdateType        datamodel.FileChangeType `json:"fileUpdateType"`
	OriginalAnalysisState datamodel.AnalysisState  `json:"originalAnalysisState"`
	UnpublishedAnalysis   bool                     `json:"unpublishedAnalysis"`
	Message               string                   `json:"message"`
	OriginalFile          json.RawMessage          `json:"originalFile"`
}

func (h files) change(w http.ResponseWriter, r *http.Request) error {
	t, err := analysisTargetOf(r)
	if err != nil {
		return err
	}
	body, err := api.ReadJSON(r)
	if err != nil {
		return err
	}
	done, err := h.port.ChangeFile(r.Context(), t.study, t.id, body)
	if err != nil {
		return fmt.Errorf("changing a file: %w", err)
	}
	message := fmt.Sprintf("Updated file with objectId '%s' and analysisId '%s'", t.id, done.AnalysisID)
	if done.Type == datamodel.FileUnchanged {
		message = fmt.Sprintf("No update for file with objectId '%s' and analysisId '%s'", t.id, done.AnalysisID)
	}
	return api.WriteJSON(w, http.StatusOK, fileChangeBody{
		FileUpdateType: done.Type, OriginalAnalysisState: done.State, Message: message, OriginalFile: done.Before,
	})
}

// remove deletes the files that the path lists.
func (h files) remove(w http.ResponseWriter, r *http.Request) error {
	study, err := api.PathParam(r, "study", "study")
	if err != nil {
		return err
	}
	ids, err := api.PathParams(r, "id", "id", maxListed)
	if err != nil {
		return err
	}
	if err := h.port.DeleteFiles(r.Context(), study, ids); err != nil {
		return fmt.Errorf("deleting files: %w", err)
	}
	api.WriteWhole(w, http.StatusOK, "text/plain; charset=utf-8", []byte("OK"))
	return nil
}
