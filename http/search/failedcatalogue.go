package search

import (
	"net/http"
	"net/url"
	"strings"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/internal/core"
)

// Path segments of search routes, after a catalogue id or, with exactly one catalogue, without it.
const (
	segmentGraphQL  = "graphql"
	segmentDownload = "download"
)

// ReservedIDs returns, sorted, the names that cannot be catalogue ids: the first segments of other routes, and the names used below
// /introspection.
func ReservedIDs() []string {
	return []string{
		".well-known", "api-docs", "backup", "console", "dead-letters", segmentDownload, "entities", "export", "fields", segmentGraphQL, "health", "index", "introspection", "isAlive", "jobs",
		"keys", "mcp", "metrics", "notifications", "openapi.json", "ping", "ready", "repositories", "schemas", "sqon", "studies", "submit", "v2",
	}
}

// YieldingIDs returns, sorted, the first segments of routes that are newer than catalogues of such names: a catalogue keeps its id and all
// paths below it.
func YieldingIDs() []string { return []string{strings.TrimPrefix(api.PathServiceInfo, "/")} }

// failedAt returns the failed catalogue that a path addresses by id or document type, below /introspection, or without an id if it
// is the only catalogue; otherwise nil.
func (h *catalogues) failedAt(path string) *catalogueResponses {
	rest, ok := strings.CutPrefix(path, h.router.BasePath()+"/")
	if !ok {
		return nil
	}
	responses := h.responses.current()
	segment, below, _ := strings.Cut(rest, "/")
	var c *core.Catalogue
	switch {
	case segment == segmentGraphQL || segment == segmentDownload:
		c = onlyOf(responses.set)
	case "/"+segment == pathIntrospection:
		segment, _, _ = strings.Cut(below, "/")
		c = segmentCatalogue(responses.set, segment)
	case !h.router.Begins(segment):
		c = segmentCatalogue(responses.set, segment)
	}
	if c == nil || c.Problem == nil {
		return nil
	}
	return responses.responsesFor(c)
}

// segmentCatalogue returns the catalogue that an escaped segment names, nil when it names none or several.
func segmentCatalogue(set *core.CatalogueSet, segment string) *core.Catalogue {
	name, err := url.PathUnescape(segment)
	if err != nil {
		return nil
	}
	matching := cataloguesNamed(set, name)
	if len(matching) != 1 {
		return nil
	}
	return matching[0]
}

// writeFailed writes the response for every path of a failed catalogue except its detail (CONTRACT section 2). The body is the only
// error that is not problem details (RFC 9457). Like all errors it ignores Accept.
func writeFailed(w http.ResponseWriter, r *http.Request, c *catalogueResponses) {
	api.NoteError(r, core.NewError(core.CodeNotFound, "the catalogue has failed: "+c.problem.Message))
	api.WriteWhole(w, http.StatusNotFound, media.JSON, c.notFoundBody)
}
