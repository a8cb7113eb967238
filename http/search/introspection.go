package search

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"tutti/http/api"
	"tutti/http/problem"
	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

const (
	pathIntrospection = "/introspection"
	pathFields        = pathIntrospection + "/fields"
	pathSQON          = pathIntrospection + "/sqon"
	// paramCatalogue names the path parameter for the id of a catalogue.
	paramCatalogue = "catalogueId"
	// maxListedIDs is how many catalogues a hint names.
	maxListedIDs = 10
)

// catalogues handles what concerns the catalogues as a whole, and finds the one that a path is about.
type catalogues struct {
	router  *api.Router
	answers *catalogueAnswers
}

// register adds the routes that describe the catalogues. They are public, but meta.authFiltered depends on the caller.
func (h *catalogues) register(r *api.Router) {
	r.Handle(http.MethodGet, pathIntrospection, h.list, api.AllowParams(), api.Open())
	r.Handle(http.MethodGet, pathFields, h.describeOnly, api.AllowParams(), api.LenientToken())
	r.Handle(http.MethodGet, pathSQON, describeSQON(), api.AllowParams(), api.Open())
	r.Handle(http.MethodGet, pathIntrospection+"/{"+paramCatalogue+"}", h.describeNamed, api.AllowParams(), api.LenientToken())
	// Paths of existing clients.
	r.Handle(http.MethodGet, pathIntrospection+"/", h.list, api.AllowParams(), api.Open())
	r.HandleFunc(http.MethodGet, patternCatalogue+strings.TrimPrefix(pathIntrospection, "/"), h.unlessFailed(
		api.RequireAccess(api.LenientToken(), api.Negotiating([]string{api.ContentTypeJSON}, h.describeNamed, api.AllowParams())),
	))
}

// list answers GET /introspection.
func (h *catalogues) list(w http.ResponseWriter, r *http.Request) error {
	s := h.answers.current().summary()
	if !api.NotModified(w, r, s.tag) {
		api.WriteEncoded(w, s.body)
	}
	return nil
}

// describeSQON answers GET /introspection/sqon.
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

// describeNamed answers GET /introspection/{catalogueId}.
func (h *catalogues) describeNamed(w http.ResponseWriter, r *http.Request) error {
	answers := h.answers.current()
	c, err := h.named(r, answers.set)
	if err != nil {
		return err
	}
	h.describe(w, r, answers.of(c))
	return nil
}

// named returns the catalogue of a set that the path of a request names.
func (h *catalogues) named(r *http.Request, set *core.CatalogueSet) (*core.Catalogue, error) {
	name, err := api.PathParam(r, paramCatalogue, paramCatalogue)
	if err != nil {
		return nil, err
	}
	switch called := cataloguesNamed(set, name); len(called) {
	case 1:
		return called[0], nil
	case 0:
		return nil, &core.Error{
			Code: core.CodeNotFound, Message: "there is no such catalogue",
			Hint: "GET " + h.router.BasePath() + pathIntrospection + " lists all catalogues",
		}
	default:
		return nil, ambiguous(name, called)
	}
}

// describeOnly answers GET /introspection/fields, which is there only while there is one catalogue.
func (h *catalogues) describeOnly(w http.ResponseWriter, r *http.Request) error {
	answers := h.answers.current()
	only, err := h.only(answers.set, introspectionPath)
	if err != nil {
		return err
	}
	h.describe(w, r, answers.of(only))
	return nil
}

// only returns the catalogue of a set that has exactly one. For any other the error names the path of each catalogue, as
// pathOf has it without the base path, which leads where this one would.
func (h *catalogues) only(set *core.CatalogueSet, pathOf func(*core.Catalogue) string) (*core.Catalogue, error) {
	if only := onlyOf(set); only != nil {
		return only, nil
	}
	absent := &core.Error{Code: core.CodeNotFound, Message: "this path is there only while there is exactly one catalogue, and there is none"}
	if all := set.Catalogues; len(all) > 0 {
		absent.Message = fmt.Sprintf("this path is there only while there is exactly one catalogue, and there are %d", len(all))
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

// describe writes the detail of a catalogue, with 200 also for a failed one.
func (h *catalogues) describe(w http.ResponseWriter, r *http.Request, c *catalogueAnswer) {
	w.Header().Add("Vary", api.HeaderAuthorization)
	if c.problem != nil {
		if !api.NotModified(w, r, c.failed.tag) {
			api.WriteEncoded(w, c.failed.body)
		}
		return
	}
	meta := c.metaFor(isFiltered(r, c))
	if !api.NotModified(w, r, meta.tag) {
		api.WriteWhole(w, http.StatusOK, api.ContentTypeJSON, c.headAt(h.router.Now(), meta), c.tail)
	}
}

// isFiltered reports whether the caller sees less than all of a catalogue: an access rule applies to all but the system, and without
// one the default access may keep the caller out.
func isFiltered(r *http.Request, c *catalogueAnswer) bool {
	caller, authenticated := api.CallerOf(r.Context())
	if !c.restricted {
		return !c.defaultAccess.Allows(caller)
	}
	if !authenticated {
		return true
	}
	_, bound := api.RestrictedCaller(r)
	return bound
}

// cataloguesNamed returns the catalogue that has a name for its id, else those that have it for their document type: a name
// that several share means none of them.
func cataloguesNamed(set *core.CatalogueSet, name string) []*core.Catalogue {
	if c := set.ByID(name); c != nil {
		return []*core.Catalogue{c}
	}
	return set.ByDocumentType(name)
}

// onlyOf returns the catalogue of a set that has exactly one, nil for any other.
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

// ambiguousTypeError refuses a document type that several catalogues have.
type ambiguousTypeError struct {
	cause  *core.Error
	shared problem.AmbiguousType
}

func ambiguous(documentType string, called []*core.Catalogue) error {
	cause := &core.Error{
		Code: problem.CodeAmbiguousType, Message: fmt.Sprintf("documentType %s is that of %d catalogues", api.QuoteValue(documentType), len(called)),
		Hint: "use the id of a catalogue",
	}
	shared := problem.AmbiguousType{DocumentType: documentType, Error: problem.AmbiguousTypeError{Code: cause.Code, Message: cause.Message}}
	for _, c := range called {
		shared.MatchingCatalogueIDs = append(shared.MatchingCatalogueIDs, c.ID)
	}
	cause.Hint += ": " + strings.Join(shared.MatchingCatalogueIDs[:min(len(called), maxListedIDs)], ", ")
	return &ambiguousTypeError{cause: cause, shared: shared}
}

// Error returns the text of the cause.
func (e *ambiguousTypeError) Error() string { return e.cause.Error() }

// Unwrap returns the Error that has the code.
func (e *ambiguousTypeError) Unwrap() error { return e.cause }

// Complete adds the catalogues that share the type to a problem.
func (e *ambiguousTypeError) Complete(p *problem.Problem) { p.AmbiguousType = &e.shared }
