package response

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
	"tutti/internal/jsontext"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/selection"
)

// Value writes one JSON value and reports whether it is not null. It is safe for concurrent use with different writers.
type Value func(w *Writer) bool

// Member is a field of an object of the response.
type Member struct {
	key string
	// required is set for a non-null field: if its value is null, the whole object is null.
	required bool
	field    *ast.Field
	value    Value
}

// NewMember returns the member of a field.
func NewMember(f *ast.Field, value Value) Member {
	return Member{key: f.Alias, required: f.Definition.Type.NonNull, field: f, value: value}
}

// Response is the response of an operation, to be written from the results of the index.
type Response struct {
	Members []Member
	// Errors and Warnings are those of the plan. Dropped counts the errors beyond the limit.
	Errors   []*output.Error
	Dropped  int
	Warnings []output.Warning
	// Facets maps the facets of each planned request to their positions in the result.
	Facets [][]int
}

// Results are the results of the index.
type Results struct {
	// Searches are the results of the requests, unless there is an error.
	Searches []index.SearchResult
	Err      error
	// Warnings are those of documents that were written while the index read them.
	Warnings []output.Warning
}

// Writer writes a response. It may be reused after each response.
type Writer struct {
	output.Writer

	Documents selection.Writer
	results   Results
	// facets are Response.Facets.
	facets [][]int
}

// NewWriter returns a Writer.
func NewWriter() *Writer {
	w := &Writer{}
	w.Documents.Writer = &w.Writer
	return w
}

// Write appends a response to dst.
func (w *Writer) Write(dst []byte, r *Response, results Results) []byte {
	w.results, w.facets = results, r.Facets
	w.Errors, w.Dropped = append(w.Errors, r.Errors...), r.Dropped
	w.Buf = append(dst, `{"data":`...)
	w.object(r.Members)
	if len(w.Errors) > 0 {
		if w.Dropped > 0 {
			w.Errors[output.MaxErrors-1] = &output.Error{Message: fmt.Sprintf("%d more errors were omitted", w.Dropped+1), Code: output.CodeInternal}
		}
		w.Buf = output.AppendErrors(append(w.Buf, ','), w.Errors)
	}
	w.Warn(r.Warnings...)
	w.Warn(results.Warnings...)
	if len(w.Warnings) > 0 {
		w.Buf = output.AppendWarnings(append(w.Buf, ','), w.Warnings)
	}
	body := append(w.Buf, '}')
	w.Documents.Reset()
	w.results, w.facets = Results{}, nil
	return body
}

// object writes an object, or null if a required member is null.
func (w *Writer) object(members []Member) bool {
	start := len(w.Buf)
	w.Buf = append(w.Buf, '{')
	for i := range members {
		m := &members[i]
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = append(jsontext.AppendString(w.Buf, m.key), ':')
		w.Push(m.key)
		errorsBefore := w.ErrorCount()
		filled := m.value(w)
		if !filled && m.required {
			if w.ErrorCount() == errorsBefore {
				w.AddError(output.MissingValue(m.field))
			}
			w.Pop()
			w.Buf = w.Buf[:start]
			return w.Null()
		}
		w.Pop()
	}
	w.Buf = append(w.Buf, '}')
	return true
}

// EstimateSize estimates the size of a response in bytes.
func EstimateSize(results []index.SearchResult) int {
	n := 1 << 10
	for _, result := range results {
		for _, hit := range result.Hits {
			if hit.Read {
				n += len(hit.Source)
			} else {
				n += len(hit.Source) / 2
			}
			n += 64
		}
		for _, facet := range result.Facets {
			n += 64 * len(facet.Buckets)
		}
	}
	return n
}

// Null is the Value null.
func Null(w *Writer) bool { return w.Null() }

// Text returns the Value of a constant string.
func Text(s string) Value { return func(w *Writer) bool { return w.Text(s) } }

// Raw returns the Value of constant JSON.
func Raw(raw []byte) Value { return func(w *Writer) bool { return w.Raw(raw) } }

// Bool returns the Value of a constant boolean.
func Bool(is bool) Value { return func(w *Writer) bool { return w.Bool(is) } }

// Object returns the Value of an object.
func Object(members []Member) Value { return func(w *Writer) bool { return w.object(members) } }

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
