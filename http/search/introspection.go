package search

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/http/problem"
	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

const (
	pathIntrospection = "/introspection"
	pathFields        = pathIntrospection + "/fields"
	pathSQON          = pathIntrospection + "/sqon"
	// paramCatalogue names the path parameter that holds a catalogue id or a document type.
	paramCatalogue = "catalogueId"
	// maxListedIDs limits the catalogues named in a hint.
	maxListedIDs = 10
	// paramValues names the query parameter that requests values, at most maxValues of a field.
	paramValues = "values"
	maxValues   = 100
)

// catalogues serves the introspection routes and resolves the catalogue of a path.
type catalogues struct {
	router    *api.Router
	responses *responseCache
	data      Data
}

// register adds the routes that describe the catalogues. They are public, but meta.authFiltered depends on the caller.
func (h *catalogues) register(r *api.Router) {
	r.Handle(http.MethodGet, pathIntrospection, h.list, api.StrictParams(), api.Open())
	r.Handle(http.MethodGet, pathFields, h.describeOnly, api.StrictParams(), api.LenientToken())
	r.Handle(http.MethodGet, pathSQON, describeSQON(), api.StrictParams(), api.Open())
	r.Handle(http.MethodGet, pathIntrospection+"/{"+paramCatalogue+"}", h.describeNamed, api.StrictParams(), api.LenientToken())
	// Paths that existing clients of Arranger use.
	r.Handle(http.MethodGet, pathIntrospection+"/", h.list, api.StrictParams(), api.Open())
	r.HandleFunc(http.MethodGet, patternCatalogue+strings.TrimPrefix(pathIntrospection, "/"), h.unlessFailed(
		api.RequireAccess(api.LenientToken(), api.Negotiating([]string{media.JSON}, h.describeNamed, api.StrictParams())),
	))
}

// list handles GET /introspection.
func (h *catalogues) list(w http.ResponseWriter, r *http.Request) error {
	s := h.responses.current().summary()
	if !api.NotModified(w, r, s.tag) {
		api.WriteEncoded(w, s.body)
	}
	return nil
}

// describeSQON handles GET /introspection/sqon.
func describeSQON() api.HandlerFunc {
	body := sqon.Description()
	tag := api.WeakTag(body)
	return func(w http.ResponseWriter, r *http.Request) error {
		if !api.NotModified(w, r, tag) {
			api.WriteEncoded(w, body)
		}
		return nil
	}
}

// describeNamed handles GET /introspection/{catalogueId}.
func (h *catalogues) describeNamed(w http.ResponseWriter, r *http.Request) error {
	responses := h.responses.current()
	c, err := h.named(r, responses.set)
	if err != nil {
		return err
	}
	return h.describe(w, r, responses.responsesFor(c))
}

// named returns the catalogue of a set that the path of a request names.
func (h *catalogues) named(r *http.Request, set *core.CatalogueSet) (*core.Catalogue, error) {
	name, err := api.PathParam(r, paramCatalogue, paramCatalogue)
	if err != nil {
		return nil, err
	}
	switch matching := cataloguesNamed(set, name); len(matching) {
	case 1:
		return matching[0], nil
	case 0:
		return nil, &core.Error{
			Code: core.CodeNotFound, Message: "catalogue not found",
			Hint: "GET " + h.router.BasePath() + pathIntrospection + " lists all catalogues",
		}
	default:
		return nil, ambiguous(name, matching)
	}
}

// describeOnly handles GET /introspection/fields, which exists only if there is exactly one catalogue.
func (h *catalogues) describeOnly(w http.ResponseWriter, r *http.Request) error {
	responses := h.responses.current()
	only, err := h.only(responses.set, introspectionPath)
	if err != nil {
		return err
	}
	return h.describe(w, r, responses.responsesFor(only))
}

// only returns the only catalogue of a set. For another number the error lists the equivalent path of each catalogue, which pathOf
// returns without the base path.
func (h *catalogues) only(set *core.CatalogueSet, pathOf func(*core.Catalogue) string) (*core.Catalogue, error) {
	if only := onlyOf(set); only != nil {
		return only, nil
	}
	absent := &core.Error{Code: core.CodeNotFound, Message: "this path exists only with exactly one catalogue; there is none"}
	if all := set.Catalogues; len(all) > 0 {
		absent.Message = fmt.Sprintf("this path exists only with exactly one catalogue; there are %d", len(all))
		paths := make([]string, 0, maxListedIDs)
		for _, c := range all[:min(len(all), maxListedIDs)] {
			paths = append(paths, h.router.BasePath()+pathOf(c))
		}
		absent.Hint = "use the path of a catalogue: " + strings.Join(paths, ", ")
		if len(all) > maxListedIDs {
			absent.Hint += " and others, which GET " + h.router.BasePath() + pathIntrospection + " lists"
		}
	}
	return nil, absent
}

// describe writes the detail of a catalogue, with status 200 even if the catalogue has failed.
func (h *catalogues) describe(w http.ResponseWriter, r *http.Request, c *catalogueResponses) error {
	q, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	most, err := q.Integer(paramValues, 1, maxValues, 0)
	if err != nil {
		return err
	}
	w.Header().Add("Vary", api.HeaderAuthorization)
	if c.problem != nil {
		if !api.NotModified(w, r, c.failed.tag) {
			api.WriteEncoded(w, c.failed.body)
		}
		return nil
	}
	detail := c.detailFor(api.HidesDocuments(r, c.catalogue))
	middle, tag, tail := detail.meta, detail.tag, detail.tail
	if at := h.data.IndexedAt(c.catalogue.ID); !at.IsZero() {
		middle = `","dataIndexedAt":"` + at.UTC().Format(generatedAtLayout) + middle
		tag = api.WeakTag([]byte(tag), []byte(middle))
	}
	if most > 0 {
		caller, _ := api.CallerOf(r.Context())
		values, err := h.data.Values(r.Context(), c.catalogue.ID, caller, nil, most)
		if err != nil {
			api.NoteError(r, fmt.Errorf("counting values: %w", err))
			middle = strings.TrimSuffix(middle, "},") + `,"valuesNote":` + string(rendered("not counted: "+core.MessageOf(err))) + "},"
		}
		tail = detailTailOf(detail.catalogue, values)
		tag = api.WeakTag(c.head, []byte(middle), tail)
	}
	if !api.NotModified(w, r, tag) {
		api.WriteWhole(w, http.StatusOK, media.JSON, c.headAt(h.router.Now(), middle), tail)
	}
	return nil
}

// cataloguesNamed returns the catalogue with this id, else all catalogues with this document type. More than one is ambiguous.
func cataloguesNamed(set *core.CatalogueSet, name string) []*core.Catalogue {
	if c := set.ByID(name); c != nil {
		return []*core.Catalogue{c}
	}
	return set.ByDocumentType(name)
}

// onlyOf returns the catalogue of a set with exactly one, else nil.
func onlyOf(set *core.CatalogueSet) *core.Catalogue {
	if len(set.Catalogues) != 1 {
		return nil
	}
	return set.Catalogues[0]
}

// introspectionPath, graphqlPath and downloadPath return paths of a catalogue without the base path.
func introspectionPath(c *core.Catalogue) string {
	return pathIntrospection + "/" + url.PathEscape(c.ID)
}

func graphqlPath(c *core.Catalogue) string { return "/" + url.PathEscape(c.ID) + "/" + segmentGraphQL }

func downloadPath(c *core.Catalogue) string {
	return "/" + url.PathEscape(c.ID) + "/" + segmentDownload
}

// ambiguousTypeError reports a document type that several catalogues share.
type ambiguousTypeError struct {
	cause  *core.Error
	shared problem.AmbiguousType
}

func ambiguous(documentType string, matching []*core.Catalogue) error {
	cause := &core.Error{
		Code: problem.CodeAmbiguousType, Message: fmt.Sprintf("%d catalogues have the documentType %s", len(matching), api.QuoteValue(documentType)),
		Hint: "use the id of a catalogue",
	}
	shared := problem.AmbiguousType{DocumentType: documentType, Error: problem.AmbiguousTypeError{Code: cause.Code, Message: cause.Message}}
	for _, c := range matching {
		shared.MatchingCatalogueIDs = append(shared.MatchingCatalogueIDs, c.ID)
	}
	cause.Hint += ": " + strings.Join(shared.MatchingCatalogueIDs[:min(len(matching), maxListedIDs)], ", ")
	return &ambiguousTypeError{cause: cause, shared: shared}
}

// Error implements error.
func (e *ambiguousTypeError) Error() string { return e.cause.Error() }

// Unwrap returns the cause, a *core.Error.
func (e *ambiguousTypeError) Unwrap() error { return e.cause }

// Complete adds the ids of the matching catalogues to a problem.
func (e *ambiguousTypeError) Complete(p *problem.Problem) { p.AmbiguousType = &e.shared }
