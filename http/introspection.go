package http

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

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

// routeIntrospection adds the routes that describe the catalogues (CONTRACT section 2). They are public, but meta.authFiltered
// depends on the caller.
func (h *Handler) routeIntrospection() {
	h.handle(http.MethodGet, pathIntrospection, h.listCatalogues, allowParams(), open())
	h.handle(http.MethodGet, pathFields, h.describeOnlyCatalogue, allowParams(), lenientToken())
	h.handle(http.MethodGet, pathSQON, h.describeSQON(), allowParams(), open())
	h.handle(http.MethodGet, pathIntrospection+"/{"+paramCatalogue+"}", h.describeCatalogue, allowParams(), lenientToken())
	// Paths of existing clients.
	h.handle(http.MethodGet, pathIntrospection+"/", h.listCatalogues, allowParams(), open())
	h.router.MethodFunc(http.MethodGet, h.cfg.BasePath+patternCatalogue+strings.TrimPrefix(pathIntrospection, "/"), h.unlessCatalogueFailed(
		h.requireAccess(lenientToken(), h.negotiating([]string{contentTypeJSON}, h.describeCatalogue, allowParams())),
	))
}

// listCatalogues answers GET /introspection.
func (h *Handler) listCatalogues(w http.ResponseWriter, r *http.Request) error {
	s := h.catalogues.current().summary()
	if !notModified(w, r, s.tag) {
		writeEncoded(w, s.body)
	}
	return nil
}

// describeSQON answers GET /introspection/sqon.
func (h *Handler) describeSQON() handlerFunc {
	body := sqon.Description()
	tag := weakTag(body)
	return func(w http.ResponseWriter, r *http.Request) error {
		if !notModified(w, r, tag) {
			writeEncoded(w, body)
		}
		return nil
	}
}

// describeCatalogue answers GET /introspection/{catalogueId}.
func (h *Handler) describeCatalogue(w http.ResponseWriter, r *http.Request) error {
	answers := h.catalogues.current()
	c, err := h.pathCatalogue(r, answers.set)
	if err != nil {
		return err
	}
	h.describe(w, r, answers.of(c))
	return nil
}

// pathCatalogue returns the catalogue of a set that the path of a request names.
func (h *Handler) pathCatalogue(r *http.Request, set *core.CatalogueSet) (*core.Catalogue, error) {
	name, err := pathParam(r, paramCatalogue, paramCatalogue)
	if err != nil {
		return nil, err
	}
	switch called := cataloguesNamed(set, name); len(called) {
	case 1:
		return called[0], nil
	case 0:
		return nil, &core.Error{
			Code: core.CodeNotFound, Message: "there is no such catalogue",
			Hint: "GET " + h.cfg.BasePath + pathIntrospection + " lists all catalogues",
		}
	default:
		return nil, ambiguous(name, called)
	}
}

// describeOnlyCatalogue answers GET /introspection/fields, which is there only while there is one catalogue.
func (h *Handler) describeOnlyCatalogue(w http.ResponseWriter, r *http.Request) error {
	answers := h.catalogues.current()
	only, err := h.onlyCatalogue(answers.set, introspectionPath)
	if err != nil {
		return err
	}
	h.describe(w, r, answers.of(only))
	return nil
}

// onlyCatalogue returns the catalogue of a set that has exactly one. For any other the error names the path of each catalogue, as
// pathOf has it without the base path, which leads where this one would.
func (h *Handler) onlyCatalogue(set *core.CatalogueSet, pathOf func(*core.Catalogue) string) (*core.Catalogue, error) {
	if only := onlyOf(set); only != nil {
		return only, nil
	}
	absent := &core.Error{Code: core.CodeNotFound, Message: "this path is there only while there is exactly one catalogue, and there is none"}
	if all := set.Catalogues; len(all) > 0 {
		absent.Message = fmt.Sprintf("this path is there only while there is exactly one catalogue, and there are %d", len(all))
		paths := make([]string, 0, maxListedIDs)
		for _, c := range all[:min(len(all), maxListedIDs)] {
			paths = append(paths, h.cfg.BasePath+pathOf(c))
		}
		absent.Hint = "use the path of a catalogue: " + strings.Join(paths, ", ")
		if len(all) > maxListedIDs {
			absent.Hint += " and others, which GET " + h.cfg.BasePath + pathIntrospection + " lists"
		}
	}
	return nil, absent
}

// describe writes the detail of a catalogue, with 200 also for a failed one.
func (h *Handler) describe(w http.ResponseWriter, r *http.Request, c *catalogueAnswer) {
	w.Header().Add("Vary", headerAuthorization)
	if c.problem != nil {
		if !notModified(w, r, c.failed.tag) {
			writeEncoded(w, c.failed.body)
		}
		return
	}
	meta := c.metaFor(h.isFiltered(r, c))
	if !notModified(w, r, meta.tag) {
		writeWhole(w, http.StatusOK, contentTypeJSON, c.headAt(h.cfg.Now(), meta), c.tail)
	}
}

// isFiltered reports whether the caller sees less than all of a catalogue: an access rule applies to all but the system, and without
// one the default access may keep the caller out.
func (h *Handler) isFiltered(r *http.Request, c *catalogueAnswer) bool {
	if !c.restricted {
		caller, _ := callerOf(r.Context())
		return !c.defaultAccess.Allows(caller)
	}
	if h.ports.Authenticator == nil {
		return true
	}
	_, bound := h.restrictedCaller(r)
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
	shared ambiguousType
}

// ambiguousType is what the problem of a shared document type has beside the others, under the names of Arranger's answer.
type ambiguousType struct {
	DocumentType         string              `json:"documentType"`
	MatchingCatalogueIDs []string            `json:"matchingCatalogueIds"`
	Error                ambiguousTypeDetail `json:"error"`
}

type ambiguousTypeDetail struct {
	Code    core.Code `json:"code"`
	Message string    `json:"message"`
}

func ambiguous(documentType string, called []*core.Catalogue) error {
	cause := &core.Error{
		Code: codeAmbiguousType, Message: fmt.Sprintf("documentType %s is that of %d catalogues", quoteValue(documentType), len(called)),
		Hint: "use the id of a catalogue",
	}
	shared := ambiguousType{DocumentType: documentType, Error: ambiguousTypeDetail{Code: cause.Code, Message: cause.Message}}
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
