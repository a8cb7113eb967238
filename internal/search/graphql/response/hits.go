package response

import (
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/selection"
)

// Hits writes the documents of one request.
type Hits struct {
	Field   *ast.Field
	Members []Member
	// Request is the index of the request, -1 for none.
	Request int
	// Counted is set if all documents are counted.
	Counted bool
	// Offset is the number of documents before the page.
	Offset int
	// Prefix is the path of the objects that contain the catalogue's fields in a document.
	Prefix []string
}

// Write writes the connection, or null with an error.
func (h *Hits) Write(w *Writer) bool {
	if h.Request >= 0 && w.results.Err != nil {
		return w.NullWithError(output.ErrorOf(w.results.Err).At(h.Field.Position))
	}
	return w.object(h.Members)
}

// result returns the result of the request.
func (h *Hits) result(w *Writer) *index.SearchResult {
	if h.Request < 0 {
		return &index.SearchResult{}
	}
	return &w.results.Searches[h.Request]
}

// Total writes the number of matching documents. If they were not counted, it is the number of documents up to the end of the
// page.
func (h *Hits) Total(w *Writer) bool {
	result := h.result(w)
	if h.Counted {
		return w.Int(result.Total)
	}
	if len(result.Hits) == 0 {
		return w.Int(0)
	}
	return w.Int(int64(h.Offset + len(result.Hits)))
}

// Edges returns the Value of the documents.
func (h *Hits) Edges(e *selection.Edge, required bool) Value {
	return func(w *Writer) bool {
		hits := h.result(w).Hits
		return w.List(len(hits), required, func(i int) bool {
			return w.Documents.Edge(e, hits[i].Source, selection.Inside(hits[i].Source, h.Prefix), &hits[i])
		})
	}
}
