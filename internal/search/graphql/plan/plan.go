package plan

import (
	"encoding/json"
	"strings"

	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql/response"
	"tutti/internal/search/graphql/schema"
	"tutti/internal/search/graphql/selection"
	"tutti/internal/search/view"
)

// Catalogue is a catalogue with its schema and what planning derives from them. It is safe for concurrent use.
type Catalogue struct {
	model  *catalogue.Model
	schema *schema.Schema
	// prefix is the path of the objects that contain the catalogue's fields.
	prefix []string
	// leaves is the number of values of a document.
	leaves int
	// window is the maximum number of documents per page.
	window int
}

// NewCatalogue returns the Catalogue of a model and its schema.
func NewCatalogue(m *catalogue.Model, s *schema.Schema) *Catalogue {
	c := &Catalogue{model: m, schema: s, leaves: selection.CountLeaves(s, s.Document+"Node"), window: maxPage(m)}
	if prefix := m.Definition().NestingPrefix; prefix != "" {
		c.prefix = strings.Split(prefix, ".")
	}
	return c
}

// Window returns the maximum number of documents per page.
func (c *Catalogue) Window() int { return c.window }

// maxPage returns the maximum page size: maxResultsWindow of the catalogue's table, up to the engine's limit.
func maxPage(m *catalogue.Model) int {
	var table struct {
		Window int `json:"maxResultsWindow"`
	}
	_ = json.Unmarshal(m.Definition().Table, &table) // validated before; without it, the window is 0
	if table.Window < 1 {
		return index.MaxWindow
	}
	return min(table.Window, index.MaxWindow)
}

// Plan is a planned operation: requests to the index, and the response that is written from their results. It is immutable and
// safe for concurrent use.
type Plan struct {
	// Requests are the requests to the index, Kind is their purpose.
	Requests []index.SearchRequest
	Kind     view.Kind
	// Streams are the requests whose documents can be written while the index reads them.
	Streams []Stream
	// Response is the response. If Rejected is set, the request is invalid, and the response has only errors.
	Response response.Response
	Rejected bool
	// Reusable is set if the plan depends only on the operation, its variables, the catalogue and Identity.
	Reusable bool
	// Identity is the path of the field that identifies documents (view.View.Identity).
	Identity string
	// Weight is the size of the plan: members, requests, clauses. Each takes about 600 bytes at most.
	Weight int
}

// Stream is a request whose documents have one selection.
type Stream struct {
	// Request is the index of the request, Documents the maximum number of documents.
	Request, Documents int
	Selection          *selection.Set
}
