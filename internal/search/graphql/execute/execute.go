package execute

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/selection"
	"tutti/internal/search/view"
)

// Executor executes plans. Its zero value is ready for use, and safe for concurrent use.
type Executor struct {
	// Memory bounds the memory of responses; nil for no bound.
	Memory core.ResponseMemory

	// chunks are buffers for documents, bodies those for responses.
	chunks, bodies output.BufferPool
	// idle has a *run for each execution that has ended.
	idle sync.Pool
}

// run is an execution of a plan. It is used by one goroutine at a time.
type run struct {
	executor *Executor
	w        *Writer
	results  results
	// requests are the requests with the functions that write documents while the index reads them.
	requests []index.SearchRequest
	// streams are those of the plan, and spare ones of earlier executions.
	streams []*documentStream
	// chunks are the buffers of the documents, bytesRead is the number of bytes written to them.
	chunks    [][]byte
	bytesRead int
	// memory is what the index has reserved for this execution.
	memory *reservation
}

// Execute sends the requests of a plan to the index in one search, and returns the response. Without requests, it does not call the
// index.
//
// An index that reads documents in this process reserves memory for them and for the response, for the caller c. If it is not free in
// time, the response is Overloaded.
func (e *Executor) Execute(ctx context.Context, v *view.View, p *Plan, c core.Caller) (response core.GraphQLResponse) {
	if p.Rejected {
		return output.Rejection(p.Errors...)
	}
	r, _ := e.idle.Get().(*run)
	if r == nil {
		r = &run{executor: e, w: newWriter()}
	}
	memory := &reservation{memory: e.Memory, caller: c}
	r.memory = memory
	defer func() {
		if response.Release == nil {
			memory.shrink(0)
		}
	}()
	if len(p.requests) > 0 {
		r.search(ctx, v, p)
	}
	if memory.refused != nil {
		response = output.Rejection(output.ErrorOf(memory.refused))
		response.Overloaded = memory.refused
		return response
	}
	body := r.w.response(e.bodies.Get(estimateSize(r.results.searches)), p, r.results)
	r.release()
	memory.shrink(int64(cap(body)))
	return core.GraphQLResponse{Body: body, Release: func() { e.bodies.Put(body); memory.shrink(0) }}
}

func (r *run) search(ctx context.Context, v *view.View, p *Plan) {
	found, err := search(ctx, v, p.kind, r.streamed(p))
	if err == nil && !answersAll(found, p.requests) {
		err = notAllAnswered()
	}
	r.results.searches, r.results.err = found, err
	for _, s := range r.streams[:len(p.streams)] {
		r.results.warnings = append(r.results.warnings, s.w.Warnings...)
	}
}

// reservation is the memory of one execution.
type reservation struct {
	memory core.ResponseMemory
	caller core.Caller
	// shrunk reduces what is reserved; nil when nothing is.
	shrunk func(to int64)
	// refused is why memory was not reserved; nil if it was.
	refused error
}

const (
	// smallResponse is the size up to which a response is not counted, so that large ones do not delay it.
	smallResponse = 256 << 10
	// memoryTimeout is how long an execution waits for memory; it is shorter than a search may take.
	memoryTimeout = 20 * time.Second
)

// reserve replaces what is reserved by memory for documents of so many bytes and for what is written of them, without waiting while it
// holds any.
func (m *reservation) reserve(ctx context.Context, bytes int64) error {
	m.shrink(0)
	if bytes <= smallResponse {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	shrink, err := m.memory.Reserve(ctx, m.caller, bytes+min(bytes, output.MaxBytes))
	if err != nil {
		m.refused = &core.Error{
			Code: core.CodeOverloaded, Message: "too many large responses are being written", Hint: "retry later, or request fewer documents", Err: err,
		}
		return m.refused
	}
	m.shrunk = shrink
	return nil
}

// shrink reduces what is reserved to a number of bytes.
func (m *reservation) shrink(to int64) {
	if m.shrunk == nil {
		return
	}
	m.shrunk(to)
	if to == 0 {
		m.shrunk = nil
	}
}

// streamed returns the requests of a plan whose documents are written while the index reads them.
func (r *run) streamed(p *Plan) []index.SearchRequest {
	if len(p.streams) == 0 && r.executor.Memory == nil {
		return p.requests
	}
	r.requests = append(r.requests[:0], p.requests...)
	if r.executor.Memory != nil {
		for i := range r.requests {
			r.requests[i].Reserve = r.memory.reserve
		}
	}
	hits := make([]index.HitsRequest, len(p.streams))
	for i, planned := range p.streams {
		if i == len(r.streams) {
			r.streams = append(r.streams, newDocumentStream(r))
		}
		s, request := r.streams[i], &r.requests[planned.request]
		s.selection, s.documents = planned.selection, planned.documents
		hits[i] = *request.Hits
		hits[i].Read = s.read
		request.Hits = &hits[i]
	}
	return r.requests
}

// release releases the buffers of the results, which must not be used afterwards.
func (r *run) release() {
	if r.results.err != nil { // the request may still be in use
		return
	}
	for _, s := range r.streams {
		s.releaseChunk()
		s.reset()
	}
	for _, chunk := range r.chunks {
		r.executor.chunks.Put(chunk)
	}
	clear(r.chunks)
	clear(r.requests)
	r.chunks, r.requests, r.bytesRead = r.chunks[:0], r.requests[:0], 0
	r.results, r.memory = results{warnings: r.results.warnings[:0]}, nil
	r.executor.idle.Put(r)
}

// readChunk is the maximum size of a new buffer for documents, in bytes.
const readChunk = 64 << 10

// documentStream writes documents while the index reads them. A document that causes an error or a warning is kept as it is and
// written with the rest of the response.
type documentStream struct {
	run       *run
	selection *selection.Set
	// documents is the maximum number of documents.
	documents int
	// read is the method document.
	read func(id string, data []byte, at int) ([]byte, int)
	w    selection.Writer
	hit  index.Hit
}

func newDocumentStream(r *run) *documentStream {
	s := &documentStream{run: r, w: selection.Writer{Writer: &output.Writer{}}}
	s.read = s.document
	return s
}

// document writes the document at data[at] and returns where it ends; nil if it could not be written.
func (s *documentStream) document(id string, data []byte, at int) ([]byte, int) {
	if s.run.bytesRead > output.MaxBytes { // the response is too large, which its lists report
		return []byte{}, at
	}
	w, usual := &s.w, s.selection.UsualSize()
	// Reordering needs the same space again.
	if next := 2*usual + 1<<8; cap(w.Buf)-len(w.Buf) < next {
		s.releaseChunk()
		w.Buf = s.run.executor.chunks.Get(max(next, min(s.documents*max(usual, 1<<9), readChunk)))
	}
	start := w.Mark()
	w.Dotted, s.hit.ID = false, id
	end := w.Object(s.selection, data, at, &s.hit)
	if w.Dotted || w.ErrorCount() > 0 {
		w.Rollback(start)
		return nil, at
	}
	length := len(w.Buf) - start.Bytes
	s.selection.LearnSize(usual, length)
	s.run.bytesRead += length
	written := w.Buf[start.Bytes:len(w.Buf):len(w.Buf)]
	if length > readChunk/2 { // a chunk has twice the size of large documents
		written = bytes.Clone(written)
		w.Rollback(start)
	}
	return written, end
}

// releaseChunk ends the use of a chunk: with documents, at the end of the execution.
func (s *documentStream) releaseChunk() {
	if len(s.w.Buf) > 0 {
		s.run.chunks = append(s.run.chunks, s.w.Buf)
	} else {
		s.run.executor.chunks.Put(s.w.Buf)
	}
	s.w.Buf = nil
}

// reset clears everything of the last execution.
func (s *documentStream) reset() {
	s.selection, s.hit = nil, index.Hit{}
	s.w.Reset()
}

// search executes the requests. Engines reject a whole request if one histogram has too many intervals. In that case search
// requests everything else first, with the range of values of each histogram, and then the histograms that have few enough
// intervals. A histogram that is left without intervals although it has values is reported at its field.
func search(ctx context.Context, v *view.View, kind view.Kind, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	results, err := v.Search(ctx, kind, reqs)
	measured, some := withoutHistograms(reqs)
	if core.CodeOf(err) != core.CodeInvalid || !some {
		return results, err
	}
	results, err = v.Search(ctx, kind, measured)
	if err != nil || !answersAll(results, reqs) { // the caller reports missing results
		return results, err
	}
	fitting, into := histogramsThatFit(reqs, results)
	if len(fitting) == 0 {
		return results, nil
	}
	found, err := v.Search(ctx, view.KindFacets, fitting)
	switch {
	case core.CodeOf(err) == core.CodeInvalid: // the values have changed since they were measured
		return results, nil
	case err != nil:
		return nil, err
	case !answersAll(found, fitting):
		return nil, notAllAnswered()
	}
	for i := range found {
		for j := range found[i].Facets {
			into[i][j].Histogram = found[i].Facets[j].Histogram
		}
	}
	return results, nil
}

func notAllAnswered() error {
	return core.NewError(core.CodeInternal, "the index returned an incomplete response")
}

// answersAll reports whether there is a result for each request and each of its facets.
func answersAll(results []index.SearchResult, reqs []index.SearchRequest) bool {
	if len(results) != len(reqs) {
		return false
	}
	for i := range reqs {
		if len(results[i].Facets) != len(reqs[i].Facets) {
			return false
		}
	}
	return true
}

// withoutHistograms returns the requests with statistics instead of histograms, and reports whether there were histograms.
func withoutHistograms(reqs []index.SearchRequest) (measured []index.SearchRequest, some bool) {
	measured = make([]index.SearchRequest, len(reqs))
	for i, req := range reqs {
		measured[i] = req
		measured[i].Facets = make([]index.Facet, len(req.Facets))
		for j, f := range req.Facets {
			if f.Histogram != 0 {
				some, f.Histogram, f.Stats = true, 0, true
			}
			measured[i].Facets[j] = f
		}
	}
	return measured, some
}

// histogramsThatFit returns requests for the histograms of reqs that have values and few enough intervals, and the results to
// fill. They reserve no memory: that would release what the documents of measured hold.
func histogramsThatFit(reqs []index.SearchRequest, measured []index.SearchResult) (fitting []index.SearchRequest, into [][]*index.FacetResult) {
	for i, req := range reqs {
		one := index.SearchRequest{Filter: req.Filter}
		var places []*index.FacetResult
		for j, f := range req.Facets {
			result := &measured[i].Facets[j]
			if f.Histogram == 0 || result.Stats.Count == 0 || !fewIntervals(result.Stats, f.Histogram) {
				continue
			}
			one.Facets = append(one.Facets, index.Facet{Field: f.Field, Elements: f.Elements, Histogram: f.Histogram})
			places = append(places, result)
		}
		if len(one.Facets) > 0 {
			fitting, into = append(fitting, one), append(into, places)
		}
	}
	return fitting, into
}

// fewIntervals reports whether a histogram has no more intervals than engines allow. It is false for an infinite bound.
func fewIntervals(s index.Stats, width float64) bool {
	return math.Floor(s.Max/width)-math.Floor(s.Min/width) < index.MaxIntervals
}

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

// wholeDocument is the size of the largest documents that an index may return as a whole although only parts are requested.
const wholeDocument = 16 << 10

// estimateSize estimates the size of a response in bytes.
func estimateSize(results []index.SearchResult) int {
	n := 1 << 10
	for _, result := range results {
		for _, hit := range result.Hits {
			if hit.Read || len(hit.Source) > wholeDocument { // what is not read in full is left out by the index
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
	return min(n, output.MaxBytes+wholeDocument)
}

// Null is the Value null.
func Null(w *Writer) { w.Null() }

// Raw returns the Value of constant JSON.
func Raw(raw []byte) Value { return func(w *Writer) { w.Raw(raw) } }

func text(s string) Value { return func(w *Writer) { w.Text(s) } }

func object(members []member) Value { return func(w *Writer) { w.object(members) } }
