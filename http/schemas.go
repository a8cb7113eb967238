package http

import (
	"fmt"
	"math"
	"net/http"
	"strconv"

	"tutti/internal/core"
)

const (
	defaultAnalysisTypes = 20
	maxAnalysisTypes     = 1000
	// maxListed is the largest number of names or versions in a filter.
	maxListed = 1000
	// maxNumber bounds offsets and versions: the databases keep them in 32 bits.
	maxNumber = math.MaxInt32
)

// routeSchemas routes the analysis types (CONTRACT section 7).
func (h *Handler) routeSchemas() {
	h.handle(http.MethodPost, "/schemas", h.registerAnalysisType, allowParams(), system())
	h.handle(http.MethodGet, "/schemas", h.listAnalysisTypes,
		allowParams("hideSchema", "unrenderedOnly", "limit", "offset", "names", "versions", "sort", "sortOrder"), token())
	h.handle(http.MethodGet, "/schemas/registration", h.getRegistrationSchema, allowParams(), token())
	h.handle(http.MethodGet, "/schemas/{name}", h.getAnalysisType, allowParams("version", "unrenderedOnly"), token())
	h.handle(http.MethodGet, "/schemas/{name}/versions/{version}", h.getAnalysisTypeVersion,
		allowParams("unrenderedOnly"), token())
}

func (h *Handler) registerAnalysisType(w http.ResponseWriter, r *http.Request) error {
	body, err := h.readJSON(r)
	if err != nil {
		return err
	}
	registered, err := h.ports.AnalysisTypes.Register(r.Context(), body)
	if err != nil {
		return fmt.Errorf("registering an analysis type: %w", err)
	}
	writeEncoded(w, registered)
	return nil
}

func (h *Handler) getRegistrationSchema(w http.ResponseWriter, _ *http.Request) error {
	writeEncoded(w, h.ports.AnalysisTypes.MetaSchema())
	return nil
}

// getAnalysisType answers one version, or without version the latest and all versions beside it.
func (h *Handler) getAnalysisType(w http.ResponseWriter, r *http.Request) error {
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	version, err := q.integer("version", 1, maxNumber, 0)
	if err != nil {
		return err
	}
	return h.answerAnalysisType(w, r, version)
}

func (h *Handler) getAnalysisTypeVersion(w http.ResponseWriter, r *http.Request) error {
	given, err := pathParam(r, "version", "version")
	if err != nil {
		return err
	}
	version, err := versionOf("version", given)
	if err != nil {
		return err
	}
	return h.answerAnalysisType(w, r, version)
}

func (h *Handler) answerAnalysisType(w http.ResponseWriter, r *http.Request, version int) error {
	name, err := pathParam(r, "name", "name")
	if err != nil {
		return err
	}
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	unrendered, err := q.lenientBoolean("unrenderedOnly")
	if err != nil {
		return err
	}
	stream := newListStream(w, r, "")
	err = h.ports.AnalysisTypes.Type(r.Context(), name, version, unrendered, stream.add)
	if err != nil {
		return stream.fail(fmt.Errorf("reading an analysis type: %w", err))
	}
	return stream.end("")
}

func (h *Handler) listAnalysisTypes(w http.ResponseWriter, r *http.Request) error {
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	hideSchema, err := q.lenientBoolean("hideSchema")
	if err != nil {
		return err
	}
	unrendered, err := q.lenientBoolean("unrenderedOnly")
	if err != nil {
		return err
	}
	query, err := analysisTypeQueryOf(q)
	if err != nil {
		return err
	}
	stream := newListStream(w, r, "")
	err = h.ports.AnalysisTypes.List(r.Context(), query, hideSchema, unrendered, stream.add)
	if err != nil {
		return stream.fail(fmt.Errorf("listing analysis types: %w", err))
	}
	return stream.end("")
}

// analysisTypeQueryOf reads which analysis types are listed, and in which order: by default the newest first.
func analysisTypeQueryOf(q query) (core.AnalysisTypeQuery, error) {
	var a core.AnalysisTypeQuery
	var err error
	if a.Limit, err = q.integer("limit", 1, maxAnalysisTypes, defaultAnalysisTypes); err != nil {
		return a, err
	}
	if a.Offset, err = q.integer("offset", 0, maxNumber, 0); err != nil {
		return a, err
	}
	if a.Names, err = q.list("names", maxListed); err != nil {
		return a, err
	}
	for _, name := range a.Names {
		if err := core.ValidID("query parameter names", name); err != nil {
			return a, err
		}
	}
	versions, err := q.list("versions", maxListed)
	if err != nil {
		return a, err
	}
	for _, given := range versions {
		version, err := versionOf("query parameter versions", given)
		if err != nil {
			return a, err
		}
		a.Versions = append(a.Versions, version)
	}
	if a.Sort, err = q.choice("sort", "", "version", "name"); err != nil {
		return a, err
	}
	order, err := q.choice("sortOrder", "desc", "asc", "desc")
	// Without Sort the newest comes first of itself.
	a.Descending = (order == "desc") == (a.Sort != "")
	return a, err
}

// versionOf reads a version; what names it in the message.
func versionOf(what, given string) (int, error) {
	version, err := strconv.Atoi(given)
	if err != nil || version < 1 || version > maxNumber {
		return 0, core.NewError(core.CodeInvalid,
			fmt.Sprintf("%s must be a whole number from 1 to %d, not %s", what, maxNumber, quoteValue(given)))
	}
	return version, nil
}
