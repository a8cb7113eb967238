package plan

import (
	"fmt"

	"tutti/internal/index"
	"tutti/internal/jsontext"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/selection"
)

// Value writes one JSON value. It is safe for concurrent use with different writers.
//
// No value of a non-null field can be null: schemas have such fields only for ids and totals, and for introspection, which has its
// own writer. So an error never makes more than its own field null (GraphQL specification, section 6.4.4).
type Value func(w *Writer)

// member is a field of an object of the response.
type member struct {
	key   string
	value Value
}

// results are the results of the index.
type results struct {
	// searches are the results of the requests, unless there is an error.
	searches []index.SearchResult
	err      error
	// warnings are those of documents that were written while the index read them.
	warnings []output.Warning
}

// Writer writes a response. It may be reused after each response.
type Writer struct {
	output.Writer

	Documents selection.Writer
	results   results
}

func newWriter() *Writer {
	w := &Writer{}
	w.Documents.Writer = &w.Writer
	return w
}

// response appends the response of a plan to dst.
func (w *Writer) response(dst []byte, p *Plan, found results) []byte {
	w.results = found
	w.Errors, w.Dropped = append(w.Errors, p.Errors...), p.dropped
	w.Buf = append(dst, `{"data":`...)
	w.object(p.members)
	if len(w.Errors) > 0 {
		if w.Dropped > 0 {
			w.Errors[output.MaxErrors-1] = &output.Error{Message: fmt.Sprintf("%d more errors were omitted", w.Dropped+1), Code: output.CodeInternal}
		}
		w.Buf = output.AppendErrors(append(w.Buf, ','), w.Errors)
	}
	w.Warn(p.warnings...)
	w.Warn(found.warnings...)
	if len(w.Warnings) > 0 {
		w.Buf = output.AppendWarnings(append(w.Buf, ','), w.Warnings)
	}
	body := append(w.Buf, '}')
	w.Documents.Reset()
	w.results = results{}
	return body
}

func (w *Writer) object(members []member) {
	w.Buf = append(w.Buf, '{')
	for i := range members {
		m := &members[i]
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = append(jsontext.AppendString(w.Buf, m.key), ':')
		w.Push(m.key)
		m.value(w)
		w.Pop()
	}
	w.Buf = append(w.Buf, '}')
}

// estimateSize estimates the size of a response in bytes.
func estimateSize(results []index.SearchResult) int {
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
func Null(w *Writer) { w.Null() }

// Raw returns the Value of constant JSON.
func Raw(raw []byte) Value { return func(w *Writer) { w.Raw(raw) } }

func text(s string) Value { return func(w *Writer) { w.Text(s) } }

func object(members []member) Value { return func(w *Writer) { w.object(members) } }
